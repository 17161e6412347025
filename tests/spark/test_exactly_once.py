"""The exactly-once sink as foreachBatch calls it: replays, foreign checkpoints, failures between the steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from strandline.client.errors import KafkaTimeoutError, ProducerFencedError
from strandline.client.sync import Admin, Producer, TransactionOwner
from strandline.spark import exactly_once, write_atomically
from strandline.spark.options import OptionError
from strandline.spark.sink import commit_markers
from strandline.spark.sink.batch_decision import CommitMarker, LineageError
from strandline.spark.sink.batch_transaction import (
    BatchTransaction,
    TakenOverError,
    TransactionTooLongError,
    UnknownOutcomeError,
)
from strandline.spark.sink.commit_markers import MarkerLog
from strandline.spark.sink.exactly_once import ExactlyOnceSink
from strandline.spark.sink.row_partitioning import PARTITION_COLUMN, partition_counts
from strandline.spark.sink.task_writer import (
    FatalWriteError,
    RepeatedWriteError,
    TaskFailedError,
    TaskReport,
    check_reports,
    write_task,
)
from strandline.testing.clusters import wait_until
from tests.spark.topics import rows_of

Values = Callable[[], list[int]]


@pytest.fixture
def made(topic: str, admin: Admin) -> str:
    admin.create_topic(topic, partitions=3)
    return topic


@pytest.fixture
def values(bootstrap: str, made: str) -> Values:
    """Returns the values that readers of committed data get."""
    return lambda: sorted(int(row.value) for row in rows_of(bootstrap, made, 3))


@pytest.fixture
def query(spark: Any, made: str) -> Any:
    """Gives the thread the id of a query, as Spark does when it calls foreachBatch."""

    def become(name: str) -> None:
        spark.sparkContext.setLocalProperty("sql.streaming.queryId", f"{made}-{name}")

    become("query")
    yield become
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", None)


def answer_lost(commit: Callable[[BatchTransaction], None]) -> Callable[[BatchTransaction], None]:
    def commit_and_fail(self: BatchTransaction) -> None:
        commit(self)
        raise KafkaTimeoutError(None, "the coordinator did not answer")

    return commit_and_fail


def numbers(spark: Any, start: int, end: int) -> Any:
    return spark.range(start, end).selectExpr("cast(id as string) as key", "cast(id as string) as value")


def test_a_replayed_batch_is_skipped_by_this_driver_and_the_next(
    spark: Any, bootstrap: str, made: str, values: Values, query: Any
) -> None:
    sink = ExactlyOnceSink(bootstrap, topic=made)
    sink(numbers(spark, 0, 20), 0)
    sink(numbers(spark, 0, 20), 0)
    sink(numbers(spark, 0, 0), 1)
    successor = ExactlyOnceSink(bootstrap, topic=made)
    successor(numbers(spark, 100, 120), 1)
    assert values() == list(range(20)), "batch 1 was empty, and is committed"
    successor(numbers(spark, 20, 30), 2)
    assert values() == list(range(30))
    with pytest.raises(LineageError, match="marker is of batch 2"):
        successor(numbers(spark, 30, 40), 4)


def test_a_deleted_checkpoint_is_an_error_under_a_name_and_a_new_lineage_without(
    spark: Any, bootstrap: str, made: str, values: Values, query: Any
) -> None:
    ExactlyOnceSink(bootstrap, topic=made, name=made)(numbers(spark, 0, 5), 0)
    query("another")
    with pytest.raises(LineageError, match="checkpoint was deleted"):
        ExactlyOnceSink(bootstrap, topic=made, name=made)(numbers(spark, 0, 5), 0)
    assert values() == list(range(5))
    again = ExactlyOnceSink(bootstrap, topic=made, name=made, new_lineage=True)
    again(numbers(spark, 5, 8), 0)
    ExactlyOnceSink(bootstrap, topic=made)(numbers(spark, 8, 9), 0)
    assert values() == list(range(9))


def test_a_batch_that_fails_after_it_was_written_is_written_again_and_seen_once(
    spark: Any, bootstrap: str, made: str, values: Values, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, calls = BatchTransaction.write, []

    def fails_first(self: BatchTransaction, df: Any, topic: str | None, *seen: Any) -> dict[str, int]:
        found = write(self, df, topic, *seen)
        calls.append(found)
        if len(calls) == 1:
            raise RuntimeError("an executor was lost")
        return found

    monkeypatch.setattr(BatchTransaction, "write", fails_first)
    ExactlyOnceSink(bootstrap, topic=made)(numbers(spark, 0, 20), 0)
    assert calls == [{made: 20}] * 2
    assert values() == list(range(20))


def test_a_batch_that_cannot_be_written_leaves_no_transaction_open(
    spark: Any, bootstrap: str, made: str, values: Values, query: Any, admin: Admin, monkeypatch: Any
) -> None:
    write, calls = BatchTransaction.write, []

    def fails_always(self: BatchTransaction, df: Any, topic: str | None, *seen: Any) -> dict[str, int]:
        calls.append(write(self, df, topic, *seen))
        raise RuntimeError("an executor was lost")

    monkeypatch.setattr(BatchTransaction, "write", fails_always)
    with pytest.raises(RuntimeError, match="executor was lost"):
        ExactlyOnceSink(bootstrap, topic=made, name=made)(numbers(spark, 0, 20), 0)
    assert calls == [{made: 20}] * 3
    assert admin.describe_transactions([made])[made].state != "Ongoing", "readers would wait behind it"
    assert values() == []


@pytest.mark.parametrize(
    "error",
    [
        OptionError("there is no column value"),
        FatalWriteError("a task could not write: topic nowhere"),
        RuntimeError("An error occurred while calling o1.collectToPython.\n: java.lang.InterruptedException"),
    ],
)
def test_a_batch_is_not_tried_again_if_that_cannot_help_or_the_query_is_stopped(
    spark: Any, bootstrap: str, made: str, query: Any, admin: Admin, monkeypatch: Any, error: Exception
) -> None:
    calls = []

    def fails(self: BatchTransaction, *arguments: Any) -> dict[str, int]:
        calls.append(arguments)
        raise error

    monkeypatch.setattr(BatchTransaction, "write", fails)
    with pytest.raises(type(error)) as raised:
        ExactlyOnceSink(bootstrap, topic=made, name=made)(numbers(spark, 0, 20), 0)
    assert raised.value is error
    assert len(calls) == 1
    assert admin.describe_transactions([made])[made].state != "Ongoing", "readers would wait behind it"


def test_a_missing_topic_that_rows_name_is_an_error_at_once(bootstrap: str, topic: str, admin: Admin) -> None:
    settings = {"bootstrap.servers": bootstrap, "max.block.ms": "100"}
    transaction = BatchTransaction(settings, topic, 60_000)
    transaction.begin()
    rows = pa.record_batch(
        {"value": [b"v"], "topic": [f"{topic}-nowhere"], PARTITION_COLUMN: pa.array([None], pa.int32())}
    )
    task = {"topic": None, "counted_topics": frozenset[str](), "stage": 1, "attempt": 0}
    (table,) = write_task(iter([rows]), transaction.ticket, settings, **task)
    with pytest.raises(FatalWriteError, match=f"topic {topic}-nowhere .create the topic"):
        check_reports([TaskReport(**row) for row in table.to_pylist()], {})
    transaction.close()


def test_a_commit_whose_response_is_lost_counts(
    spark: Any, bootstrap: str, made: str, values: Values, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchTransaction, "commit", answer_lost(BatchTransaction.commit))
    ExactlyOnceSink(bootstrap, topic=made)(numbers(spark, 0, 20), 0)
    assert values() == list(range(20))


def test_a_driver_that_was_taken_over_writes_nothing_more_and_fails(
    spark: Any, bootstrap: str, made: str, values: Values, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = BatchTransaction.write

    def taken_over(self: BatchTransaction, df: Any, topic: str | None, *seen: Any) -> dict[str, int]:
        found = write(self, df, topic, *seen)
        with TransactionOwner(bootstrap_servers=bootstrap, transactional_id=made) as other:
            other.init_transactions()
        return found

    monkeypatch.setattr(BatchTransaction, "write", taken_over)
    with pytest.raises(TakenOverError, match="another driver"):
        ExactlyOnceSink(bootstrap, topic=made, name=made)(numbers(spark, 0, 20), 0)
    assert values() == []


def test_a_batch_longer_than_its_transaction_may_take_is_refused_whole(
    spark: Any,
    bootstrap: str,
    made: str,
    values: Values,
    query: Any,
    admin: Admin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = BatchTransaction.write

    def slow(self: BatchTransaction, df: Any, topic: str | None, *seen: Any) -> dict[str, int]:
        found = write(self, df, topic, *seen)
        wait_until(lambda: admin.describe_transactions([made])[made].state != "Ongoing", 60)
        return found

    monkeypatch.setattr(BatchTransaction, "write", slow)
    sink = ExactlyOnceSink(bootstrap, topic=made, name=made, transaction_timeout_ms=1000)
    with pytest.raises(TransactionTooLongError, match="transaction_timeout_ms"):
        sink(numbers(spark, 0, 20), 0)
    assert values() == []


def test_a_batch_job_writes_all_or_nothing_into_the_topics_that_its_rows_name(
    spark: Any, bootstrap: str, made: str, admin: Admin, values: Values, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.create_topic(f"{made}-2", partitions=1)
    rows = numbers(spark, 0, 20).selectExpr("value", f"if(value % 2 = 0, '{made}', '{made}-2') as topic")
    bad = rows.selectExpr("value", "topic", "if(value = '19', 7, 0) as partition")  # there is no partition 7
    with pytest.raises(TaskFailedError, match="partitions must be from 0"):
        write_atomically(bad, bootstrap, name=made)
    assert values() == []
    monkeypatch.setattr(BatchTransaction, "commit", answer_lost(BatchTransaction.commit))
    with pytest.raises(UnknownOutcomeError, match="Check that before"):
        write_atomically(rows, bootstrap, name=made)
    assert values() == list(range(0, 20, 2))
    assert sorted(int(row.value) for row in rows_of(bootstrap, f"{made}-2", 1)) == list(range(1, 20, 2))


def test_a_query_with_state_goes_on_after_a_skipped_batch_but_not_over_one_that_is_planned_again(
    spark: Any,
    bootstrap: str,
    made: str,
    values: Values,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()
    counts = spark.readStream.text(str(source)).groupBy("value").count()

    def run(batch_id: int, count: int) -> None:
        """Reads one more file, with so many lines."""
        (source / f"{batch_id}.txt").write_text("same\n" * count)
        rows = counts.selectExpr("cast(count as string) as value")
        writer = exactly_once(rows, bootstrap, topic=made).outputMode("update").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        assert query.awaitTermination(300)

    def forget(notes: str, batch_id: int) -> None:
        for path in (checkpoint / notes).glob(f"*{batch_id}*"):
            path.unlink()

    close, closed = MarkerLog.close, []
    monkeypatch.setattr(MarkerLog, "close", lambda log: closed.append(close(log)))
    run(0, 3)
    forget("commits", 0)  # as if the driver had died behind the sink's commit
    run(1, 2)
    assert values() == [3, 5]
    forget("commits", 1)
    forget("offsets", 1)  # as in a copy of the checkpoint from before batch 1
    with pytest.raises(Exception, match="planned the batch again"):
        run(2, 1)
    assert values() == [3, 5]
    wait_until(lambda: len(closed) == 3, 60)  # what each query had open


def test_two_queries_of_one_sink_each_have_their_own_lineage(
    spark: Any, bootstrap: str, made: str, values: Values, query: Any
) -> None:
    sink = ExactlyOnceSink(bootstrap, topic=made)
    sink(numbers(spark, 0, 5), 0)
    query("another")
    sink(numbers(spark, 5, 8), 0)
    sink(numbers(spark, 5, 8), 0)
    assert values() == list(range(8))
    last = [run.markers.last() for run in sink._runs.values()]
    assert [marker.query_id for marker in last if marker] == [f"{made}-query", f"{made}-another"]
    sink.close()
    assert not sink._runs


# What needs no Spark


def test_a_task_that_runs_again_refuses_to_write() -> None:
    nobody: Any = None
    with pytest.raises(RepeatedWriteError, match="attempt 1"):
        next(write_task(iter(()), nobody, {}, topic="t", counted_topics=frozenset(), stage=1, attempt=1))


def test_a_task_that_cannot_write_says_why_and_lets_the_job_end(
    bootstrap: str, topic: str, admin: Admin
) -> None:
    admin.create_topic(topic, configs={"max.message.bytes": "10000"})
    settings = {"bootstrap.servers": bootstrap}
    transaction = BatchTransaction(settings, topic, 60_000)
    transaction.begin()
    rows = pa.record_batch(
        {"value": [b"small", bytes(20_000)], PARTITION_COLUMN: pa.array([0, 0], pa.int32())}
    )
    counted_topics = frozenset([topic])
    (report,) = write_task(
        iter([rows]),
        transaction.ticket,
        settings,
        topic=topic,
        counted_topics=counted_topics,
        stage=7,
        attempt=0,
    )
    (found,) = report.to_pylist()
    assert (found["stage"], found["rows"]) == (7, 0)
    assert "MESSAGE_TOO_LARGE" in found["error"]
    transaction.abort()


def test_a_commit_that_is_refused_because_it_was_carried_out_is_no_other_drivers(
    bootstrap: str, topic: str
) -> None:
    settings = {"bootstrap.servers": bootstrap}
    log = MarkerLog(settings, topic)
    refused = ProducerFencedError(None, "the epoch is not the current one")
    first, second = (BatchTransaction(settings, topic, 60_000) for _ in range(2))
    for transaction in (first, second):
        transaction.begin()
        transaction.mark(log, CommitMarker(query_id="q", batch_id=0, rows=0))
        transaction.commit()
        assert transaction.final_error(refused) is None
    assert isinstance(first.final_error(refused), TakenOverError)
    for each in (first, second, log):
        each.close()


def test_markers_are_not_kept_where_they_would_expire(
    bootstrap: str, topic: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_markers, "MARKER_TOPIC", topic)
    admin.create_topic(topic, configs={"cleanup.policy": "compact,delete"})
    with pytest.raises(LineageError, match="set it to compact"):
        MarkerLog({"bootstrap.servers": bootstrap}, "sink")
    admin.delete_topics([topic])
    for _ in range(2):
        log = MarkerLog({"bootstrap.servers": bootstrap}, "sink")
        assert log.partition.topic == topic
        log.close()


def test_a_topic_that_had_rows_and_was_deleted_does_not_hold_up_the_others(
    bootstrap: str, topic: str, admin: Admin
) -> None:
    admin.create_topic(topic, partitions=3)
    counts = partition_counts(admin, None, [topic, f"{topic}-gone"])
    assert counts == {topic: 3}


def test_a_marker_after_an_open_transaction_of_another_sink_is_awaited(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MarkerLog({"bootstrap.servers": bootstrap}, topic)
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-other") as other:
        other.init_transactions()
        other.begin_transaction()
        other.send_and_wait(log.partition.topic, b"{}", b"other", partition=log.partition.partition)
        monkeypatch.setattr(commit_markers, "_READ_TIMEOUT_SECONDS", 0.5)
        with pytest.raises(KafkaTimeoutError, match="transaction is open"):
            log.last()
        other.abort_transaction()
    monkeypatch.undo()
    assert log.last() is None
    log.close()


def test_a_driver_that_died_in_its_transaction_does_not_hold_up_the_next_batches_of_others(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"bootstrap.servers": bootstrap}
    log = MarkerLog(settings, topic)
    mine, taken, again = (BatchTransaction(settings, topic, 60_000) for _ in range(3))
    marker = CommitMarker(query_id="q", batch_id=0, rows=5)
    mine.begin()
    assert log.last(mine.ticket) is None
    mine.mark(log, marker)
    mine.commit()
    log.committed(marker, mine.ticket)
    monkeypatch.setattr(commit_markers, "_READ_TIMEOUT_SECONDS", 0.2)
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-other") as other:
        other.init_transactions()
        other.begin_transaction()
        other.send_and_wait(log.partition.topic, b"{}", b"other", partition=log.partition.partition)
        taken.begin()
        assert log.last(taken.ticket) == marker
        again.begin()
        # Somebody has had the name since: what they have committed must be known.
        with pytest.raises(KafkaTimeoutError, match="transaction is open"):
            log.last(again.ticket)
        other.abort_transaction()
    for each in (mine, taken, again, log):
        each.close()
