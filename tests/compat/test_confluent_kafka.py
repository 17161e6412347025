"""confluent-kafka, and so librdkafka, works with the broker."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient, received_from
from tests.compat.clients.interface import CALL_TIMEOUT_S, eventually
from tests.compat.contract import ClientContract
from tests.compat.records import BASE_TIMESTAMP_MS, Sample, numbered
from tests.compat.server import CreateTopic, Server


@pytest.fixture
def client(server: Server) -> ConfluentKafkaClient:
    return ConfluentKafkaClient(server.bootstrap)


class TestConfluentKafka(ClientContract):
    """The tests that every client passes."""


def test_waiting_fetch_gets_a_record_as_soon_as_it_arrives(
    client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    client.write(topic, numbered(1))
    with client.consumer(fetch_wait_max_ms=20_000) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert _next_message(consumer.poll(CALL_TIMEOUT_S)).offset() == 0
        assert consumer.poll(0.2) is None, "the second fetch has nothing to return yet"
        written_at = time.monotonic()
        client.write(topic, numbered(1))
        assert _next_message(consumer.poll(CALL_TIMEOUT_S)).offset() == 1
        assert time.monotonic() - written_at < 10.0, "it waited for its deadline instead of the record"


def test_end_of_partition_is_reported_after_the_last_record(
    client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    client.write(topic, numbered(3))
    with client.consumer(enable_partition_eof=True) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        offsets = [_next_message(consumer.poll(CALL_TIMEOUT_S)).offset() for _ in range(3)]
        end = consumer.poll(CALL_TIMEOUT_S)
    assert offsets == [0, 1, 2]
    assert end is not None
    assert end.error().code() == KafkaError._PARTITION_EOF
    assert end.offset() == 3


def test_consumer_seeks_back_and_forth(client: ConfluentKafkaClient, create: CreateTopic, topic: str) -> None:
    create(topic)
    client.write(topic, numbered(10))
    with client.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        for offset in (0, 7, 2, 9):
            consumer.seek(TopicPartition(topic, 0, offset))
            message = _next_message(consumer.poll(CALL_TIMEOUT_S))
            assert message.offset() == offset
            assert received_from(message).sample == numbered(10)[offset]


def test_watermarks_are_log_start_and_high_watermark(
    client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    client.write(topic, numbered(10))
    client.delete_records(topic, {0: 4})
    with client.consumer() as consumer:
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=CALL_TIMEOUT_S) == (4, 10)


def test_consumer_that_asks_for_an_unknown_topic_does_not_create_it(
    client: ConfluentKafkaClient, topic: str
) -> None:
    with client.consumer() as consumer:
        described = consumer.list_topics(topic, timeout=CALL_TIMEOUT_S).topics[topic]
    assert described.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert topic not in client.list_topics()


def test_idempotent_producer_keeps_order_over_many_batches_in_flight(
    client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    samples = numbered(5000)
    producer = client.producer(enable_idempotence=True, batch_num_messages=50)
    for sample in samples:
        producer.produce(topic, sample.value, sample.key, partition=0, timestamp=sample.timestamp_ms)
    assert producer.flush(CALL_TIMEOUT_S) == 0
    assert tuple(each.sample for each in client.read(topic, count=5000)) == samples


def test_one_consumer_reads_several_topics_and_partitions(
    client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    places = [(f"{topic}-{name}", partition) for name in "ab" for partition in range(3)]
    for name in "ab":
        create(f"{topic}-{name}", partitions=3)
    for name, partition in places:
        client.write(name, numbered(20), partition=partition)
    received: dict[tuple[str, int], list[Sample]] = {place: [] for place in places}
    deadline = time.monotonic() + CALL_TIMEOUT_S
    with client.consumer() as consumer:
        consumer.assign([TopicPartition(name, partition, 0) for name, partition in places])
        while any(len(samples) < 20 for samples in received.values()):
            assert time.monotonic() < deadline
            for message in consumer.consume(100, timeout=1.0):
                place = (message.topic(), message.partition())
                received[place].append(received_from(_next_message(message)).sample)
    assert all(tuple(samples) == numbered(20) for samples in received.values())


def test_validated_topic_is_not_created(client: ConfluentKafkaClient, topic: str) -> None:
    answer = client.admin.create_topics([NewTopic(topic, 3, 1)], validate_only=True)[topic]
    answer.result(CALL_TIMEOUT_S)
    assert topic not in client.list_topics()


def test_topic_has_the_default_partition_count_if_none_is_given(
    client: ConfluentKafkaClient, topic: str
) -> None:
    client.admin.create_topics([NewTopic(topic, -1, -1)])[topic].result(CALL_TIMEOUT_S)
    eventually(lambda: client.describe_topic(topic), lambda found: len(found) == 1)


def test_config_returns_to_its_default_when_its_override_is_deleted(
    client: ConfluentKafkaClient, topic: str
) -> None:
    client.create_topic(topic, configs={"retention.ms": "86400000", "max.message.bytes": "5000"})
    deletion = ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[deletion])
    client.admin.incremental_alter_configs([resource])[resource].result(CALL_TIMEOUT_S)
    configs = eventually(
        lambda: client.describe_topic_configs(topic), lambda found: found["retention.ms"] == "604800000"
    )
    assert configs["max.message.bytes"] == "5000"


def test_offset_of_the_largest_timestamp_is_found(
    client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    latest = Sample(value=b"latest", timestamp_ms=BASE_TIMESTAMP_MS + 1_000_000)
    client.write(topic, [*numbered(5), latest, *numbered(5)])
    place = TopicPartition(topic, 0)
    found = client.admin.list_offsets({place: OffsetSpec.max_timestamp()})[place].result(CALL_TIMEOUT_S)
    assert (found.offset, found.timestamp) == (5, latest.timestamp_ms)


def _next_message(message: Message | None) -> Message:
    assert message is not None, "nothing came in time"
    assert message.error() is None, message.error()
    return message
