"""The rules that keep a pipeline's outputs exact, each with a test that fails without it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as f

from strandline.client.admin.configs import ConfigResource
from strandline.client.deadletter.letters import HEADERS_BYTES_MAX
from strandline.client.sync import Admin, Producer
from strandline.pipeline.plan.single_evaluation import SingleEvaluationSink, evaluated_once
from strandline.pipeline.plan.table_sink import NoTableError, TableSink, read_table
from strandline.pipeline.plan.tables import last_row_per_key
from strandline.pipeline.runtime.queries import GatedSink, StopRequestedError
from strandline.pipeline.runtime.runner import PipelineFailedError, Runner
from strandline.pipeline.runtime.stop_request import status
from strandline.pipeline.runtime.topics import create_topics
from strandline.pipeline.spec.reader import load
from strandline.spark.sink.batch_decision import QUERY_ID_PROPERTY, LineageError
from strandline.spark.sink.batch_transaction import BatchTransaction
from strandline.spark.sink.exactly_once import ExactlyOnceSink
from tests.spark.topics import rows_of

SPEC = """
pipeline: safe
brokers: {brokers}
checkpoint: checkpoint
trigger: once
sources:
  records:
    topic: {topic}
    decode: {{format: text}}
    rules: [{{name: no-poison, check: value <> 'poison'}}]
sinks:
  - {{from: records, topic: {topic}-out, partitions: 2, value: value}}
"""
JOINING = """
pipeline: joining
brokers: {brokers}
checkpoint: checkpoint
sources:
  records:
    topic: {topic}
    max-records-per-batch: 3
    decode: {{format: text}}
  names:
    topic: {topic}-names
    as: table
    decode: {{format: text}}
transforms:
  - name: named
    sql: |
      SELECT concat(r.value, ' ', coalesce(n.value, 'none')) AS value
      FROM records r LEFT JOIN names n ON r.value = CAST(n._key AS STRING)
sinks:
  - {{from: named, topic: {topic}-out, partitions: 1, value: value}}
"""
JUDGING = """
pipeline: judging
brokers: {brokers}
checkpoint: checkpoint
trigger: once
sources:
  records:
    topic: {topic}
    decode: {{format: text}}
transforms:
  - name: asked
    python: fickle:ask
    inputs: records
    rules: [{{name: first-time, check: is_first}}]
sinks:
  - {{from: asked, topic: {topic}-out, partitions: 1, value: value}}
"""
# Looked for beside the spec: like a service that answers yes to the first who asks for a record, and then no.
FICKLE = """
from pathlib import Path

ASKED = Path(__file__).with_name("asked")


def ask(rows):
    asked = str(ASKED)

    def answer(batches):
        import pyarrow as pa

        for batch in batches:
            answers = []
            for value in batch.column("value").to_pylist():
                answers.append(not Path(asked, value).exists())
                Path(asked, value).touch()
            yield batch.append_column("is_first", pa.array(answers))

    ASKED.mkdir(exist_ok=True)
    fields = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in rows.schema.fields)
    return rows.mapInArrow(answer, f"{fields}, is_first boolean")
"""
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_output_and_dead_letters_are_there_together_or_not_at_all(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mebibyte = 1 << 20
    large = b"\xff" * 2 * mebibyte  # no UTF-8, and more than producers send unless they are told to
    admin.create_topic(topic, partitions=1, configs={"max.message.bytes": str(3 * mebibyte)})
    with Producer(bootstrap_servers=bootstrap, max_request_size=3 * mebibyte) as producer:
        for value in (b"one", b"poison", large, b"two"):
            producer.send(topic, value)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(brokers=bootstrap, topic=topic))
    spec = load(path)

    def fail(*_: object) -> None:
        raise ValueError("the marker cannot be written")

    with monkeypatch.context() as patched:
        patched.setattr(BatchTransaction, "mark", fail)  # rows and letters are in their topics by then
        with pytest.raises(PipelineFailedError, match="ValueError: the marker cannot be written"):
            Runner(spec, spark=spark).run()
    assert status(spec)["state"] == "failed"
    assert rows_of(bootstrap, f"{topic}-out", 2) == rows_of(bootstrap, f"{topic}.dlq", 1) == []

    Runner(spec, spark=spark).run()
    assert sorted(row.value for row in rows_of(bootstrap, f"{topic}-out", 2)) == [b"one", b"two"]
    assert sorted(row.value for row in rows_of(bootstrap, f"{topic}.dlq", 1)) == [b"poison", large]


def test_a_topic_of_all_dead_letters_takes_the_largest_of_every_source(
    bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    names = [f"{topic}-small", f"{topic}-large", f"{topic}-other"]
    for name, size in zip(names, (1000, 5_000_000, 2000), strict=True):
        admin.create_topic(name, partitions=2, configs={"max.message.bytes": str(size)})
    path = tmp_path / "spec.yaml"
    text = SPEC.format(brokers=bootstrap, topic=topic).replace(f"topic: {topic}\n", f"topic: {names}\n")
    path.write_text(f"dead-letters: {topic}-dead\n{text}")
    create_topics(load(path))
    resource = ConfigResource.topic(f"{topic}-dead")
    size = admin.describe_configs([resource])[resource]["max.message.bytes"].value
    assert size == str(5_000_000 + HEADERS_BYTES_MAX)


def test_a_record_is_judged_once_even_if_the_verdict_would_change(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=2)
    values = [b"v%03d" % number for number in range(40)]
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value, partition=number % 2)
    path = tmp_path / "spec.yaml"
    path.write_text(JUDGING.format(brokers=bootstrap, topic=topic))
    (tmp_path / "fickle.py").write_text(FICKLE)
    Runner(load(path), spark=spark).run()
    out = [row.value for row in rows_of(bootstrap, f"{topic}-out", 1)]
    letters = [row.value for row in rows_of(bootstrap, f"{topic}.dlq", 2)]
    assert (sorted(out), letters) == (values, [])
    # The shuffle that makes it so keeps the order of a partition.
    assert [value for value in out if value in values[::2]] == values[::2]


@pytest.mark.parametrize("is_picked", [False, True])
def test_a_batch_whose_verdicts_spark_computes_twice_is_not_written(
    spark: Any, tmp_path: Path, is_picked: bool
) -> None:
    def same(batches: Any) -> Any:
        yield from batches

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.json").write_text('{"id": 1}\n{"id": 5}\n')
    table = spark.range(3).mapInArrow(same, "id bigint").selectExpr("id AS key", "'text' AS found")
    one = (
        table.dropDuplicates(["key"])
        if is_picked
        else table.groupBy("key").agg(f.max("found").alias("found"))
    )
    stream = spark.readStream.schema("id bigint, _topic string, _partition int").json(str(tmp_path / "in"))
    rows = stream.withColumn("_headers", f.array()).join(one, f.col("id") == f.col("key"), "left")
    rows = evaluated_once(
        rows.withColumn("_failure", f.expr("CASE WHEN found IS NULL THEN 'none' END")), "joined"
    )
    both = (
        rows.where("_failure IS NULL")
        .selectExpr("id", "'good' AS what")
        .unionAll(rows.where("_failure IS NOT NULL").selectExpr("id", "_failure AS what"))
    )
    written: list[Any] = []
    query = (
        both.writeStream.foreachBatch(SingleEvaluationSink(lambda df, batch: written.extend(df.collect())))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(once=True)
        .start()
    )
    if is_picked:
        with pytest.raises(Exception, match="batch 0 is not written: the result of the rules of joined"):
            query.awaitTermination()
        assert written == []
    else:
        query.awaitTermination()
        assert sorted(tuple(row) for row in written) == [(1, "good"), (5, "none")]


def test_a_table_is_read_again_for_every_batch(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = f"{topic}-names"
    admin.create_topic(topic, partitions=1)
    admin.create_topic(names, partitions=2)
    path = tmp_path / "spec.yaml"
    path.write_text(JOINING.format(brokers=bootstrap, topic=topic))
    with Producer(bootstrap_servers=bootstrap) as producer:
        for key in (b"a", b"b", b"c"):
            producer.send(names, b"old", key, partition=0)
        for key in (b"a", b"b", b"c", b"a", b"b", b"c"):
            producer.send(topic, key, partition=0)
        producer.flush()
        write = ExactlyOnceSink.__call__

        def changing(sink: ExactlyOnceSink, df: Any, batch: int) -> None:
            write(sink, df, batch)
            if batch == 0:
                # In another partition, as if the topic had got it in the meantime.
                producer.send(names, b"new", b"a", partition=1)
                producer.send(names, None, b"b", partition=1)
                producer.flush()

        monkeypatch.setattr(ExactlyOnceSink, "__call__", changing)
        Runner(load(path), spark=spark).run()
    found = [row.value.decode() for row in rows_of(bootstrap, f"{topic}-out", 1)]
    assert sorted(found[:3]) == ["a old", "b old", "c old"]
    assert sorted(found[3:]) == ["a new", "b none", "c old"]


def test_a_batch_that_spark_repeats_changes_a_table_once(spark: Any, tmp_path: Path) -> None:
    columns = "id int, name string, gone boolean, _key binary, _topic string, _partition int, _offset long, "
    columns += "_timestamp timestamp"
    sink = TableSink(str(tmp_path), ["id", "_key"], "gone")
    first, second = "0f9a4c7e-2b1d-4a52-9f67-3c1b0a9d8e77", "5d7b2c10-9a3e-4f08-8c44-b1e6d2f3a509"

    def changed(batch: int, *changes: tuple[int, str, bool]) -> list[tuple[int, str]]:
        rows = [(*change, b"k", "t", 0, offset, NOON) for offset, change in enumerate(changes)]
        sink(spark.createDataFrame(rows, columns), batch)
        return sorted((row["id"], row["name"]) for row in read_table(spark, tmp_path).collect())

    with pytest.raises(FileNotFoundError):
        read_table(spark, tmp_path)
    spark.sparkContext.setLocalProperty(QUERY_ID_PROPERTY, first)
    try:
        assert changed(0, (1, "a", False), (2, "b", False), (2, "B", False)) == [(1, "a"), (2, "B")]
        assert changed(1, (1, "a", True), (3, "c", False)) == [(2, "B"), (3, "c")]
        assert changed(1, (2, "again", False)) == [(2, "B"), (3, "c")]
        with pytest.raises(
            Exception, match="it was run"
        ):  # as Spark wants of each batch of a query with state
            sink(spark.range(1).selectExpr("raise_error('it was run')"), 1)
        for other in (0, 3):
            with pytest.raises(LineageError, match="the last one there is batch 1"):
                changed(other, (2, "lost", False))
        # Batches of a new checkpoint begin at number 0 again, and are written.
        spark.sparkContext.setLocalProperty(QUERY_ID_PROPERTY, second)
        assert changed(0, (2, "b2", False)) == [(2, "b2"), (3, "c")]
    finally:
        spark.sparkContext.setLocalProperty(QUERY_ID_PROPERTY, None)
    versions = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert sorted(versions) == [f"{first}-1", f"{second}-0"]
    (tmp_path / "current.json").rename(tmp_path / "somebodys.json")
    with pytest.raises(NoTableError, match=r"contains somebodys\.json"):
        sink(spark.range(1), 0)


def test_the_last_row_of_a_key_is_found_by_offset_in_a_partition_and_by_time_between_them(spark: Any) -> None:
    columns = "id int, name string, _topic string, _partition int, _offset long, _timestamp timestamp"
    later = NOON + timedelta(hours=1)
    rows = [
        (1, "first", "t", 1, 7, NOON),
        (1, "last", "t", 0, 2, later),
        (2, "first", "t", 0, 7, later),
        (2, "last", "t", 0, 8, NOON),  # clocks of producers differ, offsets do not lie
        (3, "last", "t", 0, 9, NOON),
        (3, "from a file", None, None, None, later),
        (4, "first", "a", 0, 9, NOON),
        (4, "last", "b", 0, 1, later),
    ]
    found = last_row_per_key(spark.createDataFrame(rows, columns), ["id"]).collect()
    assert sorted((row["id"], row["name"]) for row in found) == [(number, "last") for number in (1, 2, 3, 4)]


def test_no_batch_begins_after_a_stop_was_requested() -> None:
    written: list[int] = []
    stopping = threading.Event()
    gate = GatedSink(lambda df, batch: written.append(batch), stopping)
    df: Any = None
    gate(df, 0)
    stopping.set()
    with pytest.raises(StopRequestedError):
        gate(df, 1)
    assert (written, gate.has_refused) == ([0], True)
