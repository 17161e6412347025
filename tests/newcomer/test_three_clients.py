"""Twenty tests that a newcomer writes: three foreign clients and our own, against the fixtures of the package."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

import strandline.client as asynchronous
import strandline.client.sync as blocking
from strandline.testing import BrokerProcess, Cluster, broker, running_broker

with warnings.catch_warnings():  # it reads files of its own in a way that Python deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as KafkaPythonPartition

SECONDS_MAX = 30.0
VALUES = [b"one", b"two", b"three"]


@pytest.fixture
def bootstrap(strandline_broker: BrokerProcess) -> str:
    return strandline_broker.bootstrap


@pytest.fixture
def topic(strandline_topic: str, strandline_topic_factory: Callable[..., str]) -> str:
    """A topic that exists: a consumer may come first."""
    return strandline_topic_factory(strandline_topic)


def write(bootstrap: str, topic: str, values: list[bytes], **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, **settings})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(SECONDS_MAX) == 0


def read(bootstrap: str, topic: str, count: int, **settings: Any) -> list[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-group",
            "auto.offset.reset": "earliest",
            "log_level": 0,
            **settings,
        }
    )
    consumer.subscribe([topic])
    records: list[Any] = []
    deadline = time.monotonic() + SECONDS_MAX
    try:
        while len(records) < count and time.monotonic() < deadline:
            record = consumer.poll(0.5)
            if record is not None:
                assert record.error() is None, record.error()
                records.append(record)
    finally:
        consumer.close()
    return records


def values_of(records: list[Any]) -> list[bytes]:
    return [record.value() for record in records]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_confluent_reads_what_it_wrote(bootstrap: str, topic: str, codec: str) -> None:
    write(bootstrap, topic, VALUES, **{"compression.type": codec})
    assert values_of(read(bootstrap, topic, 3)) == VALUES


def test_confluent_keeps_keys_headers_and_timestamps(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    now_ms = int(time.time() * 1000)
    producer.produce(topic, b"v", key=b"k", headers=[("trace", b"1")], timestamp=now_ms)
    producer.flush(SECONDS_MAX)
    record = read(bootstrap, topic, 1)[0]
    assert (record.key(), record.headers(), record.timestamp()[1]) == (b"k", [("trace", b"1")], now_ms)


def test_confluent_goes_on_where_its_group_committed(bootstrap: str, topic: str) -> None:
    write(bootstrap, topic, VALUES)
    assert values_of(read(bootstrap, topic, 3)) == VALUES
    write(bootstrap, topic, [b"four"])
    assert values_of(read(bootstrap, topic, 1)) == [b"four"]


def test_confluent_hides_an_aborted_transaction(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(SECONDS_MAX)
    for value, end in ((b"aborted", producer.abort_transaction), (b"committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(SECONDS_MAX)
        end(SECONDS_MAX)
    assert values_of(read(bootstrap, topic, 1)) == [b"committed"]


def test_confluent_creates_lists_and_deletes_topics(bootstrap: str, strandline_topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(strandline_topic, 3)])[strandline_topic].result(SECONDS_MAX)
    assert len(admin.list_topics(strandline_topic).topics[strandline_topic].partitions) == 3
    admin.delete_topics([strandline_topic])[strandline_topic].result(SECONDS_MAX)
    assert strandline_topic not in admin.list_topics().topics


def test_confluent_is_told_what_is_wrong_with_a_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic("no such name!", 1)])
    with pytest.raises(KafkaException, match=r"INVALID_TOPIC|name"):
        created["no such name!"].result(SECONDS_MAX)


def test_aiokafka_reads_what_it_wrote(bootstrap: str, topic: str) -> None:
    async def run() -> list[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value)
        async with AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=f"{topic}-group", auto_offset_reset="earliest"
        ) as consumer:
            return [(await asyncio.wait_for(consumer.getone(), SECONDS_MAX)).value for _ in VALUES]

    assert asyncio.run(run()) == VALUES


def test_aiokafka_commits_a_transaction(bootstrap: str, topic: str) -> None:
    async def run() -> None:
        async with (
            AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic) as producer,
            producer.transaction(),
        ):
            await producer.send_and_wait(topic, b"committed")

    asyncio.run(run())
    assert values_of(read(bootstrap, topic, 1)) == [b"committed"]


def test_aiokafka_shares_a_topic_between_two_members(bootstrap: str, strandline_topic: str) -> None:
    async def run() -> int:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        await admin.create_topics([AioNewTopic(strandline_topic, 4, 1)])
        await admin.close()
        settings = {"bootstrap_servers": bootstrap, "group_id": strandline_topic}
        async with (
            AIOKafkaConsumer(strandline_topic, **settings) as first,
            AIOKafkaConsumer(strandline_topic, **settings) as second,
        ):
            deadline = time.monotonic() + SECONDS_MAX
            while len(first.assignment()) != 2 or len(second.assignment()) != 2:
                assert time.monotonic() < deadline
                await first.getmany(timeout_ms=50)
                await second.getmany(timeout_ms=50)
            return len(first.assignment() | second.assignment())

    assert asyncio.run(run()) == 4


def test_kafka_python_reads_what_it_wrote(bootstrap: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for value in VALUES:
        producer.send(topic, value).get(SECONDS_MAX)
    producer.close()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=f"{topic}-group",
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )
    assert [record.value for _, record in zip(VALUES, consumer, strict=False)] == VALUES
    consumer.close()


def test_kafka_python_finds_offsets_by_time(bootstrap: str, topic: str) -> None:
    write(bootstrap, topic, VALUES)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    place = KafkaPythonPartition(topic, 0)
    assert consumer.end_offsets([place]) == {place: 3}
    assert consumer.offsets_for_times({place: 0})[place].offset == 0
    consumer.close()


def test_kafka_python_administers(bootstrap: str, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    assert topic in admin.list_topics()
    admin.close()


def test_our_blocking_client_reads_what_others_wrote(bootstrap: str, topic: str) -> None:
    write(bootstrap, topic, VALUES)
    with blocking.Consumer(
        topic, bootstrap_servers=bootstrap, group_id=f"{topic}-group", auto_offset_reset="earliest"
    ) as consumer:
        assert [record.value for record in consumer.poll(SECONDS_MAX)] == VALUES


def test_our_asyncio_client_writes_to_an_embedded_broker() -> None:
    async def run() -> int:
        async with broker() as embedded, asynchronous.Producer(bootstrap_servers=embedded.bootstrap) as ours:
            return (await (await ours.send("orders", b"x"))).offset

    assert asyncio.run(run()) == 0


def test_a_cluster_survives_the_loss_of_a_node(strandline_cluster: Cluster) -> None:
    bootstrap = strandline_cluster.bootstrap
    write(bootstrap, "orders", [b"before"], acks="all")
    strandline_cluster.node(1).kill()
    write(bootstrap, "orders", [b"after"], acks="all")
    assert values_of(read(bootstrap, "orders", 2)) == [b"before", b"after"]


@pytest.fixture
def own_broker() -> Iterator[BrokerProcess]:
    with running_broker(num_partitions=3) as started:
        yield started


def test_a_broker_of_ones_own_has_its_settings(own_broker: BrokerProcess) -> None:
    write(own_broker.bootstrap, "auto", [b"x"])
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap})
    assert len(admin.list_topics("auto").topics["auto"].partitions) == 3
