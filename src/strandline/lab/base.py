"""The base that the words of the lab share: the stage, the state that is asked for, the timeline, and waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from strandline.client.admin.admin import Admin
from strandline.lab.diaries import ConsumerDiary, ProducerDiary
from strandline.lab.scenario import LabScenario
from strandline.lab.simulated_stage import SimulatedStage
from strandline.lab.stage import LabStage, OnlySimulated
from strandline.lab.timeline import CLUSTER, CONSUMER, PRODUCER, STEP, PartitionView, Timeline

TOPIC: Final = "orders"
OFFSETS_TOPIC: Final = "__consumer_offsets"
PATIENCE_SECONDS: Final = 300.0


class Stuck(Exception):
    """The scenario waits for something that does not happen."""


class LabBase:
    def __init__(self, scenario: LabScenario, stage: LabStage) -> None:
        self.scenario = scenario
        self.stage = stage
        self.timeline = Timeline()
        self.producers: dict[str, ProducerDiary] = {}
        self.consumers: dict[str, ConsumerDiary] = {}
        self._admin: Admin | None = None
        self.facts: dict[str, str] = {}
        self.figures: dict[str, float] = {}
        self._next_number = 0
        self._began_at = 0.0
        self._last_view: PartitionView | None = None
        self._last_fenced: tuple[int, ...] = ()
        self._told: dict[str, int] = {}  # how many of a client's results are in the timeline

    # State

    @property
    def simulated(self) -> SimulatedStage:
        """The stage, for steps that only the simulator can do; the scenario says so (`only_simulated`)."""
        if not isinstance(self.stage, SimulatedStage):
            raise OnlySimulated("its steps need the simulator")
        return self.stage

    @property
    def view(self) -> PartitionView:
        return self.stage.view(TOPIC, 0)

    @property
    def leader(self) -> int:
        return self.view.leader

    @property
    def followers(self) -> list[int]:
        return [each.broker for each in self.view.replicas if each.broker != self.leader]

    @property
    def coordinator(self) -> int:
        """The broker that coordinates all groups; the scenario gives the offsets topic one partition."""
        return self.stage.view(OFFSETS_TOPIC, 0).leader

    @property
    def controller(self) -> int:
        """The controller that leads the quorum now."""
        return self.stage.active_controller()

    def now(self) -> float:
        """Seconds since the beginning of the steps."""
        return self.stage.now() - self._began_at

    def fact(self, name: str, value: object) -> None:
        """Notes a fact, which is compared with the one that the scenario expects under this name."""
        self.facts[name] = str(value)
        self._say(STEP, f"{name}: {value}")

    def measure(self, name: str, seconds: float) -> None:
        """Notes a figure, which is compared with the bounds that the scenario gives for this name."""
        self.figures[name] = round(seconds, 3)
        self._say(STEP, f"{name}: {seconds:.3f} s")

    # Waiting

    async def until(
        self, condition: Callable[[], bool], what: str, *, every_seconds: float | None = None
    ) -> None:
        """Returns once the condition holds. Raises Stuck if it does not within PATIENCE_SECONDS."""
        if not await self.wait_for(condition, PATIENCE_SECONDS, every_seconds=every_seconds):
            raise Stuck(f"after {PATIENCE_SECONDS:.0f} s it still waits for {what}")

    async def wait_for(
        self, condition: Callable[[], bool], seconds: float, *, every_seconds: float | None = None
    ) -> bool:
        """True as soon as the condition holds; False if it does not within so many seconds."""
        deadline = self.stage.now() + seconds
        await self.stage.refresh()
        while not condition():
            if self.stage.now() > deadline:
                return False
            await asyncio.sleep(self.stage.watch_seconds if every_seconds is None else every_seconds)
            await self.stage.refresh()
        return True

    # The timeline

    def note(self, text: str) -> None:
        self._say(STEP, text)

    def _named(self, node: int) -> str:
        if node not in self.stage.brokers:
            return f"controller {node}"
        return f"the leader, broker {node}," if node == self.leader else f"broker {node}"

    def _say(self, kind: str, text: str, numbers: list[int] | None = None) -> None:
        self._look()
        self._add(kind, text, numbers)

    def _add(self, kind: str, text: str, numbers: list[int] | None = None) -> None:
        self.timeline.add(self.now(), kind, text, self.view, numbers)

    async def _watch(self) -> None:
        while True:
            await self.stage.refresh()
            self._look()
            await asyncio.sleep(self.stage.watch_seconds)

    def _look(self) -> None:
        """Adds what has changed since the last look."""
        view, fenced = self.view, self.stage.fenced()
        last, last_fenced = self._last_view, self._last_fenced
        if last is None:
            return
        if view is last and fenced == last_fenced:
            self._tell_clients()
            return
        self._last_view, self._last_fenced = view, fenced
        for broker in fenced:
            if broker not in last_fenced:
                self._add(CLUSTER, f"the controller fences broker {broker}")
        for broker in last_fenced:
            if broker not in fenced:
                self._add(CLUSTER, f"the controller lets broker {broker} in again")
        if (view.leader, view.epoch) != (last.leader, last.epoch):
            who = f"broker {view.leader} leads" if view.leader >= 0 else "nobody leads"
            self._add(CLUSTER, f"{who} in epoch {view.epoch}")
        if view.in_sync != last.in_sync:
            self._add(CLUSTER, f"in-sync replicas: {list(view.in_sync)}")
        before = {each.broker: each for each in last.replicas}
        for each in view.replicas:
            old = before.get(each.broker)
            if old is not None and 0 <= each.end_offset < old.end_offset:
                self._add(
                    CLUSTER, f"broker {each.broker} cuts its log from {old.end_offset} to {each.end_offset}"
                )
        self._tell_clients()

    def _tell_clients(self) -> None:
        for name, producer in self.producers.items():
            acknowledged = producer.acknowledged[self._told.get(f"{name} a", 0) :]
            if acknowledged:
                self._told[f"{name} a"] = len(producer.acknowledged)
                told = (
                    "takes for sent" if producer.settings.get("acks") == "0" else "has the acknowledgement of"
                )
                self._add(PRODUCER, f"{name} {told}", acknowledged)
            failed = list(producer.failed)[self._told.get(f"{name} f", 0) :]
            if failed:
                self._told[f"{name} f"] = len(producer.failed)
                for error in sorted({producer.failed[each] for each in failed}):
                    numbers = [each for each in failed if producer.failed[each] == error]
                    self._add(PRODUCER, f"{name} is told {error} for", numbers)
        for name, consumer in self.consumers.items():
            seen = consumer.seen[self._told.get(f"{name} s", 0) :]
            if seen:
                self._told[f"{name} s"] = len(consumer.seen)
                self._add(CONSUMER, f"{name} reads", seen)
            errors = consumer.errors[self._told.get(f"{name} e", 0) :]
            if errors:
                self._told[f"{name} e"] = len(consumer.errors)
                self._add(CONSUMER, f"{name} is told {listed(errors)} and stops reading")


def listed(names: Iterable[int | str]) -> str:
    return ", ".join(map(str, names))
