"""Micro-batches: limits, checkpoints, new partitions, lost data, and what a consumer group sees."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from strandline.base.ids import TopicPartition
from strandline.client.sync import Admin, KafkaError, Producer
from strandline.spark import cluster
from strandline.spark.cluster import ClusterView
from strandline.spark.micro_batches import StreamReader
from strandline.spark.options import read_options
from strandline.spark.range_reader import DataLossError
from strandline.testing import running_broker
from strandline.testing.clusters import wait_until
from tests.oracle.fetch import SPARK_KAFKA_JARS
from tests.oracle.require import require

QUERY_SECONDS_MAX = 90


def produce(bootstrap: str, topic: str, numbers: range, partitions: int = 2) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, None, number % partitions)


class Run:
    """A query that reads a topic to its present end and writes into Parquet."""

    def __init__(self, spark: Any, bootstrap: str, topic: str, directory: Path) -> None:
        self._spark = spark
        self._options = {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
        }
        self._out = str(directory / "out")
        self._checkpoint = str(directory / "checkpoint")

    def to_end(self, source: str = "strandline", **options: str) -> list[dict[str, Any]]:
        """Returns the progress of each batch that had rows."""
        stream = self._spark.readStream.format(source).options(**self._options, **options).load()
        query = (
            stream.writeStream.format("parquet")
            .option("path", self._out)
            .option("checkpointLocation", self._checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(QUERY_SECONDS_MAX), "the query did not end"
        return [json.loads(each.json) for each in query.recentProgress if each.numInputRows]

    def values(self) -> list[int]:
        found = self._spark.read.parquet(self._out).selectExpr("cast(value as string) as v").collect()
        return sorted(int(row.v) for row in found)


@pytest.fixture
def run(spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path) -> Run:
    admin.create_topic(topic, partitions=2)
    return Run(spark, bootstrap, topic, tmp_path)


def test_limited_batches_end_where_the_topic_ended_and_a_restart_goes_on_there(
    run: Run, bootstrap: str, topic: str, admin: Admin
) -> None:
    produce(bootstrap, topic, range(100))
    batches = run.to_end(maxOffsetsPerTrigger="40", commitGroup=f"{topic}-group")
    assert [batch["numInputRows"] for batch in batches] == [40, 40, 20]
    assert batches[-1]["sources"][0]["endOffset"] == {topic: {"0": 50, "1": 50}}
    assert batches[0]["sources"][0]["latestOffset"] == {topic: {"0": 50, "1": 50}}
    # Spark tells a source of a batch's end when it plans the next one, so the group may be one batch behind.
    committed = admin.list_group_offsets(f"{topic}-group")
    assert sum(each.offset for each in committed.values()) in (80, 100)

    admin.create_partitions({topic: 3})
    produce(bootstrap, topic, range(100, 130), partitions=3)
    batches = run.to_end(commitGroup=f"{topic}-group")
    assert sum(batch["numInputRows"] for batch in batches) == 30
    assert run.values() == list(range(130))


@pytest.mark.oracle
def test_a_query_goes_on_where_the_other_format_left_it(run: Run, bootstrap: str, topic: str) -> None:
    require(SPARK_KAFKA_JARS)
    for at, source in enumerate(("kafka", "strandline", "kafka")):
        produce(bootstrap, topic, range(at * 10, at * 10 + 10))
        run.to_end(source)
    assert run.values() == list(range(30))


def test_records_that_retention_took_are_an_error_or_skipped(
    run: Run, bootstrap: str, topic: str, admin: Admin
) -> None:
    produce(bootstrap, topic, range(20))
    run.to_end()
    produce(bootstrap, topic, range(20, 60))
    admin.delete_records({TopicPartition(topic, 0): 20, TopicPartition(topic, 1): 10})
    with pytest.raises(Exception, match="failOnDataLoss"):
        run.to_end()
    run.to_end(failOnDataLoss="false")
    lost = set(range(20, 40, 2))
    assert run.values() == sorted(set(range(60)) - lost)


def test_a_topic_that_was_made_again_is_an_error_or_read_from_its_present_end(
    run: Run, bootstrap: str, topic: str, admin: Admin
) -> None:
    produce(bootstrap, topic, range(20))
    run.to_end()
    admin.delete_topics([topic])
    admin.create_topic(topic, partitions=2)
    produce(bootstrap, topic, range(100, 104))
    with pytest.raises(Exception, match="failOnDataLoss"):
        run.to_end()
    run.to_end(failOnDataLoss="false")
    produce(bootstrap, topic, range(104, 110))
    run.to_end(failOnDataLoss="false")
    assert run.values() == [*range(20), *range(104, 110)], "what came before it was noticed is lost"


def test_a_running_query_takes_in_new_partitions_and_goes_on_without_a_deleted_topic(
    spark: Any, bootstrap: str, topic: str, admin: Admin
) -> None:
    stays, goes, table = f"{topic}-stays", f"{topic}-goes", topic.replace("-", "_")
    for name in (stays, goes):
        admin.create_topic(name, partitions=1)
    servers = {"kafka.bootstrap.servers": bootstrap, "subscribe": f"{stays},{goes}"}
    stream = spark.readStream.format("strandline").options(**servers, failOnDataLoss="false")
    stream = stream.option("startingOffsets", "earliest").load()
    query = stream.writeStream.format("memory").queryName(table).start()

    def has_read(count: int) -> bool:
        assert query.isActive, f"the query has ended: {query.exception()}"
        rows = spark.table(table).selectExpr("cast(value as string) as v").collect()
        found = sorted(int(row.v) for row in rows)
        assert len(found) == len(set(found)), "something was read twice"
        return found == list(range(count))

    try:
        produce(bootstrap, stays, range(10), partitions=1)
        produce(bootstrap, goes, range(10, 20), partitions=1)
        wait_until(lambda: has_read(20), QUERY_SECONDS_MAX)
        admin.create_partitions({stays: 3})
        produce(bootstrap, stays, range(20, 50), partitions=3)
        wait_until(lambda: has_read(50), QUERY_SECONDS_MAX)
        admin.delete_topics([goes])
        produce(bootstrap, stays, range(50, 60), partitions=3)
        wait_until(lambda: has_read(60), QUERY_SECONDS_MAX)
    finally:
        query.stop()


def test_a_deleted_topic_is_an_error_unless_data_may_be_lost(
    bootstrap: str, topic: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": f"{topic}-a,{topic}-b"}
    for name in ("a", "b"):
        admin.create_topic(f"{topic}-{name}", partitions=1)
    start = {f"{topic}-a": {"0": 0}, f"{topic}-b": {"0": 0}}
    strict = StreamReader(read_options(given, is_stream=True))
    lenient = StreamReader(read_options({**given, "failOnDataLoss": "false"}, is_stream=True))
    admin.delete_topics([f"{topic}-b"])
    with pytest.raises(DataLossError, match=r"partitions are gone.*failOnDataLoss"):
        strict.latestOffset(start, ReadAllAvailable())
    left = ClusterView.existing_partitions
    stale = [[TopicPartition(f"{topic}-a", 0), TopicPartition(f"{topic}-b", 0)]]
    monkeypatch.setattr(cluster, "_DELETED_CHECK_SECONDS", 0.2)
    # As where a topic is deleted between two questions.
    monkeypatch.setattr(ClusterView, "existing_partitions", lambda view: stale.pop() if stale else left(view))
    assert lenient.latestOffset(start, ReadAllAvailable()) == {f"{topic}-a": {"0": 0}}
    assert not stale
    for reader in (strict, lenient):
        reader.stop()
    with pytest.raises(KafkaError, match="create the topic first"):
        strict.initialOffset()
    strict.stop()


def test_a_partition_to_assign_is_read_when_it_comes_and_missed_when_it_is_gone(
    bootstrap: str, topic: str, admin: Admin
) -> None:
    stays, goes = f"{topic}-stays", f"{topic}-goes"
    for name in (stays, goes):
        admin.create_topic(name, partitions=1)
    given = {"kafka.bootstrap.servers": bootstrap, "assign": json.dumps({stays: [0, 1], goes: [0]})}
    reader = StreamReader(read_options(given, is_stream=True))
    start = reader.initialOffset()
    assert start == {stays: {"0": 0}, goes: {"0": 0}}
    admin.create_partitions({stays: 2})
    wait_until(lambda: reader.latestOffset(start, ReadAllAvailable()) != start, QUERY_SECONDS_MAX)
    assert reader.latestOffset(start, ReadAllAvailable()) == {stays: {"0": 0, "1": 0}, goes: {"0": 0}}
    admin.delete_topics([goes])
    with pytest.raises(DataLossError, match=f"{goes}-0: partitions are gone"):
        reader.latestOffset(start, ReadAllAvailable())
    reader.stop()


def test_a_topic_of_a_pattern_that_is_gone_in_a_moment_takes_no_other_with_it(
    bootstrap: str, topic: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribePattern": topic}
    for name in ("a", "c"):
        admin.create_topic(f"{topic}-{name}", partitions=1)
    reader = StreamReader(read_options(given, is_stream=True))
    start = reader.initialOffset()
    # As where a topic is deleted between two questions.
    names = [f"{topic}-{name}" for name in ("a", "b", "c")]
    monkeypatch.setattr(reader._view().admin, "list_topics", lambda: names)
    assert reader.initialOffset() == start
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    reader.stop()


def reader_of(bootstrap: str, topic: str, **options: str) -> StreamReader:
    return StreamReader(
        read_options({"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **options}, is_stream=True)
    )


def test_an_available_now_query_ends_after_its_start_however_busy_the_topic(
    bootstrap: str, topic: str, admin: Admin
) -> None:
    admin.create_topic(topic, partitions=1)
    reader = reader_of(bootstrap, topic, startingOffsets="latest", minOffsetsPerTrigger="100")
    reader.prepareForTriggerAvailableNow()  # Spark says so first, and others write all the time
    produce(bootstrap, topic, range(2), partitions=1)
    start = reader.initialOffset()
    produce(bootstrap, topic, range(3), partitions=1)
    end = reader.latestOffset(start, ReadAllAvailable())
    produce(bootstrap, topic, range(4), partitions=1)
    assert (start, end) == ({topic: {"0": 2}}, {topic: {"0": 5}})
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    reader.stop()


def test_a_repeated_batch_notices_that_records_of_a_new_partition_are_gone(
    bootstrap: str, topic: str, admin: Admin
) -> None:
    admin.create_topic(topic, partitions=2)
    produce(bootstrap, topic, range(20))
    start, end = {topic: {"0": 10}}, {topic: {"0": 10, "1": 10}}
    reader = reader_of(bootstrap, topic)
    assert len(reader.partitions(start, end)) == 1
    admin.delete_records({TopicPartition(topic, 1): 3})
    with pytest.raises(DataLossError, match="offset 3 instead of 0"):
        reader.partitions(start, end)
    reader.stop()
    lenient = reader_of(bootstrap, topic, failOnDataLoss="false")
    assert len(lenient.partitions(start, end)) == 1
    lenient.stop()


def test_only_the_first_batch_does_not_wait_for_the_least_number_of_offsets(
    bootstrap: str, topic: str, admin: Admin
) -> None:
    admin.create_topic(topic, partitions=1)
    reader = reader_of(bootstrap, topic, minOffsetsPerTrigger="5")
    position: dict[str, Any] = {topic: {"0": 0}}
    for count, expected in ((3, 3), (3, 3), (2, 8)):
        produce(bootstrap, topic, range(count), partitions=1)
        position = reader.latestOffset(position, reader.getDefaultReadLimit())
        assert position == {topic: {"0": expected}}
    reader.stop()


def test_a_silent_cluster_ends_no_query_when_progress_shows_its_ends() -> None:
    reader = reader_of("127.0.0.1:1", "nowhere", **{"kafka.default.api.timeout.ms": "200"})
    assert reader.reportLatestOffset() is None
    reader.stop()


def test_a_group_that_cannot_be_committed_delays_one_batch_and_not_for_long(
    topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.spark.micro_batches._COMMIT_TIMEOUT_SECONDS", 0.2)
    with running_broker(offsets_topic_replication_factor="3") as alone:
        with Admin(bootstrap_servers=alone.bootstrap) as admin:
            admin.create_topic(topic, partitions=1)
        reader = reader_of(alone.bootstrap, topic, commitGroup="group")
        began = time.monotonic()
        for _ in range(20):
            reader.commit(reader.initialOffset())
        assert 0.2 < time.monotonic() - began < 3
        reader.stop()
