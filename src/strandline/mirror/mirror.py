"""All flows of a process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from strandline.client.world import ClientWorld
from strandline.mirror.config.settings import MirrorSettings
from strandline.mirror.flow import Flow, FlowStopped
from strandline.telemetry.exposition import Family

logger = logging.getLogger("strandline.mirror")


class Mirror:
    """Copies the flows of a file until it is stopped."""

    def __init__(
        self,
        settings: MirrorSettings,
        instance: str,
        world: ClientWorld,
        *,
        bytes_per_second: int | None = None,
    ) -> None:
        self.flows = [
            Flow(each, instance, world, bytes_per_second=bytes_per_second) for each in settings.flows
        ]
        self.stopped: list[FlowStopped] = []  # the reasons of flows that could not go on

    def stop(self) -> None:
        """Ends every flow after the transaction that is under way."""
        for flow in self.flows:
            flow.stop()

    async def run(self) -> None:
        """Copies until `stop`, or until no flow can go on."""
        await asyncio.gather(*(self._run(flow) for flow in self.flows))

    async def _run(self, flow: Flow) -> None:
        try:
            await flow.run()
        except FlowStopped as error:
            logger.error("%s", error)
            self.stopped.append(error)

    def families(self) -> Iterator[Family]:
        """Yields the metrics of all flows, one family for all of them."""
        merged: dict[str, Family] = {}
        for flow in self.flows:
            for family in flow.metrics.families():
                known = merged.get(family.name)
                samples = family.samples if known is None else (*known.samples, *family.samples)
                merged[family.name] = family._replace(samples=samples)
        yield from merged.values()
