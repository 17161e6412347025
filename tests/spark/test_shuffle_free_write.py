"""Streams that the exactly-once sink writes without a shuffle, and those for which it finds out that it needs one."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from strandline.client.producer.partitioners import partition_for_key
from strandline.client.sync import Admin, Producer
from strandline.spark import exactly_once
from strandline.spark.sink import task_writer
from strandline.spark.sink.shuffle_free_write import ForeignPartitionError, TaskPartitions
from tests.spark.topics import rows_of

QUERY_SECONDS_MAX = 300
# About 90 are made, most of them by PySpark for its function and its job; a listener of progress would make 500 more.
CALLS_MAX = 200
Copy = Callable[..., list[TaskPartitions | None]]


@pytest.fixture
def copy(spark: Any, bootstrap: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    """Copies the topic to its end; how each batch was written, in every attempt."""
    used: list[TaskPartitions | None] = []
    make = task_writer._writer

    def noted(*arguments: Any) -> Any:
        used.append(arguments[4])
        return make(*arguments)

    monkeypatch.setattr(task_writer, "_writer", noted)

    def run(target: str, *columns: str, offsets_max: int = 40) -> list[TaskPartitions | None]:
        used.clear()
        stream = (
            spark.readStream.format("strandline")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", str(offsets_max))
            .load()
        )
        query = (
            exactly_once(stream.selectExpr(*columns), bootstrap, topic=target)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(QUERY_SECONDS_MAX), "the query did not end"
        return list(used)

    return run


def fill(bootstrap: str, topic: str, numbers: range, *, keyed: bool) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in numbers:
            key = b"key-%d" % (number % 17) if keyed else None
            producer.send(topic, b"%d" % number, key, None if keyed else number % 2)


def values(bootstrap: str, topic: str, partitions: int) -> list[int]:
    return sorted(int(row.value) for row in rows_of(bootstrap, topic, partitions))


def test_rows_without_a_key_are_written_where_they_were_read(
    bootstrap: str, topic: str, admin: Admin, copy: Copy
) -> None:
    target = f"{topic}-out"
    admin.create_topic(topic, partitions=2)
    admin.create_topic(target, partitions=3)
    fill(bootstrap, topic, range(80), keyed=False)
    assert copy(target, "key", "value", "offset") == [TaskPartitions(2, 3)] * 2
    assert values(bootstrap, target, 3) == list(range(80))
    # Partitions that are added get rows, in the next run as in the next batch.
    admin.create_partitions({target: 4})
    fill(bootstrap, topic, range(80, 800), keyed=False)
    assert set(copy(target, "key", "value", offsets_max=100)) == {TaskPartitions(2, 4)}
    rows = rows_of(bootstrap, target, 4)
    assert sorted(int(row.value) for row in rows) == list(range(800))
    by_task = Counter((int(row.value) % 2, row.partition % 2) for row in rows if int(row.value) >= 80)
    assert set(by_task) == {(0, 0), (1, 1)}, "each task has its own partitions"


def test_a_topic_is_copied_into_one_of_as_many_partitions_without_a_shuffle(
    bootstrap: str, topic: str, admin: Admin, copy: Copy
) -> None:
    target = f"{topic}-out"
    for name in (topic, target):
        admin.create_topic(name, partitions=3)
    fill(bootstrap, topic, range(60), keyed=True)
    assert copy(target, "key", "value") == [TaskPartitions(3, 3)] * 2
    rows = rows_of(bootstrap, target, 3)
    assert sorted(int(row.value) for row in rows) == list(range(60))
    assert all(row.partition == partition_for_key(row.key, 3) for row in rows)


def test_rows_that_belong_elsewhere_are_shuffled_from_the_first_batch_on(
    bootstrap: str, topic: str, admin: Admin, copy: Copy
) -> None:
    target = f"{topic}-out"
    admin.create_topic(topic, partitions=2)
    admin.create_topic(target, partitions=3)
    fill(bootstrap, topic, range(80), keyed=True)
    first, *others = copy(target, "key", "value")
    assert first == TaskPartitions(2, 3)
    assert set(others) == {None}, "tried once in a run"
    assert len(others) > 1
    rows = rows_of(bootstrap, target, 3)
    assert sorted(int(row.value) for row in rows) == list(range(80))
    assert all(row.partition == partition_for_key(row.key, 3) for row in rows)


def test_a_key_that_appears_later_is_noticed_and_nothing_is_lost_or_repeated(
    bootstrap: str, topic: str, admin: Admin, copy: Copy
) -> None:
    target = f"{topic}-out"
    admin.create_topic(topic, partitions=2)
    admin.create_topic(target, partitions=2)
    fill(bootstrap, topic, range(80), keyed=False)
    with_keys = "if(cast(value as string) >= '40', value, null) as key"
    assert copy(target, with_keys, "value")[:2] == [TaskPartitions(2, 2), None]
    assert values(bootstrap, target, 2) == list(range(80))


def test_a_query_with_state_goes_on_after_a_batch_whose_first_attempt_failed(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=3)
    source = tmp_path / "in"
    source.mkdir()
    words = [f"word-{number}" for number in range(20)]
    counts = spark.readStream.option("maxFilesPerTrigger", "1").text(str(source)).groupBy("value").count()
    rows = counts.selectExpr("value as key", "cast(count as string) as value")
    for number in range(3):
        (source / f"{number}.txt").write_text("\n".join(words))
    query = (
        exactly_once(rows, bootstrap, topic=topic)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .outputMode("update")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(QUERY_SECONDS_MAX), "the query did not end"
    found = Counter((row.key.decode(), int(row.value)) for row in rows_of(bootstrap, topic, 3))
    assert found == Counter((word, count) for word in words for count in (1, 2, 3))


def test_a_batch_that_fails_without_a_shuffle_is_written_again_with_one(
    bootstrap: str, topic: str, admin: Admin, copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, flag = f"{topic}-out", tmp_path / "failed"
    admin.create_topic(topic, partitions=2)
    admin.create_topic(target, partitions=2)
    fill(bootstrap, topic, range(40), keyed=False)
    make = task_writer._writer

    def failing(*arguments: Any) -> Any:
        write = make(*arguments)

        def once(batches: Iterator[Any]) -> Iterator[Any]:
            reports = list(write(batches))
            if not flag.exists():
                flag.touch()
                raise RuntimeError("the executor is out of memory")
            yield from reports

        return once

    monkeypatch.setattr(task_writer, "_writer", failing)
    assert copy(target, "value") == [TaskPartitions(2, 2), None]
    assert values(bootstrap, target, 2) == list(range(40))


def test_a_micro_batch_asks_little_of_spark(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call takes processor time from the tasks, whichever thread of the driver it is in."""
    from py4j.clientserver import JavaClient

    target = f"{topic}-out"
    for name in (topic, target):
        admin.create_topic(name, partitions=2)
    fill(bootstrap, topic, range(240), keyed=False)
    send, calls, at_commits = JavaClient.send_command, itertools.count(), []

    def counted(*arguments: Any, **more: Any) -> Any:
        next(calls)
        return send(*arguments, **more)

    monkeypatch.setattr(JavaClient, "send_command", counted)
    stream = spark.readStream.format("strandline").option("kafka.bootstrap.servers", bootstrap)
    stream = stream.option("subscribe", topic).option("startingOffsets", "earliest")
    rows = stream.option("maxOffsetsPerTrigger", "40").load().select("value")
    writer = exactly_once(
        rows, bootstrap, topic=target, on_commit=lambda *_: at_commits.append(next(calls))
    ).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    assert query.awaitTermination(QUERY_SECONDS_MAX)
    of_batches = [later - earlier for earlier, later in itertools.pairwise(at_commits)]
    assert len(of_batches) == 5
    assert median(of_batches) < CALLS_MAX, of_batches


def test_rows_that_need_a_shuffle_are_an_error_without_one(bootstrap: str, topic: str, admin: Admin) -> None:
    import pyarrow as pa

    from strandline.spark.sink.batch_transaction import BatchTransaction

    admin.create_topic(topic, partitions=2)
    settings = {"bootstrap.servers": bootstrap}
    transaction = BatchTransaction(settings, topic, 60_000)
    transaction.begin()
    rows = pa.record_batch({"value": [b"v"], "partition": pa.array([1], pa.int32())})
    (report,) = task_writer.write_task(
        iter([rows]),
        transaction.ticket,
        settings,
        topic=topic,
        counted_topics=frozenset([topic]),
        stage=7,
        attempt=0,
        own_partitions=(TaskPartitions(2, 2), 0),
    )
    found = [task_writer.TaskReport(**each) for each in report.to_pylist()]
    with pytest.raises(ForeignPartitionError, match="task 0 of 2"):
        task_writer.check_reports(found, {7: 0})
    transaction.abort()
