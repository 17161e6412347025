"""Strandline on the data directory that an Apache Kafka node left: the same records, groups, producers, settings.

What Kafka's metadata log holds and Strandline has no use for yet, such as quotas, must still be there afterwards: the
directory goes back to Kafka in the end.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from strandline.testing import running_broker
from tests.compat.dumped_logs import cluster_id
from tests.compat.server import STRANDLINE, compat_target
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka
from tests.oracle.kafka_tools import KafkaTools
from tests.oracle.readiness import wait_until_writable

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.xdist_group("apache-kafka"),
    pytest.mark.skipif(compat_target() != STRANDLINE, reason="it is about Strandline on Kafka's files"),
]

PLAIN, COMPACTED = "plain", "compacted"
PARTITIONS = {PLAIN: 3, COMPACTED: 1}
WAIT_S_MAX = 60.0
Seen = list[tuple[int, int, int, bytes | None, bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A stopped Kafka's directory, and what clients saw of it before."""

    kafka: ApacheKafka
    seen: dict[str, Any]


def read_all(bootstrap: str, topic: str, isolation: str) -> Seen:
    """Partition, offset, timestamp, key and value of every record."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "group.id": "none",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    seen: Seen = []
    left = PARTITIONS[topic]
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(left)])
        deadline = time.monotonic() + WAIT_S_MAX
        while left:
            assert time.monotonic() < deadline, "the end was not reached"
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error():
                left -= 1
                continue
            seen.append(
                (
                    message.partition(),
                    message.offset(),
                    message.timestamp()[1],
                    message.key(),
                    message.value(),
                )
            )
    finally:
        consumer.close()
    return sorted(seen)


def what_clients_see(bootstrap: str) -> dict[str, Any]:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    found: dict[str, Any] = {
        f"{topic} {isolation}": read_all(bootstrap, topic, isolation)
        for topic in PARTITIONS
        for isolation in ("read_committed", "read_uncommitted")
    }
    places = [TopicPartition(topic, index) for topic, count in PARTITIONS.items() for index in range(count)]
    for group in ("classic", "new"):
        asked = [ConsumerGroupTopicPartitions(group, places)]
        offsets = admin.list_consumer_group_offsets(asked)[group].result(30).topic_partitions
        found[group] = sorted((p.topic, p.partition, p.offset, p.metadata) for p in offsets)
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in PARTITIONS]
    described = admin.describe_configs(resources)
    found["configs"] = {
        resource.name: {
            entry.name: entry.value for entry in future.result(30).values() if not entry.is_default
        }
        for resource, future in described.items()
    }
    topics = admin.list_topics(timeout=30).topics
    found["topics"] = sorted((name, len(topic.partitions)) for name, topic in topics.items())
    return found


def write(bootstrap: str) -> None:
    for codec in ("none", "gzip", "lz4", "zstd", "snappy"):
        producer = Producer(
            {"bootstrap.servers": bootstrap, "log_level": 0, "compression.type": codec, "linger.ms": 20}
        )
        for number in range(200):
            key = b"%d" % (number % 20)
            producer.produce(PLAIN, f"{codec} {number} ".encode() + b"x" * 300, key)
            producer.produce(COMPACTED, b"%d" % number if number % 7 else None, key, partition=0)
        assert producer.flush(30) == 0
    transactional = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "transactional.id": "moved"})
    transactional.init_transactions(30)
    for number in range(4):
        transactional.begin_transaction()
        for topic in PARTITIONS:
            transactional.produce(topic, b"in transaction %d" % number, b"t", partition=0)
        transactional.commit_transaction(30) if number % 2 == 0 else transactional.abort_transaction(30)


def consume(bootstrap: str, group: str, **settings: str) -> None:
    """Reads some records as a member of the group, and commits."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    try:
        consumer.subscribe([PLAIN])
        deadline = time.monotonic() + WAIT_S_MAX
        count = 0
        while count < 300:
            assert time.monotonic() < deadline
            count += len(consumer.consume(100, timeout=1.0))
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


@pytest.fixture(scope="module")
def left(
    java: Path, kafka_jars: Path, kafka_tools: KafkaTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Left]:
    kafka = ApacheKafka(
        java=java,
        jars=kafka_jars,
        directory=tmp_path_factory.mktemp("left"),
        settings={"log.cleaner.backoff.ms": "200"},
        jvm_options=QUICK_START,
    )
    with kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "500"}
        admin.create_topics(
            [
                NewTopic(PLAIN, PARTITIONS[PLAIN], 1, config={"segment.bytes": "1048576"}),
                NewTopic(COMPACTED, 1, 1, config=compact),
            ]
        )
        for topic in PARTITIONS:
            wait_until_writable(kafka.bootstrap, topic)
        write(kafka.bootstrap)
        time.sleep(0.6)  # until the segment is old enough to be closed by the next record
        write(kafka.bootstrap)
        consume(kafka.bootstrap, "classic")
        consume(kafka.bootstrap, "new", **{"group.protocol": "consumer"})
        entry = ConfigEntry("retention.ms", "86400000", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, PLAIN, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(30)
        secret = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("somebody", secret, b"secret")])[
            "somebody"
        ].result(30)
        quota = (
            "--entity-type",
            "users",
            "--entity-name",
            "somebody",
            "--add-config",
            "producer_byte_rate=4711",
        )
        kafka_tools.run("ConfigCommand", "--bootstrap-server", kafka.bootstrap, "--alter", *quota)
        checkpoint = kafka.data_dir / "cleaner-offset-checkpoint"
        deadline = time.monotonic() + WAIT_S_MAX
        while not checkpoint.exists() or f"{COMPACTED} 0" not in checkpoint.read_text():
            assert time.monotonic() < deadline, "Kafka has not compacted the log"
            time.sleep(0.1)
        seen = what_clients_see(kafka.bootstrap)
        kafka.stop()
        yield Left(kafka=kafka, seen=seen)


def test_clients_see_the_same_as_of_apache_kafka_and_can_go_on(
    left: Left, kafka_tools: KafkaTools, java: Path, kafka_jars: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    shutil.copytree(left.kafka.data_dir, data)
    snapshots = {"metadata_log_max_record_bytes_between_snapshots": "100"}
    with running_broker(data_dir=data, node_id="1", log_cleaner_enable="false", **snapshots) as broker:
        seen = what_clients_see(broker.bootstrap)
        for what, before in left.seen.items():
            assert seen[what] == before, what
        # The same transactional id goes on, with the producer id that Kafka gave it.
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "moved"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(PLAIN, b"of strandline", b"t", partition=0)
        producer.commit_transaction(30)
        deadline = time.monotonic() + WAIT_S_MAX
        while not list((data / "__cluster_metadata-0").glob("*.checkpoint")):
            assert time.monotonic() < deadline, "no snapshot of the metadata"
            time.sleep(0.1)
    # And back.
    kafka = ApacheKafka(
        java=java,
        jars=kafka_jars,
        directory=tmp_path / "kafka",
        settings={"log.dirs": str(data)},
        jvm_options=QUICK_START,
        cluster_id=cluster_id(data),
    )
    with kafka:
        now = what_clients_see(kafka.bootstrap)
        assert now["classic"] == left.seen["classic"]
        assert b"of strandline" in [value for *_, value in now[f"{PLAIN} read_committed"]]
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        (secret,) = (
            admin.describe_user_scram_credentials(["somebody"])["somebody"].result(30).scram_credential_infos
        )
        assert secret.iterations == 4096
        described = kafka_tools.run(
            "ConfigCommand", "--bootstrap-server", kafka.bootstrap, "--describe", "--entity-type", "users"
        )
        assert "producer_byte_rate=4711" in described.stdout
