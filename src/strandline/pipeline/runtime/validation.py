"""Looks for mistakes in a spec, cheapest checks first: the file, then functions and brokers, and Spark only for SQL.

Reading the file (`load`) finds keys, types, schemas and references between stages. Spark's own parser and analyser
judge SQL, expressions, columns, patterns of times, and whether the output mode fits: they need the JVM, but run no job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from strandline.pipeline.plan.plan import PipelinePlan, load_function
from strandline.pipeline.plan.table_sink import why_no_table
from strandline.pipeline.plan.tables import POSITION_COLUMNS
from strandline.pipeline.runtime.places import check_places
from strandline.pipeline.runtime.queries import check_package
from strandline.pipeline.runtime.session import session_of
from strandline.pipeline.runtime.topics import check_topics, expiring_records
from strandline.pipeline.spec.spec import TABLE_SINK, TOPIC_SINK, Sink, Spec
from strandline.pipeline.spec.yaml_lines import Mistake, SpecError, nearest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def validate(
    spec: Spec, *, with_brokers: bool = True, with_spark: bool = True, spark: SparkSession | None = None
) -> list[Mistake]:
    """Raises SpecError, or returns warnings. Without `spark` a session is started after all checks before it have
    passed, and is stopped at the end."""
    for transform in spec.transforms:
        if transform.function is not None:
            load_function(spec, transform.function)
    for sink in spec.sinks:
        refusal = why_no_table(spec.located(sink.target)) if sink.kind == TABLE_SINK else None
        if refusal is not None:
            raise _mistake(spec, sink, refusal)
    check_places(spec)
    if with_brokers:
        check_topics(spec)
    warnings = expiring_records(spec) if with_brokers else []
    if not with_spark:
        return warnings
    session = spark or session_of(spec)
    try:
        analyse(session, spec)
    finally:
        if spark is None:
            session.stop()
    return warnings


def analyse(spark: SparkSession, spec: Spec) -> PipelinePlan:
    """Returns the plan after Spark has accepted all of it. Raises SpecError with the mistakes of all stages and sinks
    together, because a start of Spark takes seconds."""
    mistakes: list[Mistake] = []
    plan = PipelinePlan(spark, spec, mistakes=mistakes)
    for sink in spec.sinks:
        try:
            check_package(spark, spec, sink)
            if sink.stage in plan.stages:
                _check_sink(plan, spec, sink)
        except SpecError as error:
            mistakes += error.mistakes
    if mistakes:
        raise SpecError(sorted(mistakes, key=lambda each: each.line))
    plan.output()
    return plan


def _check_sink(plan: PipelinePlan, spec: Spec, sink: Sink) -> None:
    """Raises SpecError if a sink has a mistake."""
    rows = plan.stages[sink.stage]
    if not rows.isStreaming:
        raise _mistake(
            spec, sink, f"stage {sink.stage} reads only tables: a pipeline needs a source that is a stream"
        )
    twice = _twice(rows.columns) if sink.value is None and sink.kind != "console" else None
    if twice is not None:
        text = f"stage {sink.stage} has the column {twice!r} twice, because Spark ignores case: rename one of them"
        raise _mistake(spec, sink, text)
    for name in (*sink.columns, *(POSITION_COLUMNS if sink.kind == TABLE_SINK else ())):
        if name not in rows.columns:
            text = f"stage {sink.stage} has no column {name!r}{nearest(name, rows.columns)}"
            raise _mistake(spec, sink, text)
    if sink.deleted is not None:
        plan.check_condition(rows, sink.deleted, f"sink {sink.target}: delete-when")
    is_append = sink.kind not in (TOPIC_SINK, "console")
    _check_mode(plan.records(sink) if sink.kind == TOPIC_SINK else rows, spec, sink, is_append)


def _twice(names: Sequence[str]) -> str | None:
    """Returns a column name that is there twice, ignoring case. The pipeline's own columns may be there twice, as after
    a join, because they are not written."""
    own = [name.lower() for name in names if not name.startswith("_")]
    return next((name for name in own if own.count(name) > 1), None)


def _check_mode(rows: DataFrame, spec: Spec, sink: Sink, is_append: bool) -> None:
    """Raises SpecError where Spark would refuse the query at its start, such as sums without a watermark in append
    mode."""
    jvm: Any = rows.sparkSession.sparkContext._jvm
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    mode = modes.Append() if is_append or spec.mode == "append" else modes.Update()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        checker.checkForStreaming(rows._jdf.queryExecution().analyzed(), mode)
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise _mistake(spec, sink, f"stage {sink.stage} cannot be written like this: {reason}") from error


def _mistake(spec: Spec, sink: Sink, text: str) -> SpecError:
    return SpecError([Mistake(file=spec.file, line=sink.line, text=text)])
