"""The stage on which a scenario plays: its nodes, links and clients, simulated or real."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from strandline.client.world import ClientWorld
from strandline.lab.timeline import PartitionView

if TYPE_CHECKING:
    from strandline.lab.diaries import ConsumerDiary, ProducerDiary
    from strandline.lab.scenario import LabScenario

NOBODY: Final = PartitionView(leader=-1, epoch=-1, in_sync=(), eligible_leaders=(), replicas=())
# Kafka's defaults, where clusters for tests have others.
_DEFAULTS: Final = {
    "group.initial.rebalance.delay.ms": "3000",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
}


class OnlySimulated(Exception):
    """The scenario needs the simulator; the message says why."""


class UnsuitableClient(Exception):
    """The client library is not installed, or cannot do what the scenario asks for; the message says what it is."""


class LabStage(Protocol):
    """Brokers have the numbers 1, 2, 3…; the controllers are nodes of their own, with higher ones."""

    @property
    def brokers(self) -> Collection[int]: ...
    @property
    def nodes(self) -> Collection[int]: ...
    @property
    def bootstrap(self) -> str: ...
    @property
    def watch_seconds(self) -> float:
        """How long the lab waits between two looks."""
        ...

    def address(self, node: int) -> str:
        """Returns host and port of a broker, for a client that is to know only this one."""
        ...

    def now(self) -> float: ...
    def is_running(self, node: int) -> bool: ...
    async def refresh(self) -> None:
        """Brings the views up to date."""
        ...

    async def start(self) -> None: ...

    # Nodes
    def kill(self, node: int) -> None: ...
    def cut_power(self, node: int) -> None: ...
    def pause(self, node: int) -> None: ...
    def resume(self, node: int) -> None: ...
    async def start_node(self, node: int) -> None: ...
    async def stop_node(self, node: int) -> None: ...
    def replace_disk(self, node: int) -> None: ...

    # Links between nodes, by their numbers, and to clients, by their names
    def cut(self, one: str | int, other: str | int) -> None: ...
    def cut_one_way(self, source: str | int, target: str | int) -> None: ...
    def heal(self) -> None: ...

    # Requests
    def control(self, node: int, command: Mapping[str, Any]) -> dict[str, Any]:
        """Carries out a command of `node/faults/control.py` that sets, releases or describes a fault in requests."""
        ...

    # State
    def fenced(self) -> tuple[int, ...]: ...
    def active_controller(self) -> int:
        """Returns the controller that leads the metadata quorum; -1 if none does."""
        ...

    def view(self, topic: str, partition: int) -> PartitionView: ...

    # Clients
    def client_world(self, name: str) -> ClientWorld: ...
    def producer(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        partitions: int,
        on_result: Callable[[], None],
    ) -> ProducerDiary: ...
    def consumer(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        on_change: Callable[[], None],
        work_seconds: float,
    ) -> ConsumerDiary: ...


def cluster_settings(scenario: LabScenario) -> dict[str, str]:
    """Returns the settings that all nodes of the scenario have in common."""
    copies = str(min(3, scenario.brokers))
    internal = {
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": str(min(2, scenario.brokers)),
    }
    return {**_DEFAULTS, **internal, **scenario.cluster}


def rack_of(scenario: LabScenario, broker: int) -> str | None:
    """Returns the rack of this broker, if the scenario has racks."""
    return scenario.racks[(broker - 1) % len(scenario.racks)] if scenario.racks else None
