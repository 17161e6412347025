"""The real consumer's rebalances in the simulated world: listeners and assignors of the application fail."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.consumer.group.assignors import Assignment, MemberSubscription, RangeAssignor
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.errors import ClosedError, FencedInstanceError, error_for
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import SimulatedNode, World
from tests.sim.consuming import HERE, PROTOCOLS, Diary, consumer, fill, polls, simulated, until, values

KINDS = pytest.mark.parametrize(
    "settings",
    [
        {"partition_assignment_strategy": ["range"]},
        {"partition_assignment_strategy": ["cooperative-sticky"]},
        {"group_protocol": "consumer"},
    ],
    ids=["eager", "cooperative", "new"],
)


class Stuck(Diary):
    """Hears nothing to the end the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.stuck: list[str] = []
        self.is_stuck = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def _once(self, what: str) -> None:
        if what not in self.stuck:
            self.stuck.append(what)
            self.is_stuck.set()
            await self.may_go_on.wait()

    async def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        await self._once("assigned")
        super().on_partitions_assigned(partitions)

    async def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        await self._once("revoked")
        super().on_partitions_revoked(partitions)


async def polls_unless_stuck(reader: Consumer, listener: Stuck) -> None:
    """Polls that are cancelled as soon as the listener is stuck."""
    while True:
        polling = asyncio.ensure_future(reader.poll(0.3))
        stuck = asyncio.ensure_future(listener.is_stuck.wait())
        await asyncio.wait([polling, stuck], return_when=asyncio.FIRST_COMPLETED)
        polling.cancel()
        stuck.cancel()
        await asyncio.wait([polling, stuck])
        listener.is_stuck.clear()


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
    async def scenario(world: World, node: SimulatedNode) -> None:
        diary = Stuck()
        first = await consumer(world, "first", group_id="g", **settings)
        first.subscribe(["t"], listener=diary)
        second = await consumer(world, "second", group_id="g", **settings)

        tasks = [world.start_task(polls_unless_stuck(first, diary))]
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


@KINDS
def test_a_partition_that_is_not_given_up_after_all_is_read_on(settings: dict[str, Any]) -> None:
    """The poll that was to give partitions up is cancelled, and who wanted them goes."""

    async def scenario(world: World, node: SimulatedNode) -> None:
        diary = Stuck()
        diary.stuck.append("assigned")  # that one is heard at once
        first = await consumer(world, "first", group_id="g", **settings)
        first.subscribe(["t"], listener=diary)
        second = await consumer(world, "second", group_id="g", **settings)
        polling = world.start_task(polls(first, []))
        await until(lambda: len(first.assignment()) == 4)
        second.subscribe(["t"])
        other = world.start_task(polls(second, []))
        await diary.is_stuck.wait()
        polling.cancel()
        other.cancel()
        await asyncio.wait([polling, other])
        await second.close()
        await asyncio.sleep(5)
        await fill(world, 8, partitions=4)
        seen: list[ConsumerRecord] = []
        polling = world.start_task(polls(first, seen))
        await until(lambda: sorted(values(seen)) == list(range(8)))
        polling.cancel()
        await first.close()

    simulated(scenario, partitions=4)


def test_records_that_were_read_while_the_group_rebalanced_are_committed_before_their_partition_goes() -> (
    None
):
    async def scenario(world: World, node: SimulatedNode) -> None:
        await create_topic(await world.connect(node), "u")
        settings: dict[str, Any] = {
            "group_id": "g",
            "partition_assignment_strategy": ["cooperative-sticky"],
            "auto_commit_interval_ms": 3_600_000,
        }
        first = await consumer(world, "first", **settings)
        first.subscribe(["t"])
        slow = await consumer(world, "slow", **settings)
        slow.subscribe(["u"])
        seen: list[ConsumerRecord] = []
        tasks = [world.start_task(polls(first, seen))]
        while len(first.assignment()) < 4 or not slow.assignment():
            await slow.poll(0.3)
        first.enforce_rebalance()  # which waits for the other, who does not poll
        await asyncio.sleep(1)
        await fill(world, 8, partitions=4)
        await until(lambda: len(seen) == 8)
        slow.subscribe(["t"])
        tasks.append(world.start_task(polls(slow, seen)))
        await until(lambda: len(first.assignment()) == len(slow.assignment()) == 2)
        await asyncio.sleep(5)
        assert len(seen) == 8, "nothing is read twice"
        for task in tasks:
            task.cancel()
        await first.close()
        await slow.close()

    simulated(scenario, partitions=4)


@PROTOCOLS
def test_a_consumer_that_unsubscribes_in_its_listener_does_not_join_again(
    protocol: str,
) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        diary = Stuck()
        reader = await consumer(world, group_id="g", group_protocol=protocol)
        reader.subscribe(["t"], listener=diary)
        polling = world.start_task(reader.poll(100.0))
        await diary.is_stuck.wait()
        diary.stuck.append("revoked")
        await reader.unsubscribe()
        diary.may_go_on.set()
        await until(polling.done, 0.5)
        assert polling.result() == []
        assert reader.assignment() == set()
        heartbeats = reader.metrics().get("heartbeat-total", 0)
        await asyncio.sleep(10)
        assert reader.metrics().get("heartbeat-total", 0) == heartbeats
        await reader.close()

    simulated(scenario)


@PROTOCOLS
def test_a_listener_can_commit_when_the_consumer_is_closed_and_not_poll(protocol: str) -> None:
    class Committing(Diary):
        async def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            super().on_partitions_revoked(partitions)
            await reader.commit()
            with pytest.raises(ClosedError):
                await reader.poll()

    async def scenario(world: World, node: SimulatedNode) -> None:
        nonlocal reader
        await fill(world, 3)
        settings: dict[str, Any] = {"group_id": "g", "group_protocol": protocol, "enable_auto_commit": False}
        reader = await consumer(world, **settings)
        reader.subscribe(["t"], listener=Committing())
        while not await reader.poll(1.0):
            pass
        await reader.close()
        with pytest.raises(ClosedError):
            await reader.commit()
        reader = await consumer(world, **settings)
        assert (await reader.committed([HERE]))[HERE].offset == 3  # type: ignore[union-attr]
        await reader.close()

    reader: Consumer
    simulated(scenario)


def test_a_static_member_that_is_replaced_while_its_listener_runs_does_not_join_again() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        diary = Stuck()
        first = await consumer(world, "first", group_id="g", group_instance_id="one")
        first.subscribe(["t"], listener=diary)
        polling = world.start_task(first.poll(100.0))
        await diary.is_stuck.wait()
        second = await consumer(world, "second", group_id="g", group_instance_id="one")
        second.subscribe(["t"])
        errors: list[Exception] = []
        other = world.start_task(polls(second, [], errors))
        await until(lambda: second.assignment() == {HERE})
        await asyncio.sleep(3)
        diary.may_go_on.set()
        with pytest.raises(FencedInstanceError):
            await polling
        await asyncio.sleep(3)
        assert errors == []
        other.cancel()
        await second.close()
        await first.close()

    simulated(scenario)


def test_an_assignment_of_who_was_thrown_out_before_it_polled_is_not_taken() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        diary = Diary()
        reader = await consumer(world, group_id="g", max_poll_interval_ms=3_000)
        reader.subscribe(["t"], listener=diary)
        await reader.poll(0.0)
        await until(lambda: "poll-interval-exceeded-total" in reader.metrics())
        await asyncio.sleep(1)
        await reader.poll(0.0)
        assert diary.entries == []
        await reader.poll(5.0)
        assert diary.entries == [("assigned", [0])]
        await reader.close()

    simulated(scenario)


def test_frequent_polls_do_not_ask_a_failing_coordinator_more_often() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        reader = await consumer(world, group_id="g")
        reader.subscribe(["t"])
        assert reader._engine is not None
        coordinator: Any = reader._engine.membership._coordinator  # type: ignore[union-attr]
        call, calls = coordinator.call, 0

        async def refused(*question: Any, **more: Any) -> Any:
            nonlocal calls
            calls += 1
            raise error_for(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "not yet")

        coordinator.call = refused
        end = world.loop.time() + 5.0
        while world.loop.time() < end:
            await reader.poll(0.01)
        assert 3 < calls < 20
        coordinator.call = call
        await reader.poll(5.0)
        assert reader.assignment() == {HERE}
        await reader.close()

    simulated(scenario)


def test_an_assignor_that_raises_leaves_no_leader_that_looks_settled() -> None:
    class Moody(RangeAssignor):
        name = "moody"
        count = 0

        def assign(self, members: Sequence[MemberSubscription], counts: Mapping[str, int]) -> Assignment:
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
