"""The work of a task without Spark: it reads ranges of offsets as Arrow batches, while brokers die and logs are cut."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from strandline.base.ids import TopicPartition
from strandline.client.errors import KafkaTimeoutError
from strandline.client.sync import Admin, Producer
from strandline.spark import range_reader
from strandline.spark.columns import ARROW_SCHEMA
from strandline.spark.offsets import OffsetRange
from strandline.spark.options import read_options
from strandline.spark.range_reader import DataLossError, read_range
from strandline.testing import cluster


def options(bootstrap: str, topic: str, **more: str) -> Any:
    return read_options({"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **more}, is_stream=False)


def fill(bootstrap: str, topic: str, count: int) -> None:
    with Producer(bootstrap_servers=bootstrap, batch_size=2000) as producer:
        for number in range(count):
            producer.send(topic, b"%06d" % number * 10)


def test_a_range_is_read_whole_while_its_leader_is_killed() -> None:
    with cluster(nodes=3) as nodes, Admin(bootstrap_servers=nodes.bootstrap) as admin:
        admin.create_topic("ranges", partitions=1)
        fill(nodes.bootstrap, "ranges", 5000)
        leader = admin.describe_topics(["ranges"])["ranges"].partitions[0].leader_id
        small = {"kafka.max.partition.fetch.bytes": "20000"}
        wanted = OffsetRange(topic="ranges", partition=0, start=7, end=4990)
        found = read_range(wanted, options(nodes.bootstrap, "ranges", **small))
        batches = [next(found)]
        assert batches[0].num_rows < 4000
        nodes.node(leader).kill()
        batches += list(found)
    table = pa.Table.from_batches(batches)
    assert table.schema == ARROW_SCHEMA
    assert table["offset"].to_pylist() == list(range(7, 4990))
    assert table["value"][100].as_py() == b"%06d" % 107 * 10


def test_a_log_that_ends_before_the_range_is_data_loss(
    bootstrap: str, topic: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "_LOSS_SECONDS", 0.5)
    admin.create_topic(topic, partitions=1)
    fill(bootstrap, topic, 10)
    wanted = OffsetRange(topic=topic, partition=0, start=0, end=20)
    with pytest.raises(DataLossError, match="from offset 10 up to 20"):
        list(read_range(wanted, options(bootstrap, topic)))
    lenient = options(bootstrap, topic, failOnDataLoss="false")
    assert sum(batch.num_rows for batch in read_range(wanted, lenient)) == 10


def test_the_beginning_that_is_gone_is_data_loss_or_skipped(bootstrap: str, topic: str, admin: Admin) -> None:
    admin.create_topic(topic, partitions=1)
    fill(bootstrap, topic, 30)
    admin.delete_records({TopicPartition(topic, 0): 12})
    wanted = OffsetRange(topic=topic, partition=0, start=5, end=20)
    with pytest.raises(DataLossError, match="failOnDataLoss"):
        list(read_range(wanted, options(bootstrap, topic)))
    lenient = options(bootstrap, topic, failOnDataLoss="false")
    offsets = [at for batch in read_range(wanted, lenient) for at in batch["offset"].to_pylist()]
    assert offsets == list(range(12, 20))


def test_an_open_transaction_holds_a_committed_reader_up(bootstrap: str, topic: str, admin: Admin) -> None:
    admin.create_topic(topic, partitions=1)
    with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_and_wait(topic, b"open")
        impatient = {"kafka.isolation.level": "read_committed", "kafkaConsumer.pollTimeoutMs": "1"}
        wanted = OffsetRange(topic=topic, partition=0, start=0, end=1)
        with pytest.raises((KafkaTimeoutError, DataLossError), match=topic):
            list(read_range(wanted, options(bootstrap, topic, **impatient)))
        producer.commit_transaction()
        committed = options(bootstrap, topic, **{"kafka.isolation.level": "read_committed"})
        assert sum(batch.num_rows for batch in read_range(wanted, committed)) == 1


def test_a_topic_that_is_deleted_before_its_range_is_read_is_data_loss(
    bootstrap: str, topic: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "_LOSS_SECONDS", 0.5)
    admin.create_topic(topic, partitions=1)
    fill(bootstrap, topic, 1000)
    wanted = OffsetRange(topic=topic, partition=0, start=0, end=1000)
    small = {"kafka.max.partition.fetch.bytes": "20000", "failOnDataLoss": "false"}
    found = read_range(wanted, options(bootstrap, topic, **small))
    rows = next(found).num_rows
    admin.delete_topics([topic])
    rows += sum(batch.num_rows for batch in found)
    assert rows < 1000
    with pytest.raises(DataLossError, match="partition no longer exists"):
        list(read_range(wanted, options(bootstrap, topic)))
