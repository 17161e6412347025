"""Clients that others wrote, and ours, over every protocol and mechanism: records, groups, transactions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer as RdConsumer
from confluent_kafka import Producer as RdProducer

from strandline.client import Consumer, Producer
from strandline.client.sync import Admin as SyncAdmin
from strandline.client.sync import Producer as SyncProducer
from strandline.testing import BrokerProcess
from tests.compat.clients.kafka_python_client import KafkaConsumer, KafkaProducer
from tests.security.kinds import KINDS, name_of, secured_broker

COUNT = 50
# Larger than what is read with its head: regions of files go through TLS too.
VALUE = b"v" * 5000
SECONDS_MAX = 30


@pytest.fixture(scope="module", params=KINDS, ids=name_of)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with secured_broker(request.param, tmp_path_factory.mktemp("security")) as started:
        yield started


def test_confluent_kafka(broker: BrokerProcess, strandline_topic: str) -> None:
    producer = RdProducer({**broker.librdkafka_settings, "transactional.id": strandline_topic})
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    for _ in range(COUNT):
        producer.produce(strandline_topic, VALUE)
    producer.commit_transaction(SECONDS_MAX)
    settings = {"group.id": strandline_topic, "auto.offset.reset": "earliest"}
    consumer = RdConsumer({**broker.librdkafka_settings, **settings})
    consumer.subscribe([strandline_topic])
    values = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(values) < COUNT and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            values.append(message.value())
    consumer.close()
    assert values == [VALUE] * COUNT


def test_kafka_python(broker: BrokerProcess, strandline_topic: str) -> None:
    producer = KafkaProducer(**broker.python_settings)
    for _ in range(COUNT):
        producer.send(strandline_topic, VALUE)
    producer.flush(SECONDS_MAX)
    producer.close()
    consumer = KafkaConsumer(
        strandline_topic,
        group_id=strandline_topic,
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
        **broker.python_settings,
    )
    values = []
    for record in consumer:
        values.append(record.value)
        if len(values) == COUNT:
            break
    consumer.close()
    assert values == [VALUE] * COUNT


async def _aiokafka(settings: dict[str, Any], topic: str) -> list[bytes]:
    producer = AIOKafkaProducer(**settings)
    await producer.start()
    try:
        for _ in range(COUNT):
            await producer.send(topic, VALUE)
        await producer.flush()
    finally:
        await producer.stop()
    consumer = AIOKafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **settings)
    await consumer.start()
    try:
        return [(await asyncio.wait_for(consumer.getone(), SECONDS_MAX)).value for _ in range(COUNT)]
    finally:
        await consumer.stop()


def test_aiokafka(broker: BrokerProcess, strandline_topic: str) -> None:
    assert asyncio.run(_aiokafka(broker.python_settings, strandline_topic)) == [VALUE] * COUNT


async def _own(settings: dict[str, str], topic: str) -> list[bytes]:
    async with Producer(settings) as producer:
        for _ in range(COUNT):
            await producer.send(topic, VALUE)
        await producer.flush()
    values: list[bytes] = []
    consumer = Consumer(settings, group_id=topic, auto_offset_reset="earliest")
    async with consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + SECONDS_MAX
        while len(values) < COUNT and time.monotonic() < deadline:
            values += [record.value for record in await consumer.poll(1.0)]
    return values


def test_own_client(broker: BrokerProcess, strandline_topic: str) -> None:
    assert asyncio.run(_own(broker.client_settings, strandline_topic)) == [VALUE] * COUNT


def test_own_blocking_client(broker: BrokerProcess, strandline_topic: str) -> None:
    with SyncProducer(broker.client_settings) as producer:
        producer.send(strandline_topic, VALUE).result(SECONDS_MAX)
    with SyncAdmin(broker.client_settings) as admin:
        assert strandline_topic in admin.list_topics()
