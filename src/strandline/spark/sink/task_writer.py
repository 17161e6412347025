"""Tasks write a DataFrame's rows inside the driver's transaction.

Every output partition is written by one task, once: sequence numbers of a second writer would collide with those of the
first, or be taken for repetitions of them and dropped. So:
1. Rows are shuffled by output partition, unless each task has its own partitions (`shuffle_free`).
2. A task that Spark runs a second time, because the first failed, was lost or is slow, refuses to write.
3. After the job the driver checks whether Spark ran the writing stage twice, or two tasks report one partition.

In each of these cases the whole batch is aborted and written again, in another epoch.

A task that cannot write says so in its report and succeeds: if it failed, Spark would run it again, and the driver
would only see the refusal of rule 2.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from strandline.client.producer.shared_transaction import TransactionTicket
from strandline.spark.cluster import RUNNING_QUERY_SETTINGS
from strandline.spark.sink.row_partitioning import PARTITION_COLUMN, has_murmur2, partition_rows
from strandline.spark.sink.rows import check_columns
from strandline.spark.sink.shuffle_free_write import (
    ForeignPartitionError,
    TaskPartitions,
    assign_own_partitions,
    select_record_columns,
    task_partitions_of,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_TYPES: Final = ("string", "int32", "int64", "int32", "string")  # the types of a report's fields, for Arrow
# These stand instead of a partition's number: the task wrote all rows of the topic, or it has rows that it must not
# write.
WHOLE_TOPIC: Final = -1
FOREIGN_PARTITION: Final = -2
# The same for a task that could not write, and could not write either if it ran again.
FATAL: Final = -3
# The longest delay with which Spark's own listeners learn of events; usually it is milliseconds.
_LISTENERS_MS_MAX: Final = 60_000


class TaskReport(NamedTuple):
    """A task's report about one partition, or about itself with an `error` if it could not write."""

    topic: str
    partition: int
    rows: int
    stage: int
    error: str | None = None


class TaskFailedError(RuntimeError):
    """A task could not write its rows; the text has its error."""


class FatalWriteError(TaskFailedError):
    """A task could not write its rows, and writing them again would not help: a topic does not exist, or a setting is
    invalid."""


class RepeatedWriteError(RuntimeError):
    """Spark has run a writing task twice, so that the batch cannot be committed."""


def write_in_transaction(
    df: DataFrame,
    ticket: TransactionTicket,
    settings: Mapping[str, str],
    topic: str | None,
    counts: Mapping[str, int],
    *,
    shuffle_free: bool = False,
) -> dict[str, int]:
    """Writes all rows, and returns the number of rows for each topic after all are acknowledged. Several tasks write
    each topic whose partitions were counted. A single topic is written without a shuffle if `shuffle_free` permits that
    and it is possible. Raises RepeatedWriteError, TaskFailedError and ForeignPartitionError."""
    check_columns(df.schema, topic)
    context = df.sparkSession.sparkContext
    task_partitions = None
    if shuffle_free and topic is not None and topic in counts:
        task_partitions = task_partitions_of(df, counts[topic])
    if task_partitions is not None:
        prepared = select_record_columns(df)
    else:
        counts = counts if has_murmur2(context._jvm) else {}
        prepared = partition_rows(df, topic, counts)
    task = _writer(ticket, dict(settings), topic, frozenset(counts), task_partitions)
    reports = [TaskReport(*row) for row in prepared.mapInArrow(task, _report_schema()).collect()]
    check_reports(reports, _attempts(context, {report.stage for report in reports}))
    rows: Counter[str] = Counter()
    for report in reports:
        rows[report.topic] += report.rows
    return dict(rows)


@cache
def _report_schema() -> StructType:
    """Returns the schema of reports as an object: PySpark would have Spark parse a text for each batch."""
    from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

    kinds = {"string": StringType(), "int32": IntegerType(), "int64": LongType()}
    return StructType(
        [StructField(name, kinds[kind]) for name, kind in zip(TaskReport._fields, _TYPES, strict=True)]
    )


def _attempts(context: SparkContext, stages: Iterable[int]) -> dict[int, int | None]:
    """Returns the number of times that Spark began each stage again; None if it does not know the stage."""
    # The status tracker learns of events through listeners, some time after they happened.
    spark: Any = context._jsc
    spark.sc().listenerBus().waitUntilEmpty(_LISTENERS_MS_MAX)
    tracker = context.statusTracker()
    infos = {stage: tracker.getStageInfo(stage) for stage in stages}
    return {stage: None if info is None else info.currentAttemptId for stage, info in infos.items()}


def check_reports(reports: Sequence[TaskReport], attempts: Mapping[int, int | None]) -> None:
    """Checks rule 3, from the tasks' reports and the number of times that Spark began each stage again."""
    for report in reports:
        if report.partition == FOREIGN_PARTITION:
            raise ForeignPartitionError(report.error)
    for report in reports:
        if report.error is not None:
            kind = FatalWriteError if report.partition == FATAL else TaskFailedError
            raise kind(f"a task could not write: {report.error}")
    for stage, attempt in sorted(attempts.items()):
        if attempt is None:
            raise RepeatedWriteError(f"Spark does not say whether it ran stage {stage} again")
        if attempt > 0:
            raise RepeatedWriteError(f"Spark ran stage {stage} again")
    written = [(report.topic, report.partition) for report in reports]
    whole = {report.topic for report in reports if report.partition == WHOLE_TOPIC}
    if len(set(written)) < len(written) or any(
        each.partition >= 0 and each.topic in whole for each in reports
    ):
        raise RepeatedWriteError("two tasks wrote to one partition")


def _writer(
    ticket: TransactionTicket,
    settings: dict[str, str],
    topic: str | None,
    counted_topics: frozenset[str],
    task_partitions: TaskPartitions | None = None,
) -> Any:
    """Returns the function of a task. Several tasks write each of `counted_topics`; `task_partitions` says which of
    them writes where, if rows have no partitions yet."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "this runs in tasks"
        return write_task(
            batches,
            ticket,
            settings,
            topic=topic,
            counted_topics=counted_topics,
            stage=context.stageId(),
            attempt=context.attemptNumber(),
            own_partitions=None if task_partitions is None else (task_partitions, context.partitionId()),
        )

    return write


def write_task(
    batches: Iterator[pa.RecordBatch],
    ticket: TransactionTicket,
    settings: dict[str, str],
    *,
    topic: str | None,
    counted_topics: frozenset[str],
    stage: int,
    attempt: int,
    own_partitions: tuple[TaskPartitions, int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Writes the rows of one task and yields its reports. `own_partitions` is how partitions are shared out, and the
    number of this task."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from strandline.client.errors import ConfigError, UnknownTopicError
    from strandline.client.sync import TransactionMember
    from strandline.spark.runtime.tcp_quickack import acknowledge_now
    from strandline.spark.runtime.worker_setup import set_up_worker
    from strandline.spark.sink.at_least_once import send_all
    from strandline.spark.sink.rows import split_by_topic

    if attempt > 0:
        raise RepeatedWriteError(f"attempt {attempt} of a task: the first may have written already")
    set_up_worker()
    acknowledge_now()
    counts: Counter[tuple[str, int]] = Counter()

    def tables() -> Iterator[tuple[str, pa.RecordBatch]]:
        for batch in batches:
            for name, rows in split_by_topic(batch, topic):
                if own_partitions is not None:
                    rows = rows.append_column(PARTITION_COLUMN, assign_own_partitions(rows, *own_partitions))
                if name in counted_topics:
                    for each in pc.value_counts(rows.column(PARTITION_COLUMN)).to_pylist():
                        counts[name, each["values"]] += each["counts"]
                else:
                    counts[name, WHOLE_TOPIC] += rows.num_rows
                yield name, rows
            acknowledge_now()

    try:
        with TransactionMember({**RUNNING_QUERY_SETTINGS, **settings}, ticket=ticket) as producer:
            send_all(producer, tables(), partition=PARTITION_COLUMN)
        reports = [TaskReport(name, partition, rows, stage) for (name, partition), rows in counts.items()]
    except ForeignPartitionError as error:
        reports = [TaskReport("", FOREIGN_PARTITION, 0, stage, str(error))]
    except (UnknownTopicError, ConfigError) as error:
        # The producer has already waited max.block.ms for the topic.
        reports = [TaskReport("", FATAL, 0, stage, str(error))]
    except Exception:
        reports = [TaskReport("", WHOLE_TOPIC, 0, stage, traceback.format_exc())]
    if reports:
        columns = [
            pa.array(values, kind) for values, kind in zip(zip(*reports, strict=True), _TYPES, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, names=list(TaskReport._fields))
