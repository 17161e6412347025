"""kafka-python works with the broker."""

from __future__ import annotations

import time

import pytest

from tests.compat.clients.interface import CALL_TIMEOUT_S, eventually
from tests.compat.clients.kafka_python_client import (
    ConfigResource,
    ConfigResourceType,
    KafkaConsumer,
    KafkaPythonClient,
    TopicPartition,
    received_from,
)
from tests.compat.contract import ClientContract
from tests.compat.records import BASE_TIMESTAMP_MS, Sample, numbered
from tests.compat.server import CreateTopic, Server


@pytest.fixture
def client(server: Server) -> KafkaPythonClient:
    return KafkaPythonClient(server.bootstrap)


class TestKafkaPython(ClientContract):
    """The tests that every client passes."""


def test_fetch_session_returns_only_changes_since_the_last_fetch(
    client: KafkaPythonClient, create: CreateTopic, topic: str
) -> None:
    """The consumer asks incrementally (KIP-227) after its first fetch, whichever partition grows next."""
    create(topic, partitions=30)
    places = [TopicPartition(topic, partition) for partition in range(30)]
    with client.consumer(auto_offset_reset="earliest") as consumer, client.producer() as producer:
        consumer.assign(places)
        for round_number, partition in enumerate((3, 29, 3, 0, 17)):
            value = f"round {round_number}".encode()
            producer.send(topic, value, partition=partition).get(timeout=CALL_TIMEOUT_S)
            ((place, records),) = _poll(consumer).items()
            assert (place.partition, [record.value for record in records]) == (partition, [value])


def test_consumer_goes_to_the_beginning_and_to_the_end(
    client: KafkaPythonClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    client.write(topic, numbered(10))
    place = TopicPartition(topic, 0)
    with client.consumer() as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        assert consumer.position(place, timeout_ms=10_000) == 0
        assert received_from(_poll(consumer)[place][0]).sample == numbered(10)[0]
        consumer.seek_to_end(place)
        assert consumer.position(place, timeout_ms=10_000) == 10


def test_acknowledgement_carries_the_time_of_the_broker(
    client: KafkaPythonClient, create: CreateTopic, topic: str
) -> None:
    create(topic, configs={"message.timestamp.type": "LogAppendTime"})
    before_ms = int(time.time() * 1000)
    with client.producer() as producer:
        metadata = producer.send(topic, b"v", partition=0, timestamp_ms=5).get(timeout=CALL_TIMEOUT_S)
    assert before_ms <= metadata.timestamp <= int(time.time() * 1000)


def test_topic_can_be_created_with_an_assignment_of_replicas(client: KafkaPythonClient, topic: str) -> None:
    broker = client.describe_cluster().controller
    with client.admin() as admin:
        admin.create_topics({topic: {"assignments": {0: [broker], 1: [broker]}}})
    described = eventually(lambda: client.describe_topic(topic), lambda found: len(found) == 2)
    assert all(partition.replicas == (broker,) for partition in described.values())


def test_partitions_are_described_page_by_page(client: KafkaPythonClient, topic: str) -> None:
    client.create_topic(topic, partitions=5)
    eventually(lambda: client.describe_topic(topic), lambda found: len(found) == 5)
    seen: list[int] = []
    cursor = None
    with client.admin() as admin:
        for _ in range(3):
            page = admin.describe_topic_partitions([topic], response_partition_limit=2, cursor=cursor)
            seen.extend(partition["partition_index"] for partition in page["topics"][0]["partitions"])
            cursor = page["next_cursor"]
    assert seen == [0, 1, 2, 3, 4]
    assert cursor is None


def test_config_with_synonyms_lists_override_and_default(client: KafkaPythonClient, topic: str) -> None:
    client.create_topic(topic, configs={"max.message.bytes": "5000"})
    eventually(
        lambda: client.describe_topic_configs(topic), lambda found: found["max.message.bytes"] == "5000"
    )
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"max.message.bytes": None})
    with client.admin() as admin:
        described = admin.describe_configs([resource], include_synonyms=True, config_filter="all")
    assert list(described["topic"][topic]) == ["max.message.bytes"], "only the key that was asked for"
    synonyms = described["topic"][topic]["max.message.bytes"]["synonyms"]
    assert [(each["name"], each["value"], each["source"]) for each in synonyms] == [
        ("max.message.bytes", "5000", "DYNAMIC_TOPIC_CONFIG"),
        ("message.max.bytes", "1048588", "DEFAULT_CONFIG"),
    ]


def test_offset_of_the_largest_timestamp_is_found(
    client: KafkaPythonClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    latest = Sample(value=b"latest", timestamp_ms=BASE_TIMESTAMP_MS + 1_000_000)
    client.write(topic, [*numbered(5), latest, *numbered(5)])
    place = TopicPartition(topic, 0)
    with client.admin() as admin:
        found = admin.list_partition_offsets({place: -3})[place]
    assert (found.offset, found.timestamp) == (5, latest.timestamp_ms)


def test_producers_of_a_partition_are_described(
    client: KafkaPythonClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    client.write(topic, numbered(12), idempotent=True)
    place = TopicPartition(topic, 0)
    with client.admin() as admin:
        (producer,) = admin.describe_producers([place])[place].active_producers
    assert producer.last_sequence == 11
    assert producer.last_timestamp == numbered(12)[-1].timestamp_ms


def _poll(consumer: KafkaConsumer) -> dict[TopicPartition, list[object]]:
    """Returns the records of the next fetch that brings any."""
    deadline = time.monotonic() + CALL_TIMEOUT_S
    while time.monotonic() < deadline:
        if polled := consumer.poll(timeout_ms=1000):
            return polled
    raise AssertionError("no record came in time")
