"""With auto.create.topics.enable=false no client creates a topic by using its name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import KafkaError, Message

from tests.compat.clients.aiokafka_client import AiokafkaClient
from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient
from tests.compat.clients.interface import CALL_TIMEOUT_S, Refused
from tests.compat.clients.java_client import JavaClient
from tests.compat.clients.kafka_python_client import KafkaError as KafkaPythonError
from tests.compat.clients.kafka_python_client import KafkaPythonClient
from tests.compat.records import numbered
from tests.compat.server import PrivateServer, Server
from tests.oracle.java_worker import JavaWorker

GIVE_UP_MS = 1000


@pytest.fixture(scope="module")
def strict(private_server: PrivateServer) -> Iterator[Server]:
    with private_server({"auto.create.topics.enable": "false"}) as server:
        yield server


@pytest.fixture
def admin(strict: Server) -> ConfluentKafkaClient:
    return ConfluentKafkaClient(strict.bootstrap)


def test_confluent_kafka_cannot_write_to_an_unknown_topic(admin: ConfluentKafkaClient, topic: str) -> None:
    outcome: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        outcome.append(error)

    producer = admin.producer(topic_metadata_propagation_max_ms=GIVE_UP_MS)
    producer.produce(topic, b"v", on_delivery=delivered)
    assert producer.flush(CALL_TIMEOUT_S) == 0
    (error,) = outcome
    assert error is not None
    assert error.code() in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)
    assert topic not in admin.list_topics()


def test_kafka_python_cannot_write_to_an_unknown_topic(
    strict: Server, admin: ConfluentKafkaClient, topic: str
) -> None:
    with (
        KafkaPythonClient(strict.bootstrap).producer(max_block_ms=GIVE_UP_MS) as producer,
        pytest.raises(KafkaPythonError),
    ):
        producer.send(topic, b"v").get(timeout=CALL_TIMEOUT_S)
    assert topic not in admin.list_topics()


def test_aiokafka_cannot_write_to_an_unknown_topic(
    strict: Server, admin: ConfluentKafkaClient, topic: str
) -> None:
    async def write() -> None:
        async with AiokafkaClient(strict.bootstrap).producer(request_timeout_ms=GIVE_UP_MS) as producer:
            await asyncio.wait_for(producer.send_and_wait(topic, b"v"), CALL_TIMEOUT_S)

    with pytest.raises(AiokafkaError):
        asyncio.run(write())
    assert topic not in admin.list_topics()


@pytest.mark.oracle
@pytest.mark.xdist_group("apache-kafka")
def test_java_producer_cannot_write_to_an_unknown_topic(
    strict: Server, admin: ConfluentKafkaClient, java_worker: JavaWorker, topic: str
) -> None:
    java = JavaClient(strict.bootstrap, java_worker)
    with pytest.raises(Refused):
        java.call(
            "write",
            topic=topic,
            partition=None,
            records=[{"key": None, "value": None, "headers": [], "timestamp_ms": None}],
            settings={"max.block.ms": str(GIVE_UP_MS)},
        )
    assert topic not in admin.list_topics()


def test_consumer_that_may_create_topics_hears_that_one_is_unknown(
    admin: ConfluentKafkaClient, topic: str
) -> None:
    with admin.consumer(allow_auto_create_topics=True) as consumer:
        described = consumer.list_topics(topic, timeout=CALL_TIMEOUT_S).topics[topic]
    assert described.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert topic not in admin.list_topics()


def test_topic_that_was_created_can_be_written(admin: ConfluentKafkaClient, topic: str) -> None:
    admin.create_topic(topic)
    assert [each.offset for each in admin.write(topic, numbered(3))] == [0, 1, 2]
