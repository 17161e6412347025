"""Apache Kafka's own clients for Java work with the broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.clients.interface import ErrorCode, Refused, eventually
from tests.compat.clients.java_client import JavaClient
from tests.compat.contract import ClientContract
from tests.compat.records import BASE_TIMESTAMP_MS, Sample, numbered
from tests.compat.server import CreateTopic, Server
from tests.oracle.fetch import OLD_CLIENTS_JARS
from tests.oracle.java_worker import JavaWorker
from tests.oracle.require import require

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]


@pytest.fixture
def client(server: Server, java_worker: JavaWorker) -> JavaClient:
    return JavaClient(server.bootstrap, java_worker)


class TestJavaClients(ClientContract):
    """The tests that every client passes."""


def test_one_consumer_reads_many_partitions_through_a_fetch_session(
    client: JavaClient, create: CreateTopic, topic: str
) -> None:
    create(topic, partitions=40)
    samples = numbered(2000)
    written = client.write(topic, samples, partition=None)
    expected: dict[int, list[Sample]] = {}
    for sample, place in zip(samples, written, strict=True):
        expected.setdefault(place.partition, []).append(sample)
    read = client.read_partitions(topic, range(40), count=2000)
    assert {place: [each.sample for each in records] for place, records in read.items()} == expected


def test_topic_can_be_described_and_deleted_by_its_id(client: JavaClient, topic: str) -> None:
    client.create_topic(topic, partitions=2)
    described = eventually(
        lambda: client.call("describe_topic", topic=topic), lambda found: len(found["partitions"]) == 2
    )
    assert client.call("describe_topic_by_id", topic_id=described["topic_id"]) == described
    client.call("delete_topic_by_id", topic_id=described["topic_id"])
    eventually(client.list_topics, lambda topics: topic not in topics)


def test_topic_created_again_has_another_id_and_none_of_the_records(
    client: JavaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    client.write(topic, numbered(10))
    first = client.call("describe_topic", topic=topic)["topic_id"]
    client.delete_topic(topic)
    eventually(client.list_topics, lambda topics: topic not in topics)
    create(topic)
    eventually(lambda: client.end_offsets(topic, [0]), lambda found: found == {0: 0})
    assert client.call("describe_topic", topic=topic)["topic_id"] != first
    assert client.write(topic, numbered(1))[0].offset == 0


def test_config_says_where_its_value_comes_from(client: JavaClient, topic: str) -> None:
    client.create_topic(topic, configs={"retention.ms": "86400000"})
    configs = eventually(
        lambda: client.describe_configs("TOPIC", topic),
        lambda found: found["retention.ms"]["value"] != "604800000",
    )
    assert configs["retention.ms"] == {
        "value": "86400000",
        "source": "DYNAMIC_TOPIC_CONFIG",
        "type": "LONG",
        "read_only": False,
        "sensitive": False,
    }
    assert configs["segment.bytes"]["source"] == "DEFAULT_CONFIG"
    assert configs["cleanup.policy"]["type"] == "LIST"
    assert configs["preallocate"]["type"] == "BOOLEAN"


def test_altered_config_leaves_the_others_and_can_be_reset(client: JavaClient, topic: str) -> None:
    client.create_topic(topic, configs={"retention.ms": "86400000", "segment.bytes": "2000000"})
    client.call("alter_configs", kind="TOPIC", name=topic, configs={"retention.ms": "3600000"})
    configs = eventually(
        lambda: client.describe_topic_configs(topic), lambda found: found["retention.ms"] == "3600000"
    )
    assert configs["segment.bytes"] == "2000000"
    client.call("reset_configs", kind="TOPIC", name=topic, configs={"retention.ms": None})
    eventually(
        lambda: client.describe_topic_configs(topic), lambda found: found["retention.ms"] == "604800000"
    )


def test_list_config_can_be_appended_to(client: JavaClient, topic: str) -> None:
    client.create_topic(topic)
    client.call("append_configs", kind="TOPIC", name=topic, configs={"cleanup.policy": "compact"})
    eventually(
        lambda: client.describe_topic_configs(topic),
        lambda found: set((found["cleanup.policy"] or "").split(",")) == {"delete", "compact"},
    )


def test_broker_config_that_needs_a_restart_is_read_only(client: JavaClient) -> None:
    broker = str(client.describe_cluster().controller)
    configs = client.describe_configs("BROKER", broker)
    assert configs["log.dirs"]["read_only"]
    assert not configs["log.retention.ms"]["read_only"]
    with pytest.raises(Refused) as refused:
        client.call("alter_configs", kind="BROKER", name=broker, configs={"log.dirs": "elsewhere"})
    assert refused.value.code == ErrorCode.INVALID_REQUEST


def test_offset_of_the_largest_timestamp_is_not_always_the_last(
    client: JavaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    latest = Sample(value=b"latest", timestamp_ms=BASE_TIMESTAMP_MS + 1_000_000)
    client.write(topic, [*numbered(5), latest, *numbered(5)])
    found = client.call("list_max_timestamp", topic=topic, partition=0)
    assert found == {"offset": 5, "timestamp_ms": latest.timestamp_ms}


def test_idempotent_producer_is_described_with_its_last_sequence(
    client: JavaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    client.write(topic, numbered(30), idempotent=True)
    (producer,) = client.call("describe_producers", topic=topic, partition=0)
    assert producer["producer_id"] >= 0
    assert producer["producer_epoch"] == 0
    assert producer["last_sequence"] == 29


def test_each_idempotent_producer_gets_an_id_of_its_own(
    client: JavaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    for _ in range(3):
        client.write(topic, numbered(2), idempotent=True)
    producers = client.call("describe_producers", topic=topic, partition=0)
    assert len({producer["producer_id"] for producer in producers}) == 3


def test_log_directory_shows_the_size_of_a_partition(
    client: JavaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    client.write(topic, numbered(100, size=1000))
    broker = client.describe_cluster().controller
    sizes = client.call("describe_log_dirs", broker=broker)
    assert 100_000 < sizes[f"{topic}-0"] < 200_000


def test_clients_of_an_older_release_write_read_in_a_group_and_administer(
    server: Server, java: Path, topic: str
) -> None:
    source = Path(__file__).parent / "java" / "Clients.java"
    with JavaWorker(java=java, jars=require(OLD_CLIENTS_JARS), source=source) as worker:
        client = JavaClient(server.bootstrap, worker)
        client.create_topic(topic)
        assert topic in eventually(client.list_topics, lambda topics: topic in topics)
        client.write(topic, numbered(10), idempotent=True)
        in_group = {"group.id": topic, "auto.offset.reset": "earliest"}
        assert client.call("read_in_group", topic=topic, count=10, settings=in_group) == 10
