"""Tasks write a DataFrame's rows inside the driver's transaction.

Every output partition is written by one task, once: sequence numbers of a second writer would collide with those of the
first, or be taken for repetitions of them and dropped. So:
1. Rows are shuffled by output partition, unless each task has its own partitions (`in_place`).
2. A task that Spark runs a second time, because the first failed, was lost or is slow, refuses to write.
3. After the job the driver looks whether Spark ran the writing stage twice, or two tasks report one partition.
In each of these cases the whole batch is aborted and written anew, in another epoch.

A task that cannot write says so in its report and succeeds: if it failed, Spark would run it again, and the refusal of
rule 2 would be all that the driver hears of.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from strandline.client.producer.shared_transaction import TransactionTicket
from strandline.spark.cluster import PATIENCE
from strandline.spark.sink.row_partitioning import PLACE, is_hash_there, placed
from strandline.spark.sink.rows import check_columns
from strandline.spark.sink.shuffle_free_write import (
    ElsewhereError,
    Sharing,
    places,
    sharing_of,
    what_is_written,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_TYPES: Final = ("string", "int32", "int64", "int32", "string")  # of a report, for Arrow
# Instead of a partition's number: the task was given all rows of the topic; or it has rows that it must not write.
WHOLE_TOPIC: Final = -1
ELSEWHERE: Final = -2
# The same for a task that could not write, and could not if it were repeated.
HOPELESS: Final = -3
# How long Spark's own listeners may be behind with what has happened; usually it is milliseconds.
_LISTENERS_MS_MAX: Final = 60_000


class Report(NamedTuple):
    """What a task says of one partition; or of itself, with an `error`, where it could not write."""

    topic: str
    partition: int
    rows: int
    stage: int
    error: str | None = None


class TaskFailedError(RuntimeError):
    """A task could not write its rows; the text has its error."""


class HopelessWriteError(TaskFailedError):
    """The same, where writing the rows again would not help: a topic that is not there, a setting that is none."""


class RepeatedWriteError(RuntimeError):
    """Spark has run a writing task twice, so that the batch cannot be committed."""


def write_in_transaction(
    df: DataFrame,
    ticket: TransactionTicket,
    settings: Mapping[str, str],
    topic: str | None,
    counts: Mapping[str, int],
    *,
    in_place: bool = False,
) -> dict[str, int]:
    """Writes all rows, and returns how many by topic once every one is acknowledged. Topics whose partitions were
    counted are written by several tasks each; one topic without a shuffle, if `in_place` says that this may be tried
    and it is possible. Raises RepeatedWriteError, TaskFailedError and ElsewhereError."""
    check_columns(df.schema, topic)
    context = df.sparkSession.sparkContext
    sharing = None
    if in_place and topic is not None and topic in counts:
        sharing = sharing_of(df, counts[topic])
    if sharing is not None:
        rows_there = what_is_written(df)
    else:
        counts = counts if is_hash_there(context._jvm) else {}
        rows_there = placed(df, topic, counts)
    task = _writer(ticket, dict(settings), topic, frozenset(counts), sharing)
    reports = [Report(*row) for row in rows_there.mapInArrow(task, _report_schema()).collect()]
    check_reports(reports, _attempts(context, {report.stage for report in reports}))
    rows: Counter[str] = Counter()
    for report in reports:
        rows[report.topic] += report.rows
    return dict(rows)


@cache
def _report_schema() -> StructType:
    """Not as text, which PySpark would have Spark parse for each batch."""
    from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

    kinds = {"string": StringType(), "int32": IntegerType(), "int64": LongType()}
    return StructType(
        [StructField(name, kinds[kind]) for name, kind in zip(Report._fields, _TYPES, strict=True)]
    )


def _attempts(context: SparkContext, stages: Iterable[int]) -> dict[int, int | None]:
    """How often Spark began each stage again; None where it does not know the stage."""
    # What the status tracker knows comes to it through listeners, some time after it has happened.
    spark: Any = context._jsc
    spark.sc().listenerBus().waitUntilEmpty(_LISTENERS_MS_MAX)
    tracker = context.statusTracker()
    infos = {stage: tracker.getStageInfo(stage) for stage in stages}
    return {stage: None if info is None else info.currentAttemptId for stage, info in infos.items()}


def check_reports(reports: Sequence[Report], attempts: Mapping[int, int | None]) -> None:
    """Rule 3, of what tasks report and how often Spark began each stage again."""
    for report in reports:
        if report.partition == ELSEWHERE:
            raise ElsewhereError(report.error)
    for report in reports:
        if report.error is not None:
            kind = HopelessWriteError if report.partition == HOPELESS else TaskFailedError
            raise kind(f"a task could not write: {report.error}")
    for stage, attempt in sorted(attempts.items()):
        if attempt is None:
            raise RepeatedWriteError(f"Spark does not say whether it ran stage {stage} again")
        if attempt > 0:
            raise RepeatedWriteError(f"Spark ran stage {stage} again")
    places = [(report.topic, report.partition) for report in reports]
    whole = {report.topic for report in reports if report.partition == WHOLE_TOPIC}
    if len(set(places)) < len(places) or any(each.partition >= 0 and each.topic in whole for each in reports):
        raise RepeatedWriteError("two tasks wrote to one partition")


def _writer(
    ticket: TransactionTicket,
    settings: dict[str, str],
    topic: str | None,
    shared: frozenset[str],
    sharing: Sharing | None = None,
) -> Any:
    """`shared` are the topics of which several tasks write; `sharing` says which of them writes where, if rows were not
    placed before."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "this runs in tasks"
        return write_task(
            batches,
            ticket,
            settings,
            topic=topic,
            shared=shared,
            stage=context.stageId(),
            attempt=context.attemptNumber(),
            own=None if sharing is None else (sharing, context.partitionId()),
        )

    return write


def write_task(
    batches: Iterator[pa.RecordBatch],
    ticket: TransactionTicket,
    settings: dict[str, str],
    *,
    topic: str | None,
    shared: frozenset[str],
    stage: int,
    attempt: int,
    own: tuple[Sharing, int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """`own` is how partitions are shared out and the number of this task."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from strandline.client.errors import ConfigError, UnknownTopicError
    from strandline.client.sync import TransactionMember
    from strandline.spark.runtime.tcp_quickack import acknowledge_now
    from strandline.spark.runtime.worker_setup import get_ready
    from strandline.spark.sink.at_least_once import send_all
    from strandline.spark.sink.rows import by_topic

    if attempt > 0:
        raise RepeatedWriteError(f"attempt {attempt} of a task: the first may have written already")
    get_ready()
    acknowledge_now()
    counts: Counter[tuple[str, int]] = Counter()

    def tables() -> Iterator[tuple[str, pa.RecordBatch]]:
        for batch in batches:
            for name, found in by_topic(batch, topic):
                rows = found if own is None else found.append_column(PLACE, places(found, *own))
                if name in shared:
                    for each in pc.value_counts(rows.column(PLACE)).to_pylist():
                        counts[name, each["values"]] += each["counts"]
                else:
                    counts[name, WHOLE_TOPIC] += rows.num_rows
                yield name, rows
            acknowledge_now()

    try:
        with TransactionMember({**PATIENCE, **settings}, ticket=ticket) as producer:
            send_all(producer, tables(), partition=PLACE)
        reports = [Report(name, partition, rows, stage) for (name, partition), rows in counts.items()]
    except ElsewhereError as error:
        reports = [Report("", ELSEWHERE, 0, stage, str(error))]
    except (UnknownTopicError, ConfigError) as error:
        # For the topic it has waited as long as max.block.ms says.
        reports = [Report("", HOPELESS, 0, stage, str(error))]
    except Exception:
        reports = [Report("", WHOLE_TOPIC, 0, stage, traceback.format_exc())]
    if reports:
        columns = [
            pa.array(values, kind) for values, kind in zip(zip(*reports, strict=True), _TYPES, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, names=list(Report._fields))
