"""Has a rule judge a record once: the record is in the output or among the dead letters, never in both or in neither.

Output and dead letters are two filters over one plan, which Spark computes for each of them. Both have the same result
unless it can change: after a table, a Python function, chance or the clock. Rules:
1. In the query that writes into topics such a result lies after a shuffle that both filters read, and which Spark
   therefore computes once for all who take from the stage. Nothing may differ below it: filters and the columns that
   one side can do without stop at a generator, of whose columns none can be left out. Where Spark would not share it
   nevertheless, the spec is refused, or at the latest the batch before anything of it is written.
2. Any other sink is a query of its own, which would judge at another time than the one that writes dead letters: it is
   refused. The console promises nothing, and shows what it sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from strandline.pipeline.plan.dead_letters import FAILURE
from strandline.pipeline.plan.retry_paths import Reads
from strandline.pipeline.spec.spec import TOPIC_SINK, Finish, Spec
from strandline.pipeline.spec.yaml_lines import Mistake
from strandline.spark.sink.batch_decision import query_id_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The prefix of the columns of a shuffle that serves output and dead letters.
_SHUFFLE_PREFIX: Final = "judged."
EVALUATED_TWICE: Final = (
    "the answer of the rules of {stage} can change, and Spark computes it for the output and again for dead letters, "
    "because of rows before them that are drawn by chance (rand, uuid) or picked (dropDuplicates): do that behind the "
    "rules, or in a pipeline of its own"
)


class EvaluatedTwiceError(RuntimeError):
    """The rules of a batch could judge differently for output and dead letters."""


def is_deterministic(rows: DataFrame) -> bool:
    """True if rules that are computed twice in a batch are known to have the same result."""
    plan = _optimised(rows.select(FAILURE))  # without columns that it does not look at
    return bool(plan.deterministic()) and not _has(rows, plan, "PYTHON_UDF")


def evaluated_once(rows: DataFrame, stage: str) -> DataFrame:
    """Returns the same rows, computed once for all who filter them. Those of a partition stay together, in the order in
    which a task has read them."""
    from pyspark.sql import functions as f

    names = rows.columns  # of which two may be the same
    numbered = rows.toDF(*(f"{_SHUFFLE_PREFIX}{stage}.{number}" for number in range(len(names))))
    columns = [f.col(f"`{name}`") for name in numbered.columns]
    topic, partition, headers = (columns[names.index(name)] for name in ("_topic", "_partition", "_headers"))
    # A row of a file has no partition; its headers name the file.
    shuffled = numbered.repartition(topic, f.coalesce(partition, f.hash(headers)))
    return shuffled.select(f.inline(f.array(f.struct(*columns)))).toDF(*names)


def stage_planned_twice(output: DataFrame) -> str | None:
    """Returns a stage whose shuffle Spark would not take for one and the same wherever it is read; None if there is
    none. That happens where its optimiser builds something of its own below it for each, and with chance, which a query
    draws again for every place in its plan."""
    first: dict[str, Any] = {}
    for stage, plan in _shuffles(_optimised(output)):
        is_drawn = _has(output, plan, "EXPRESSION_WITH_RANDOM_SEED")
        if is_drawn or not first.setdefault(stage, plan).sameResult(plan):
            return stage
    return None


class SingleEvaluationSink:
    """Refuses a batch whose rules Spark computes twice: only the plan that Spark runs shows that for certain."""

    def __init__(self, sink: Callable[[DataFrame, int], None]) -> None:
        self._sink = sink

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        stage = stage_computed_twice(df)
        if stage is not None:
            raise EvaluatedTwiceError(
                f"batch {batch_id} is not written: {EVALUATED_TWICE.format(stage=stage)}"
            )
        self._sink(df, batch_id)


def stage_computed_twice(df: DataFrame) -> str | None:
    """Returns, in foreachBatch, a stage whose shuffle the batch has more than once; None if there is none."""
    jvm: Any = df.sparkSession._jvm
    state: Any = df.sparkSession._jsparkSession.sharedState()
    query = state.activeStreamingQueries().get(jvm.java.util.UUID.fromString(query_id_of(df)))
    counts = Counter(_exchanges(query.lastExecution().executedPlan()))
    return next((stage for stage, count in sorted(counts.items()) if count > 1), None)


def _exchanges(plan: Any) -> Iterator[str]:
    """Yields the stages of the shuffles of `evaluated_once` that are computed; shuffles that are only read again are
    not among them."""
    name = plan.nodeName()
    if name == "Exchange":
        column = plan.output().head().name()
        if column.startswith(_SHUFFLE_PREFIX):
            yield column.removeprefix(_SHUFFLE_PREFIX).rpartition(".")[0]
    inside = plan.executedPlan() if name == "AdaptiveSparkPlan" else None
    inside = plan.plan() if name.endswith("QueryStage") else inside
    if inside is not None:
        yield from _exchanges(inside)
        return
    children = plan.children()
    for at in range(children.size()):
        yield from _exchanges(children.apply(at))


def _shuffles(plan: Any) -> Iterator[tuple[str, Any]]:
    """Yields the shuffles of `evaluated_once` in a plan, with their stages."""
    if plan.nodeName() == "RepartitionByExpression":
        name = plan.output().head().name()
        if name.startswith(_SHUFFLE_PREFIX):
            yield name.removeprefix(_SHUFFLE_PREFIX).rpartition(".")[0], plan
    children = plan.children()
    for at in range(children.size()):
        yield from _shuffles(children.apply(at))


def why_result_varies(rows: DataFrame, finish: Finish) -> str | None:
    """Returns why the rules may judge otherwise in another query; None if they do not."""
    if any(rule.is_retried for rule in finish.rules):
        return "it is tried again because its answer changes with time"
    if not is_deterministic(rows):
        return "its answer depends on a table, a Python function or chance"
    is_timed = _has(rows, rows._jdf.queryExecution().analyzed(), "CURRENT_LIKE")
    return "its answer depends on the clock" if is_timed else None


def varying_rule_mistakes(spec: Spec, reads: Reads, varying: Mapping[str, str]) -> list[Mistake]:
    """Returns the mistakes of sinks that would judge at another time. `varying` says by stage why its rules may judge
    otherwise in another query."""
    varying_stage: dict[str, str] = {}  # by stage, the one before it, or itself, that has such rules
    for stage in [*(each.name for each in spec.sources), *(each.name for each in spec.transforms)]:
        before = [varying_stage[each] for each in sorted(reads.get(stage, ())) if each in varying_stage]
        if stage in varying or before:
            varying_stage[stage] = stage if stage in varying else before[0]
    mistakes = []
    for sink in spec.sinks:
        if sink.kind in (TOPIC_SINK, "console") or sink.stage not in varying_stage:
            continue
        stage = varying_stage[sink.stage]
        text = (
            f"{sink.kind} {sink.target} lies behind a rule of {stage}, and {varying[stage]}: this sink would ask at "
            "another time than the query that writes dead letters, and a record could be in both or in neither. Let "
            f"{sink.stage} go into a topic, and a pipeline of its own take it from there to {sink.kind}"
        )
        mistakes.append(Mistake(file=spec.file, line=sink.line, text=text))
    return mistakes


def _optimised(rows: DataFrame) -> Any:
    """Returns the plan that Spark would run. A QueryExecution refuses to show it for a stream that was not started."""
    optimizer = rows.sparkSession._jsparkSession.sessionState().optimizer()
    return optimizer.execute(rows._jdf.queryExecution().analyzed())


def _has(rows: DataFrame, plan: Any, pattern: str) -> bool:
    """True if an expression of this kind is anywhere in the plan; Spark notes the kinds in every node of it."""
    jvm: Any = rows.sparkSession.sparkContext._jvm
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    return bool(plan.containsPattern(getattr(patterns, pattern)()))
