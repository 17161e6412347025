"""The streaming queries of a pipeline: one for everything that goes into topics, one for each other sink.

Everything that the query writes into topics, dead letters too, is one transaction per batch. Each query has a
checkpoint of its own inside the pipeline's. Tables and Spark's file sink are exactly once by themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from strandline.pipeline.plan.plan import PipelinePlan
from strandline.pipeline.plan.single_evaluation import SingleEvaluationSink
from strandline.pipeline.plan.table_sink import TableSink
from strandline.pipeline.runtime.progress import QueryProgress
from strandline.pipeline.spec.dead_letter_topics import dead_letter_topics, retry_topics
from strandline.pipeline.spec.spec import TABLE_SINK, TOPIC_SINK, Sink, Spec
from strandline.pipeline.spec.yaml_lines import Mistake, SpecError
from strandline.spark.sink.exactly_once import ExactlyOnceSink
from strandline.spark.sink.restarting import RESTARTS_MAX, is_transient

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TOPICS: Final = "topics"
_CONSOLE_ROWS: Final = 20
# By format, a class of its package, and the package's Maven coordinates. The class extends one of Spark's, so it cannot
# be loaded if the package is for another version of Spark.
_PACKAGES: Final = {
    "delta": ("org.apache.spark.sql.delta.catalog.DeltaCatalog", "io.delta:delta-spark_SPARK_2.13:VERSION"),
    "iceberg": (
        "org.apache.iceberg.spark.SparkCatalog",
        "org.apache.iceberg:iceberg-spark-runtime-SPARK_2.13:VERSION",
    ),
}


class StopRequestedError(RuntimeError):
    """Ends a query before a batch begins."""


class GatedSink:
    """Writes batches until a stop is requested. The batch in progress is finished, and no further batch begins."""

    def __init__(self, sink: Callable[[DataFrame, int], None], stopping: threading.Event) -> None:
        self._sink = sink
        self._stopping = stopping
        self.has_refused = False

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        if self._stopping.is_set():
            self.has_refused = True
            raise StopRequestedError(f"batch {batch_id} is left for the next run")
        self._sink(df, batch_id)


@dataclass(slots=True, kw_only=True)
class RunningQuery:
    """A query of the pipeline, and how to start it again."""

    name: str
    query: StreamingQuery
    start: Callable[[], StreamingQuery]
    progress: QueryProgress
    gate: GatedSink | None
    close: Callable[[], None] = lambda: None
    last_batch: int | None = None  # the last batch that may be written
    restarts: int = 0

    def events(self) -> list[dict[str, Any]]:
        """Returns the events of batches that Spark has reported since the last call."""
        return self.progress.events(list(self.query.recentProgress))

    @property
    def failure(self) -> Exception | None:
        """The error with which the query ended, unless a stop was requested."""
        error = self.query.exception()
        return None if error is None or (self.gate is not None and self.gate.has_refused) else error

    def restart(self) -> bool:
        """Restarts the query at its checkpoint, if that can help and was not tried too often. True if it was
        restarted."""
        error = self.failure
        if not is_transient(error) or self.restarts == RESTARTS_MAX:
            return False
        self.restarts += 1
        self.query = self.start()
        return True

    def stop(self) -> None:
        """Stops the query at once, if it still runs."""
        try:
            self.query.stop()
        finally:
            self.close()

    def stop_between_batches(self) -> None:
        """Stops the query after the batch in progress; called until the query has ended. A query that writes into
        topics ends itself when its next batch comes. Other queries may be stopped in the middle of the next batch, of
        which Spark's file sink then shows nothing."""
        if self.last_batch is None:
            self.last_batch = self.progress.last_reported + 1
        is_past = self.gate is None and self.progress.last_reported >= self.last_batch
        if self.query.isActive and (is_past or not self.query.status["isTriggerActive"]):
            self.query.stop()


def query_names(spec: Spec) -> dict[str, Sink | None]:
    """Returns each query's sink by its name, which is also that of its checkpoint; None for the query into topics."""
    names: dict[str, Sink | None] = {}
    if any(sink.kind == TOPIC_SINK for sink in spec.sinks) or dead_letter_topics(spec):
        names[TOPICS] = None
    for sink in spec.sinks:
        if sink.kind == TOPIC_SINK:
            continue
        name = f"{sink.kind}-{sink.stage}"
        number = 2
        while name in names:
            name, number = f"{sink.kind}-{sink.stage}-{number}", number + 1
        names[name] = sink
    return names


def start_queries(spark: SparkSession, spec: Spec, stopping: threading.Event) -> list[RunningQuery]:
    """Starts the queries of a pipeline. If one cannot start, the queries before it are stopped."""
    for each in spec.sinks:
        check_package(spark, spec, each)
    running: list[RunningQuery] = []
    with ExitStack() as started:
        for name, sink in query_names(spec).items():
            # Several queries read the same topics; the group shows the progress of the first.
            plan = PipelinePlan(spark, spec, commit_group=spec.commit_group if not running else None)
            running.append(
                _start_topics(spec, plan, stopping)
                if sink is None
                else _start_table(spec, plan, name, sink, stopping)
                if sink.kind == TABLE_SINK
                else _start_sink(spec, plan, name, sink)
            )
            started.callback(running[-1].stop)
        started.pop_all()
    return running


def check_package(spark: SparkSession, spec: Spec, sink: Sink) -> None:
    """Raises SpecError where Spark lacks the package of a sink's format."""
    package = _PACKAGES.get(sink.kind)
    if package is None:
        return
    class_name, pattern = package
    jvm: Any = spark.sparkContext._jvm
    coordinates = pattern.replace("SPARK", ".".join(spark.version.split(".")[:2]))
    try:
        package_class = jvm.java.lang.Class.forName(
            class_name, False, jvm.Thread.currentThread().getContextClassLoader()
        )
    except Exception as error:
        text = (
            f"the sink {sink.kind} needs a package that Spark does not have: add spark.jars.packages: {coordinates} "
            "to spark.settings, in the version for your Spark"
        )
        raise SpecError([Mistake(file=spec.file, line=sink.line, text=text)]) from error
    try:
        package_class.getDeclaredConstructors()
    except Exception as error:
        version = f"another version than Spark {spark.version}"
        text = f"the package of the sink {sink.kind} is for {version}: use {coordinates}"
        raise SpecError([Mistake(file=spec.file, line=sink.line, text=text)]) from error


def _start_topics(spec: Spec, plan: PipelinePlan, stopping: threading.Event) -> RunningQuery:
    output = plan.output()
    assert output is not None, "query_names has looked"
    progress = QueryProgress(TOPICS, frozenset(dead_letter_topics(spec)), frozenset(retry_topics(spec)))
    sink = ExactlyOnceSink(spec.brokers, settings=spec.producer, on_commit=progress.on_commit)
    gate = GatedSink(SingleEvaluationSink(sink) if plan.has_nondeterministic_rules else sink, stopping)
    writer = output.writeStream.foreachBatch(gate).outputMode(spec.mode)
    running = _running(spec, writer, progress, gate)
    running.close = sink.close
    return running


def _start_table(
    spec: Spec, plan: PipelinePlan, name: str, sink: Sink, stopping: threading.Event
) -> RunningQuery:
    gate = GatedSink(TableSink(spec.located(sink.target), sink.columns, sink.deleted), stopping)
    writer = plan.stages[sink.stage].writeStream.foreachBatch(gate).outputMode("append")
    return _running(spec, writer, QueryProgress(name, frozenset()), gate)


def _start_sink(spec: Spec, plan: PipelinePlan, name: str, sink: Sink) -> RunningQuery:
    writer: Any = plan.stages[sink.stage].writeStream.format(sink.kind)
    table = None
    match sink.kind:
        case "console":
            writer = writer.option("truncate", "false").option("numRows", _CONSOLE_ROWS).outputMode(spec.mode)
        case "iceberg":
            writer, table = writer.outputMode("append"), sink.target
        case _:
            writer = writer.outputMode("append").option("path", spec.located(sink.target))
    if sink.columns:
        writer = writer.partitionBy(*map(str, sink.columns))
    return _running(spec, writer, QueryProgress(name, frozenset()), None, table)


def _running(
    spec: Spec, writer: Any, progress: QueryProgress, gate: GatedSink | None, table: str | None = None
) -> RunningQuery:
    """Starts a query. `table` is a table of a catalog, which is created if it does not exist."""
    name = progress.query
    writer = writer.queryName(f"{spec.name}-{name}")
    writer = writer.option("checkpointLocation", f"{spec.located(spec.checkpoint)}/queries/{name}")
    if spec.trigger.every is not None:
        writer = writer.trigger(processingTime=spec.trigger.every)
    elif spec.trigger.is_once:
        writer = writer.trigger(once=True)
    else:
        writer = writer.trigger(availableNow=True)
    start: Callable[[], StreamingQuery] = writer.start if table is None else lambda: writer.toTable(table)
    return RunningQuery(name=name, query=start(), start=start, progress=progress, gate=gate)
