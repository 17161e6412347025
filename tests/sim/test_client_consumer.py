"""The real consumer in the simulated world: polls that wait for long, commits, and brokers that are away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.errors import ClosedError, CommitFailedError, IllegalStateError, KafkaTimeoutError
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import CLIENT_HOST, SimulatedNode, World
from tests.sim.consuming import HERE, PROTOCOLS, Diary, consumer, fill, polls, simulated, until, values

# A poll that waits


@PROTOCOLS
def test_waiting_in_one_long_poll_counts_as_polling(protocol: str) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        diary, seen = Diary(), []
        reader = await consumer(
            world,
            group_id="g",
            group_protocol=protocol,
            max_poll_interval_ms=5_000,
            auto_commit_interval_ms=2_000,
        )
        reader.subscribe(["t"], listener=diary)

        async def application() -> None:
            async for record in reader:
                seen.append(int(record.value))

        task = world.start_task(application())
        await until(lambda: len(seen) == 3)
        await asyncio.sleep(60)
        assert "poll-interval-exceeded-total" not in reader.metrics()
        assert [what for what, _ in diary.entries] == ["assigned"]
        committed = await reader.committed([HERE])
        assert committed[HERE] is not None, "what earlier polls gave is committed while the next one waits"
        assert committed[HERE].offset == 3
        await reader.close()
        await task
        assert seen == [0, 1, 2]

    simulated(scenario)


def test_a_partition_is_read_while_its_group_takes_long_to_rebalance() -> None:
    """A cooperative member keeps what it has, also inside of one poll."""

    async def scenario(world: World, node: SimulatedNode) -> None:
        settings: dict[str, Any] = {
            "group_id": "g",
            "partition_assignment_strategy": ["cooperative-sticky"],
            "heartbeat_interval_ms": 3000,
        }
        first = await consumer(world, "first", **settings)
        first.subscribe(["t"])
        second = await consumer(world, "second", **settings)
        second.subscribe(["t"])
        seen: list[ConsumerRecord] = []
        task = world.start_task(polls(first, seen))
        await until(lambda: len(first.assignment()) == 2)
        await second.poll(1.0)
        await until(lambda: len(first.assignment()) == 1)
        task.cancel()
        # The second does not come to the next rebalance for as long as it may.
        first.enforce_rebalance()
        waiting = world.start_task(first.poll(100.0))
        await asyncio.sleep(5)
        assert not waiting.done()
        await fill(world, 2, partitions=2)
        await until(waiting.done, 0.5)
        assert len(waiting.result()) == 1
        await second.close()
        await first.close()

    simulated(scenario, partitions=2)


def test_a_position_that_moves_while_it_is_looked_up_is_noticed() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        reader = await consumer(world, auto_offset_reset="latest")
        reader.assign([HERE])
        assert reader._engine is not None
        log, ask = reader._engine.log, reader._engine.log.try_timestamps

        async def slowly(*question: Any) -> Any:
            found = await ask(*question)
            await asyncio.sleep(1.0)
            return found

        log.try_timestamps = slowly  # type: ignore[method-assign]
        waiting = world.start_task(reader.getone())
        await asyncio.sleep(0.5)
        reader.seek_to_beginning(HERE)
        await until(waiting.done, 10.0)
        assert waiting.result().offset == 0
        await reader.close()

    simulated(scenario)


# Commits


def test_automatic_commits_are_made_while_a_poll_waits() -> None:
    """This holds without a group too, whose heartbeats would interrupt the wait."""

    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        reader = await consumer(world, group_id="g", auto_commit_interval_ms=2_000)
        reader.assign([HERE])
        assert values(await reader.poll(10.0)) == [0, 1, 2]
        waiting = world.start_task(reader.poll(100.0))
        await asyncio.sleep(5)
        assert (await reader.committed([HERE]))[HERE].offset == 3  # type: ignore[union-attr]
        waiting.cancel()
        await reader.close()

    simulated(scenario)


@PROTOCOLS
def test_a_consumer_that_lost_its_membership_commits_nothing(protocol: str) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        settings: dict[str, Any] = {"group_id": "g", "group_protocol": protocol}
        slow = await consumer(world, "slow", enable_auto_commit=False, max_poll_interval_ms=3_000, **settings)
        slow.subscribe(["t"])
        with pytest.raises(CommitFailedError):
            await slow.commit({HERE: 1})
        while not await slow.poll(1.0, max_records=1):
            pass
        generation = slow.group_metadata.generation_id
        await until(lambda: "poll-interval-exceeded-total" in slow.metrics())
        other = await consumer(world, "other", **settings)
        other.subscribe(["t"])
        while not await other.poll(1.0):
            pass
        await other.close()
        with pytest.raises(CommitFailedError):
            await slow.commit()
        assert (await slow.committed([HERE]))[HERE].offset == 3  # type: ignore[union-attr]
        # A transaction must name the generation that is over, so that it is refused.
        assert slow.group_metadata.generation_id == generation
        await slow.close()

    simulated(scenario)


@PROTOCOLS
def test_nothing_is_committed_automatically_by_who_is_no_member(protocol: str) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        reader = await consumer(
            world,
            group_id="g",
            group_protocol=protocol,
            max_poll_interval_ms=3_000,
            auto_commit_interval_ms=1_000,
        )
        reader.subscribe(["t"])
        while not await reader.poll(1.0):
            pass
        await until(lambda: "poll-interval-exceeded-total" in reader.metrics())
        await reader.poll(0.0)  # enough to notice, and to begin to join again
        await asyncio.sleep(2)
        assert (await reader.committed([HERE]))[HERE] is None
        assert "commit-failed-total" not in reader.metrics()
        await reader.close()

    simulated(scenario)


def test_a_commit_that_is_waited_for_comes_after_those_asked_for_before() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        reader = await consumer(world, group_id="g", enable_auto_commit=False)
        reader.assign([HERE])
        await reader.commit({HERE: 1})
        earlier = reader.commit_async({HERE: 10})
        await reader.commit({HERE: 20})
        await earlier
        assert (await reader.committed([HERE]))[HERE].offset == 20  # type: ignore[union-attr]
        node.kill()
        earlier = reader.commit_async({HERE: 30})  # tried again until the broker is back
        later = world.start_task(reader.commit({HERE: 40}))
        await asyncio.sleep(5)
        await node.start()
        await earlier
        await later
        assert (await reader.committed([HERE]))[HERE].offset == 40  # type: ignore[union-attr]
        await reader.close()

    simulated(scenario)


# Interceptors


def test_an_interceptor_that_raises_loses_nothing() -> None:
    class Broken:
        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            raise ValueError("monitoring")

        def on_commit(self, offsets: Any) -> None:
            raise ValueError("monitoring")

    class Plain:
        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            return [record._replace(value=b"1" + record.value) for record in records]

    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        reader = await consumer(world, group_id="g", interceptor_classes=[Broken(), Plain()])
        reader.assign([HERE])
        assert values(await reader.poll(10.0)) == [10, 11, 12]
        await reader.commit()
        assert reader.metrics()["interceptor-failed-total"] == 2
        assert "commit-failed-total" not in reader.metrics()
        await reader.close()

    simulated(scenario)


# Positions


def test_a_partition_without_a_leader_does_not_stop_the_others() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        nowhere = TopicPartition("t", 7)
        reader = await consumer(world)
        reader.assign([HERE, nowhere])
        start = world.loop.time()
        assert values(await reader.poll(10.0)) == [0, 1, 2]
        assert world.loop.time() - start < 2.0
        assert await reader.poll(120.0) == [], "it may come to be"
        with pytest.raises(KafkaTimeoutError, match="1 partitions"):
            await reader.position(nowhere, timeout=3.0)
        await reader.close()

    simulated(scenario)


def test_a_broker_that_is_away_does_not_stop_the_partitions_of_the_others() -> None:
    async def scenario(world: World) -> None:
        await world.start_all()
        await create_topic(await world.connect_any(), "t", partitions=6)
        await fill(world, 6, partitions=6)
        reader = await consumer(world)
        info = await reader.partitions_for("t")
        assert reader._engine is not None
        leader = reader._engine.cluster.metadata.leader
        away = world.nodes[3]
        theirs = [where.partition for where in info if leader(where).node_id == 3]  # type: ignore[union-attr]
        assert 0 < len(theirs) < 6
        world.network.cut(CLIENT_HOST, away.host)
        reader.assign(info)
        seen: list[ConsumerRecord] = []
        start = world.loop.time()
        while len(seen) < 6 - len(theirs):
            seen += await reader.poll(1.0)
        assert world.loop.time() - start < 5.0
        world.network.heal()
        while len(seen) < 6:
            seen += await reader.poll(1.0)
        assert sorted(values(seen)) == list(range(6))
        await reader.close()

    with World(1) as world:
        world.add_cluster()
        world.run(scenario(world))


# Closing


@pytest.mark.parametrize("way", ["close", "unsubscribe"])
@PROTOCOLS
def test_a_poll_that_joins_while_another_task_unsubscribes_is_told_so(protocol: str, way: str) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        reader = await consumer(world, group_id="g", group_protocol=protocol)
        reader.subscribe(["t"])
        ended: list[str] = []

        async def application() -> None:
            try:
                async for _ in reader:
                    pass
                ended.append("closed")
            except IllegalStateError:
                ended.append("unsubscribed")

        task = world.start_task(application())
        await asyncio.sleep(0.01)
        node.kill()
        await asyncio.sleep(0.5)
        await (reader.close(1.0) if way == "close" else reader.unsubscribe())
        await until(task.done, 5.0)
        task.result()
        assert ended == [f"{way}d"]
        assert reader.assignment() == set()
        await reader.close(1.0)

    simulated(scenario)


def test_a_position_that_is_waited_for_while_the_consumer_is_closed_is_not_found() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        reader = await consumer(world)
        reader.assign([HERE])
        node.kill()
        waiting = world.start_task(reader.position(HERE))
        await asyncio.sleep(0.5)
        await reader.close(1.0)
        with pytest.raises(ClosedError):
            await waiting

    simulated(scenario)
