"""The words for faults in requests: a node delays, drops or changes what clients ask it."""

from __future__ import annotations

from typing import Any

from strandline.lab.base import LabBase
from strandline.lab.stage import LabStage
from strandline.lab.timeline import STEP


class LabFault:
    """A fault that is set on one node, as `node/faults` describes it."""

    def __init__(self, stage: LabStage, node: int, fault_id: int) -> None:
        self._stage = stage
        self._node = node
        self._id = fault_id

    @property
    def status(self) -> dict[str, Any]:
        return self._stage.control(self._node, {"do": "status", "id": self._id})

    def has_struck(self) -> bool:
        return bool(self.status["fired"])

    def release(self) -> None:
        """Lets the requests at a barrier go on."""
        self._stage.control(self._node, {"do": "release", "id": self._id})


class FaultWords(LabBase):
    def fault(self, node: int, told: str, **described: Any) -> LabFault:
        """Sets a fault; `told` is the line of the timeline, the rest describes the fault (`node/faults/rule.py`)."""
        self._say(STEP, told)
        status = self.stage.control(node, {"do": "set", "fault": described})
        return LabFault(self.stage, node, status["id"])

    async def until_struck(self, fault: LabFault) -> None:
        """Returns when the fault has struck a request."""
        await self.until(fault.has_struck, "the fault to strike")

    def release(self, fault: LabFault, told: str) -> None:
        """Lets the requests go on that a barrier holds."""
        self._say(STEP, told)
        fault.release()
