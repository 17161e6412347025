"""Tasks write a DataFrame's rows inside the driver's transaction.

Every output partition is written by one task, once: sequence numbers of a second writer would collide with those of the
first, or be taken for repetitions of them and dropped. So:
1. Rows are shuffled by output partition.
2. A task that Spark runs a second time, because the first failed, was lost or is slow, refuses to write.
3. After the job the driver looks whether Spark ran the writing stage twice, or two tasks report one partition.
In each of these cases the whole batch is aborted and written anew, in another epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from strandline.client.transaction_shared import TransactionTicket
from strandline.spark.placing import PLACE, placer
from strandline.spark.rows import check_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_REPORT: Final = "topic string, partition int, rows bigint, stage int"


class Report(NamedTuple):
    """What a task says of one partition."""

    topic: str
    partition: int
    rows: int
    stage: int


class RepeatedWriteError(RuntimeError):
    """Spark has run a writing task twice, so that the batch cannot be committed."""


def write_in_transaction(
    df: DataFrame, ticket: TransactionTicket, settings: Mapping[str, str], topic: str | None
) -> dict[str, int]:
    """Writes all rows, and returns how many by topic once every one is acknowledged. Raises RepeatedWriteError."""
    check_columns(df.schema, topic)
    task = _writer(ticket, dict(settings))
    reports = [Report(*row) for row in placed(df, settings, topic).mapInArrow(task, _REPORT).collect()]
    tracker = df.sparkSession.sparkContext.statusTracker()
    infos = {stage: tracker.getStageInfo(stage) for stage in {report.stage for report in reports}}
    check_reports(
        reports, {stage: info.currentAttemptId for stage, info in infos.items() if info is not None}
    )
    rows: Counter[str] = Counter()
    for report in reports:
        rows[report.topic] += report.rows
    return dict(rows)


def check_reports(reports: Sequence[Report], attempts: Mapping[int, int]) -> None:
    """Rule 3, of what tasks report and how often Spark began each stage again."""
    for stage, attempt in sorted(attempts.items()):
        if attempt > 0:
            raise RepeatedWriteError(f"Spark ran stage {stage} again")
    places = [(report.topic, report.partition) for report in reports]
    if len(set(places)) < len(places):
        raise RepeatedWriteError("two tasks wrote to one partition")


def placed(df: DataFrame, settings: Mapping[str, str], topic: str | None) -> DataFrame:
    """The rows with their partitions, shuffled so that each partition is in one task."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.functions import arrow_udf

    def column(name: str, kind: str) -> Any:
        return f.col(name) if name in df.columns else f.lit(None).cast(kind)

    rows = df.select(
        (f.col("topic") if topic is None else f.lit(topic)).alias("topic"),
        column("key", "binary").cast("binary").alias("key"),
        f.col("value").cast("binary").alias("value"),
        column("headers", "array<struct<key: string, value: binary>>").alias("headers"),
        column("partition", "int").alias("partition"),
    )
    make_function: Any = arrow_udf  # its stubs know functions of a fixed number of columns only
    place = make_function(placer(settings), "int").asNondeterministic()
    rows = rows.withColumn(PLACE, place("topic", "key", "partition")).drop("partition")
    tasks = df.sparkSession.sparkContext.defaultParallelism
    if topic is not None:
        return rows.repartitionById(tasks, f.col(PLACE))
    return rows.repartition(tasks, "topic", PLACE)


def _writer(ticket: TransactionTicket, settings: dict[str, str]) -> Any:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "this runs in tasks"
        return write_task(batches, ticket, settings, context.stageId(), context.attemptNumber())

    return write


def write_task(
    batches: Iterator[pa.RecordBatch],
    ticket: TransactionTicket,
    settings: dict[str, str],
    stage: int,
    attempt: int,
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.compute as pc

    from strandline.client.sync import TransactionMember
    from strandline.spark.rows import by_topic
    from strandline.spark.writing import send_all

    if attempt > 0:
        raise RepeatedWriteError(f"attempt {attempt} of a task: the first may have written already")
    counts: dict[tuple[str, int], int] = {}

    def tables() -> Iterator[tuple[str, pa.RecordBatch]]:
        for batch in batches:
            for topic, rows in by_topic(batch, None):
                for each in pc.value_counts(rows.column(PLACE)).to_pylist():
                    where = (topic, each["values"])
                    counts[where] = counts.get(where, 0) + each["counts"]
                yield topic, rows

    with TransactionMember(settings, ticket=ticket) as producer:
        send_all(producer, tables(), partition=PLACE)
    rows = [
        {"topic": topic, "partition": partition, "rows": count, "stage": stage}
        for (topic, partition), count in counts.items()
    ]
    if rows:
        types = [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("rows", pa.int64()),
            ("stage", pa.int32()),
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=pa.schema(types))
