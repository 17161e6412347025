"""aiokafka works with the broker."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiokafka import TopicPartition

from tests.compat.clients.aiokafka_client import AiokafkaClient, received_from
from tests.compat.clients.interface import CALL_TIMEOUT_S, eventually
from tests.compat.contract import ClientContract
from tests.compat.records import numbered
from tests.compat.server import CreateTopic, Server


@pytest.fixture
def client(server: Server) -> AiokafkaClient:
    return AiokafkaClient(server.bootstrap)


class TestAiokafka(ClientContract):
    """The tests that every client passes."""


def test_consumer_keeps_up_with_a_producer_that_is_still_writing(
    client: AiokafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    samples = numbered(1000)

    async def write() -> None:
        async with client.producer() as producer:
            for start in range(0, 1000, 100):
                pending = [
                    await producer.send(topic, each.value, each.key, 0, each.timestamp_ms)
                    for each in samples[start : start + 100]
                ]
                await asyncio.gather(*pending)

    async def read() -> tuple[object, ...]:
        async with client.consumer() as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), 0)
            return tuple([received_from(await consumer.getone()).sample for _ in range(1000)])

    async def both() -> tuple[object, ...]:
        _, received = await asyncio.wait_for(asyncio.gather(write(), read()), CALL_TIMEOUT_S)
        return received

    assert asyncio.run(both()) == samples


def test_many_producers_on_one_partition_lose_nothing_and_keep_their_own_order(
    client: AiokafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)

    async def write(name: int) -> None:
        async with client.producer(enable_idempotence=True) as producer:
            for number in range(50):
                await producer.send(topic, f"{name}:{number}".encode(), partition=0)

    async def write_all() -> None:
        await asyncio.wait_for(asyncio.gather(*(write(name) for name in range(5))), CALL_TIMEOUT_S)

    asyncio.run(write_all())
    received = [str(each.sample.value, "ascii").split(":") for each in client.read(topic, count=250)]
    for name in range(5):
        assert [int(number) for who, number in received if int(who) == name] == list(range(50))


def test_waiting_consumer_gets_a_record_when_it_is_written(
    client: AiokafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)

    async def scenario() -> float:
        async with client.consumer(fetch_max_wait_ms=20_000) as consumer, client.producer() as producer:
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), 0)
            waiting = asyncio.create_task(consumer.getone())
            # Let the fetch reach the broker first.
            await asyncio.sleep(0.3)
            written_at = time.monotonic()
            await producer.send_and_wait(topic, b"at last", partition=0)
            assert (await asyncio.wait_for(waiting, CALL_TIMEOUT_S)).value == b"at last"
            return time.monotonic() - written_at

    assert asyncio.run(scenario()) < 10.0


def test_acknowledgement_carries_offset_and_time(
    client: AiokafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic, configs={"message.timestamp.type": "LogAppendTime"})

    async def scenario() -> tuple[int, int]:
        async with client.producer() as producer:
            await producer.send_and_wait(topic, b"first", partition=0)
            metadata = await producer.send_and_wait(topic, b"second", partition=0, timestamp_ms=5)
            return metadata.offset, metadata.timestamp

    before_ms = int(time.time() * 1000)
    offset, timestamp_ms = asyncio.run(scenario())
    assert offset == 1
    assert before_ms <= timestamp_ms <= int(time.time() * 1000)


def test_alter_configs_resets_settings_that_it_does_not_name(client: AiokafkaClient, topic: str) -> None:
    """aiokafka sends the old AlterConfigs, which states the whole set of overrides."""
    client.create_topic(topic, configs={"max.message.bytes": "5000"})
    eventually(
        lambda: client.describe_topic_configs(topic), lambda found: found["max.message.bytes"] == "5000"
    )
    client.alter_topic_configs(topic, {"retention.ms": "86400000"})
    configs = eventually(
        lambda: client.describe_topic_configs(topic), lambda found: found["retention.ms"] == "86400000"
    )
    assert configs["max.message.bytes"] == "1048588"
