"""The real consumer's rebalances in the simulated world: listeners and assignors of the application fail."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client.assignors import Assignment, GroupMember, RangeAssignor
from strandline.client.decode import ConsumerRecord
from strandline.sim.world import SimulatedNode, World
from tests.sim.consuming import PROTOCOLS, Diary, consumer, fill, polls, simulated, until, values

KINDS = pytest.mark.parametrize(
    "settings",
    [
        {"partition_assignment_strategy": ["range"]},
        {"partition_assignment_strategy": ["cooperative-sticky"]},
        {"group_protocol": "consumer"},
    ],
    ids=["eager", "cooperative", "new"],
)


@KINDS
@pytest.mark.parametrize("failing", ["on_partitions_revoked", "on_partitions_assigned"])
def test_a_listener_that_raises_does_not_stop_the_rebalance(settings: dict[str, Any], failing: str) -> None:
    class Failing(Diary):
        pass

    def fails(listener: Diary, partitions: list[TopicPartition]) -> None:
        getattr(Diary, failing)(listener, partitions)
        raise ValueError("the listener's own mistake")

    setattr(Failing, failing, fails)

    async def scenario(world: World, node: SimulatedNode) -> None:
        first = await consumer(world, "first", group_id="g", **settings)
        first.subscribe(["t"], listener=Failing())
        second = await consumer(world, "second", group_id="g", **settings)
        errors: list[Exception] = []
        seen: list[ConsumerRecord] = []
        tasks = [world.start_task(polls(first, seen, errors))]
        await until(lambda: len(first.assignment()) == 4)
        second.subscribe(["t"])
        tasks.append(world.start_task(polls(second, seen)))
        await until(lambda: len(first.assignment()) == len(second.assignment()) == 2)
        await fill(world, 8, partitions=4)
        await until(lambda: sorted(values(seen)) == list(range(8)))
        assert errors
        assert {type(error) for error in errors} == {ValueError}
        for task in tasks:
            task.cancel()
        await second.close()
        if failing == "on_partitions_revoked":
            with pytest.raises(ValueError, match="mistake"):
                await first.close()
        else:
            await first.close()

    simulated(scenario, partitions=4)


@KINDS
def test_a_poll_that_is_cancelled_in_a_listener_is_taken_up_by_the_next(settings: dict[str, Any]) -> None:
    class Stuck(Diary):
        """Hears nothing to the end the first time."""

        def __init__(self) -> None:
            super().__init__()
            self.stuck: list[str] = []
            self.is_stuck = asyncio.Event()

        async def _once(self, what: str) -> None:
            if what not in self.stuck:
                self.stuck.append(what)
                self.is_stuck.set()
                await asyncio.Event().wait()

        async def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            await self._once("assigned")
            super().on_partitions_assigned(partitions)

        async def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            await self._once("revoked")
            super().on_partitions_revoked(partitions)

    async def scenario(world: World, node: SimulatedNode) -> None:
        diary = Stuck()
        first = await consumer(world, "first", group_id="g", **settings)
        first.subscribe(["t"], listener=diary)
        second = await consumer(world, "second", group_id="g", **settings)

        async def cancelled_when_stuck() -> None:
            while True:
                polling = world.start_task(first.poll(0.3))
                stuck = world.start_task(diary.is_stuck.wait())
                await asyncio.wait([polling, stuck], return_when=asyncio.FIRST_COMPLETED)
                polling.cancel()
                stuck.cancel()
                await asyncio.wait([polling, stuck])
                diary.is_stuck.clear()

        tasks = [world.start_task(cancelled_when_stuck())]
        await until(lambda: ("assigned", [0, 1, 2, 3]) in diary.entries)
        second.subscribe(["t"])
        tasks.append(world.start_task(polls(second, [])))
        await until(lambda: len(first.assignment()) == len(second.assignment()) == 2)
        await asyncio.sleep(5)
        for task in tasks:
            task.cancel()
        assert diary.stuck == ["assigned", "revoked"]
        told: set[int] = set()
        for what, partitions in diary.entries:
            told = told | set(partitions) if what == "assigned" else told - set(partitions)
        assert told == {where.partition for where in first.assignment()}
        await first.close()
        await second.close()

    simulated(scenario, partitions=4)


def test_an_assignor_that_raises_leaves_no_leader_that_looks_settled() -> None:
    class Moody(RangeAssignor):
        name = "moody"
        count = 0

        def assign(self, members: Sequence[GroupMember], counts: Mapping[str, int]) -> Assignment:
            self.count += 1
            if self.count == 1:
                raise ZeroDivisionError
            return super().assign(members, counts)

    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        reader = await consumer(world, group_id="g", partition_assignment_strategy=[Moody()])
        reader.subscribe(["t"])
        with pytest.raises(ZeroDivisionError):
            await reader.poll(10.0)
        assert values(await reader.poll(10.0)) == [0, 1, 2]
        await reader.close()

    simulated(scenario)


@PROTOCOLS
@pytest.mark.parametrize("way", ["close", "unsubscribe"])
def test_a_group_is_left_whatever_the_listener_says(protocol: str, way: str) -> None:
    class Failing(Diary):
        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            raise ValueError("the listener's own mistake")

    async def scenario(world: World, node: SimulatedNode) -> None:
        first = await consumer(world, "first", group_id="g", group_protocol=protocol)
        first.subscribe(["t"], listener=Failing())
        while not first.assignment():
            await first.poll(0.5)
        with pytest.raises(ValueError, match="mistake"):
            await getattr(first, way)()
        second = await consumer(world, "second", group_id="g", group_protocol=protocol)
        second.subscribe(["t"])
        start = world.loop.time()
        while not second.assignment():
            await second.poll(0.5)
        assert world.loop.time() - start < 9.0, "sooner than the first's session is over"
        await second.close()
        await first.close()

    simulated(scenario)
