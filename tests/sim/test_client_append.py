"""How records get into the real producer when they cannot at once: no memory, no metadata, no producer id."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.client.errors import (
    AuthorizationError,
    BufferFullError,
    KafkaError,
    UnknownTopicError,
    error_for,
)
from strandline.client.producer.producer import Producer
from strandline.client.sync.producer_queue import ProducerQueue, SendResult
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import CLIENT_HOST, SimulatedNode, World
from tests.sim.sending import producer_for

NO_TOPICS_BY_USE = {"auto.create.topics.enable": "false"}


def with_producer(test: Callable[[World, SimulatedNode, Producer], Awaitable[None]], **settings: Any) -> None:
    """Runs a test with a producer whose topic `t`, of one partition, is known."""

    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        await create_topic(await world.connect(node), "t", partitions=1)
        producer = producer_for(world, node, **settings)
        await producer.start()
        await (await producer.send("t", b"first"))
        await test(world, node, producer)
        await producer.close(0)

    with World(0) as world:
        world.run(scenario(world, world.add_node(settings=NO_TOPICS_BY_USE)))


# Memory


def test_a_large_record_gets_its_turn_before_small_ones_that_come_later() -> None:
    async def test(world: World, node: SimulatedNode, producer: Producer) -> None:
        world.network.cut(CLIENT_HOST, node.host)
        first = await producer.send("t", bytes(60_000))
        waiting = [world.start_task(producer.send("t", bytes(size))) for size in (90_000, 5000, 4000, 3000)]
        await asyncio.sleep(1)
        assert not any(task.done() for task in waiting), "there is room, but it is not the small ones' turn"
        with pytest.raises(BufferFullError):
            producer.send_nowait("t", b"nor this one's")
        world.network.heal()
        promises = [first, *[await task for task in waiting]]
        assert [(await promise).offset for promise in promises] == [1, 2, 3, 4, 5]

    with_producer(test, **{"buffer.memory": 100_000, "max.block.ms": 60_000, "batch.size": 0})


def test_a_whole_batch_gets_its_turn_too_and_one_that_gives_up_lets_the_others_go_on() -> None:
    async def test(world: World, node: SimulatedNode, producer: Producer) -> None:
        world.network.cut(CLIENT_HOST, node.host)
        await producer.send("t", bytes(90_000))
        times = {"base_timestamp_ms": 0, "max_timestamp_ms": 0}
        waiting = [
            world.start_task(producer.append_batch("t", 0, bytes(size), 1, **times)) for size in (90_000, 20)
        ]
        await asyncio.sleep(1)
        with pytest.raises(BufferFullError):
            producer.send_nowait("t", b"not before those who wait")
        waiting[0].cancel()
        await waiting[1]
        producer.send_nowait("t", b"nobody waits")

    with_producer(test, **{"buffer.memory": 100_000, "max.block.ms": 60_000, "batch.size": 0})


# The producer's id


def test_an_id_that_is_refused_for_good_is_asked_for_once_and_fails_what_waits() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        await create_topic(await world.connect(node), "t", partitions=1)
        producer = producer_for(world, node)
        await producer.start()
        asked = 0

        async def refuse(*_: object, **__: object) -> None:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0.001)
            raise error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no IdempotentWrite")

        producer._cluster.call_any = refuse  # type: ignore[assignment, method-assign]
        promises = [await producer.send("t", b"x"), await producer.send("t", b"y")]
        for promise in promises:
            with pytest.raises(AuthorizationError):
                await promise
        await asyncio.sleep(5)
        assert asked == 1
        with pytest.raises(AuthorizationError):
            await producer.send("t", b"z")
        await producer.close()

    with World(0) as world:
        world.run(scenario(world, world.add_node()))


# The queue of the blocking producer


class Queue:
    """The queue of a blocking producer, filled without threads."""

    def __init__(self, producer: Producer) -> None:
        self.queue = ProducerQueue(producer, None)
        self._items: deque[Any] = deque()

    def put(self, topic: str, value: bytes) -> SendResult:
        result = SendResult(self.queue)
        self._items.append((result, (topic, value, None, None, None, None), 0))
        return result

    def put_marker(self) -> asyncio.Future[None]:
        marker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._items.append((None, marker, 0))
        return marker

    async def take(self) -> None:
        while self._items:
            await self.queue.take(self._items)


async def settled(results: list[SendResult]) -> list[KafkaError | None]:
    for result in results:
        await result._completed()
    return [result._error for result in results]


def test_a_topic_that_is_not_known_keeps_nobody_else_waiting_and_each_record_only_max_block_ms() -> None:
    async def test(world: World, node: SimulatedNode, producer: Producer) -> None:
        queue = Queue(producer)
        unknown = [queue.put("nope", b"x") for _ in range(5)]
        known = [queue.put("t", b"x") for _ in range(5)]
        begun_at = world.loop.time()
        await queue.take()
        assert await settled(known) == [None] * 5
        assert world.loop.time() - begun_at < 1
        reached = queue.put_marker()
        await queue.take()
        assert not reached.done(), "deferred records comes before it"
        assert all(isinstance(error, UnknownTopicError) for error in await settled(unknown))
        assert 1.9 < world.loop.time() - begun_at < 2.5
        assert isinstance(queue.queue.first_refusal, UnknownTopicError)
        await reached

    with_producer(test, **{"max.block.ms": 2000})


def test_records_of_a_topic_keep_their_order_though_its_metadata_comes_late() -> None:
    async def test(world: World, node: SimulatedNode, producer: Producer) -> None:
        queue = Queue(producer)
        results = []
        for number in range(40):
            results.append(queue.put("late", b"%d" % number))
            await queue.take()
            await asyncio.sleep(0.05)
            if number == 10:
                await create_topic(await world.connect(node), "late", partitions=1)
                await producer.partitions_for(
                    "late"
                )  # now it is known, while records wait for their next look
        assert await settled(results) == [None] * 40
        offsets = [result.result().offset for result in results]
        assert offsets == list(range(40))

    with_producer(test, **{"max.block.ms": 20_000})


def test_a_waiter_hears_of_its_record_although_a_later_one_of_its_topic_still_waits() -> None:
    async def test(world: World, node: SimulatedNode, producer: Producer) -> None:
        queue = Queue(producer)
        begun_at = world.loop.time()
        results = []
        for _ in range(2):
            results.append(queue.put("nope", b"x"))
            await queue.take()
            await asyncio.sleep(1)
        for result, seconds in zip(results, (2, 3), strict=True):
            await result._completed()
            assert isinstance(result._error, UnknownTopicError)
            assert seconds - 0.1 < world.loop.time() - begun_at < seconds + 0.5

    with_producer(test, **{"max.block.ms": 2000})


def test_without_memory_every_record_of_the_line_fails_after_max_block_ms_and_who_was_taken_hears_of_it() -> (
    None
):
    async def test(world: World, node: SimulatedNode, producer: Producer) -> None:
        world.network.cut(CLIENT_HOST, node.host)
        queue = Queue(producer)
        first = queue.put("t", bytes(90_000))
        others = [queue.put("t", bytes(90_000)) for _ in range(20)]
        begun_at = world.loop.time()
        heard = world.start_task(queue.queue.progress())
        taking = world.start_task(queue.take())
        await heard
        assert world.loop.time() - begun_at < 0.1
        assert first._promise is not None
        await taking
        assert all(isinstance(result._error, BufferFullError) for result in others)
        assert 1.9 < world.loop.time() - begun_at < 2.5

    with_producer(test, **{"max.block.ms": 2000, "buffer.memory": 100_000})


def test_very_many_records_of_unknown_topics_stop_the_line_until_they_have_failed() -> None:
    async def test(world: World, node: SimulatedNode, producer: Producer) -> None:
        queue = Queue(producer)
        unknown = [queue.put(f"nope-{number % 2}", bytes(40_000)) for number in range(10)]
        later = queue.put("t", b"x")
        begun_at = world.loop.time()
        taking = world.start_task(queue.take())
        await asyncio.sleep(1)
        assert later._promise is None, "the memory of deferred records is bounded"
        await taking
        assert all(isinstance(error, UnknownTopicError) for error in await settled(unknown))
        assert await settled([later]) == [None]
        assert world.loop.time() - begun_at < 2.5

    with_producer(test, **{"max.block.ms": 2000, "buffer.memory": 100_000})
