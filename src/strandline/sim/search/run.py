"""One scenario with one seed, from an empty cluster to the verdict.

1. The cluster starts, the workloads begin, and faults strike for a while.
2. Everything is healed. Then the cluster must become whole: all nodes run, every replica is in sync. The workloads
   must come to their end: every request that can get a response has got it, and every acknowledged record is read.
3. The checkers judge: those that watched all the time, and those that look at what is there in the end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

from strandline.config import InvalidConfig
from strandline.sim.checks import groups, history, log
from strandline.sim.checks.leaders import Leaders
from strandline.sim.checks.quorum import QuorumSafety
from strandline.sim.history import ACKNOWLEDGED, COMMITTED, History, Violation
from strandline.sim.search import faults as fault_kinds
from strandline.sim.search.faults import FaultEvent, Faults
from strandline.sim.search.scenario import Scenario
from strandline.sim.workloads.groups import GroupWorkload
from strandline.sim.workloads.log import LogWorkload
from strandline.sim.workloads.loops import LoopWorkload
from strandline.sim.workloads.reading import read_whole
from strandline.sim.workloads.transactions import TransactionWorkload
from strandline.sim.world import REPLICATED, World

_LIVE_S: Final = 180.0
_WATCH_S: Final = 0.05
# The coordinators' topics are small, and late transactions are noticed soon.
_SETTINGS: Final = {
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "offsets.topic.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}


class Workload(Protocol):
    @property
    def topics(self) -> dict[str, int]:
        """The numbers of partitions by topic."""
        ...

    async def begin(self) -> None: ...

    async def end(self) -> None: ...


WORKLOADS: Final[dict[str, Callable[[World, History, float], Workload]]] = {
    "log": LogWorkload,
    "transactions": TransactionWorkload,
    "loops": LoopWorkload,
    "groups": GroupWorkload,
}


@dataclass(slots=True, kw_only=True)
class RunResult:
    scenario: str
    seed: int
    scenario_path: str = ""  # where it is a file
    verdict: str = "ok"
    message: str = ""
    trace_hash: str = ""
    virtual_s: float = 0.0
    cpu_s: float = 0.0
    acknowledged: int = 0
    events: list[FaultEvent] = field(default_factory=list)
    fault_counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        return self.verdict == "ok"


def events_of(scenario: Scenario, seed: int) -> list[FaultEvent]:
    """Returns the faults that a seed gives a scenario."""
    with World(seed) as world:
        first = scenario.controllers + 1
        nodes = range(first, first + scenario.nodes)
        return fault_kinds.draw(scenario.faults, nodes, world.generator("faults", scenario.name))


def run(scenario: Scenario, seed: int, events: list[FaultEvent] | None = None) -> RunResult:
    """Runs a scenario with a seed; a violation that the simulation finds is the verdict of the result."""
    faults = events_of(scenario, seed) if events is None else events
    result = RunResult(scenario=scenario.name, scenario_path=scenario.path, seed=seed, events=faults)
    begun_s = time.process_time()
    with World(seed) as world:
        scenario_run = _ScenarioRun(world, scenario)
        try:
            world.run(scenario_run.run(faults))
        except Violation as error:
            result.verdict, result.message = error.verdict, _message_of(error)
        except InvalidConfig:
            raise  # of the plan's settings: nothing was simulated
        except Exception as error:
            result.verdict, result.message = type(error).__name__, _message_of(error)
        result.trace_hash = world.trace_hash
        result.virtual_s = world.loop.time()
        result.fault_counts = scenario_run.counts
        result.acknowledged = scenario_run.acknowledged
    result.cpu_s = time.process_time() - begun_s
    return result


def _message_of(error: BaseException) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


class _ScenarioRun:
    def __init__(self, world: World, scenario: Scenario) -> None:
        self._world = world
        self._scenario = scenario
        self._history = History()
        self._workloads: list[Workload] = []
        self._leaders = Leaders()
        self._quorum = QuorumSafety()
        self._groups = groups.ConsumerGroups()
        self.counts: dict[str, int] = {}

    @property
    def acknowledged(self) -> int:
        committed = sum(each.fate == COMMITTED for each in self._history.transactions.values())
        return committed + sum(send.fate == ACKNOWLEDGED for send in self._history.sends)

    @property
    def _topics(self) -> dict[str, int]:
        return {topic: count for each in self._workloads for topic, count in each.topics.items()}

    async def run(self, events: list[FaultEvent]) -> None:
        world = self._world
        settings = _SETTINGS | self._scenario.settings
        if self._scenario.controllers:
            world.add_controllers(
                self._scenario.controllers, self._scenario.nodes, settings=REPLICATED | settings
            )
        else:
            world.add_cluster(self._scenario.nodes, settings=settings)
        await world.start_all()
        self._workloads = [
            WORKLOADS[name](world, self._history, self._scenario.pauses) for name in self._scenario.workloads
        ]
        for workload in self._workloads:
            await workload.begin()
        watching = world.start_task(self._watch())
        faults = Faults(world, lambda: log.are_in_sync(world))
        self.counts = faults.counts
        await faults.run(events)
        await faults.heal()
        await self._until("the nodes do not start", lambda: all(n.is_running for n in world.nodes.values()))
        await self._until("not every replica gets in sync", self._is_whole)
        for workload in self._workloads:
            await workload.end()
        await self._until(
            "the copies stay different",
            lambda: self._is_whole() and log.difference(world, list(self._topics)) is None,
        )
        watching.cancel()
        await self._judge()

    def _is_whole(self) -> bool:
        return log.are_in_sync(self._world, list(self._topics))

    async def _until(self, otherwise: str, condition: Callable[[], bool]) -> None:
        deadline = self._world.loop.time() + _LIVE_S
        while not condition():
            if self._world.loop.time() > deadline:
                raise Violation("not-live", otherwise)
            await asyncio.sleep(0.1)

    async def _watch(self) -> None:
        while True:
            try:
                for watcher in (self._leaders, self._quorum, self._groups):
                    watcher.look(self._world)
            except Violation as violation:
                self._world.loop.fail(violation)  # nobody waits for this task
            await asyncio.sleep(_WATCH_S)

    async def _judge(self) -> None:
        if not self.acknowledged:
            raise Violation("nothing-happened", "no write was acknowledged")
        for topic, partitions in self._topics.items():
            self._history.final.update(await read_whole(self._world, topic, partitions))
        log.check(self._world, list(self._topics))
        self._quorum.check(self._world)
        groups.check(self._history)
        history.check(self._history)


def as_json(result: RunResult) -> dict[str, Any]:
    return {
        "scenario": result.scenario,
        "seed": result.seed,
        "verdict": result.verdict,
        "message": result.message,
        "trace_hash": result.trace_hash,
        "virtual_s": round(result.virtual_s, 3),
        "cpu_s": round(result.cpu_s, 3),
        "acknowledged": result.acknowledged,
        "faults": result.fault_counts,
        "events": [asdict(event) for event in result.events],
    }
