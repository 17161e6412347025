"""Has each rule evaluated once for a record: the record is in the output or among the dead letters, never in both or in
neither. Output and dead letters are two filters over one plan, and Spark computes the plan for each of them. Both see
the same result of a rule, unless that result can vary: after a table, a Python function, a random value or the clock.
Rules:
1. In the query that writes into topics, such a result is put before a shuffle that both filters read, so that Spark
   computes it once for all readers of the stage. The plans below the shuffle must be equal. Therefore a generator
   stands in between: Spark can neither move filters nor drop columns below it. If Spark would not share the shuffle all
   the same, the spec is refused, or at the latest the batch, before anything of it is written.
2. Any other sink is a query of its own, which would evaluate the rule at another time than the query that writes dead
   letters: such a sink is refused. The console is allowed, because it promises nothing.
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
    "the result of the rules of {stage} can vary, and Spark computes it once for the output and once more for dead "
    "letters, because rows before the rules are random (rand, uuid) or picked (dropDuplicates): do that after the "
    "rules, or in a pipeline of its own"
)


class EvaluatedTwiceError(RuntimeError):
    """The rules of a batch could have different results for the output and for dead letters."""


def is_deterministic(rows: DataFrame) -> bool:
    """True if rules that are computed twice in a batch are known to have the same result."""
    plan = _optimised(rows.select(FAILURE))  # without the columns that the rules do not use
    return bool(plan.deterministic()) and not _has(rows, plan, "PYTHON_UDF")


def evaluated_once(rows: DataFrame, stage: str) -> DataFrame:
    """Returns the same rows, computed once for all filters over them. The rows of a partition stay together, in the
    order in which a task has read them."""
    from pyspark.sql import functions as f

    names = rows.columns  # two names may be the same
    numbered = rows.toDF(*(f"{_SHUFFLE_PREFIX}{stage}.{number}" for number in range(len(names))))
    columns = [f.col(f"`{name}`") for name in numbered.columns]
    topic, partition, headers = (columns[names.index(name)] for name in ("_topic", "_partition", "_headers"))
    # A row of a file has no partition; its headers name the file.
    shuffled = numbered.repartition(topic, f.coalesce(partition, f.hash(headers)))
    return shuffled.select(f.inline(f.array(f.struct(*columns)))).toDF(*names)


def stage_planned_twice(output: DataFrame) -> str | None:
    """Returns a stage whose shuffle Spark would compute more than once; None if there is none. That happens if the
    optimiser changes the plan below the shuffle for one of its readers, and with random values, which a query draws
    again for every place in its plan."""
    first: dict[str, Any] = {}
    for stage, plan in _shuffles(_optimised(output)):
        is_drawn = _has(output, plan, "EXPRESSION_WITH_RANDOM_SEED")
        if is_drawn or not first.setdefault(stage, plan).sameResult(plan):
            return stage
    return None


class SingleEvaluationSink:
    """Refuses a batch whose rules Spark computes twice. Only the plan that Spark really runs shows that for certain."""

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
    """Yields the stages of the computed shuffles of `evaluated_once`, without shuffles that are only read again."""
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
    """Returns the reason why the rules may have another result in another query; None if they may not."""
    if any(rule.is_retried for rule in finish.rules):
        return "it is tried again because its result changes with time"
    if not is_deterministic(rows):
        return "its result depends on a table, a Python function or a random value"
    is_timed = _has(rows, rows._jdf.queryExecution().analyzed(), "CURRENT_LIKE")
    return "its result depends on the clock" if is_timed else None


def varying_rule_mistakes(spec: Spec, reads: Reads, varying: Mapping[str, str]) -> list[Mistake]:
    """Returns the mistakes of sinks that would evaluate a rule at another time. `varying` has, by stage, the reason why
    its rules may have another result in another query."""
    varying_stage: dict[str, str] = {}  # by stage, the stage that has such rules: itself, or one before it
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
            f"{sink.kind} {sink.target} comes after a rule of {stage}, and {varying[stage]}: this sink would "
            "evaluate it at another time than the query that writes dead letters, and a record could be in both or "
            f"in neither. Write {sink.stage} into a topic, and have a pipeline of its own take it from there to "
            f"{sink.kind}"
        )
        mistakes.append(Mistake(file=spec.file, line=sink.line, text=text))
    return mistakes


def _optimised(rows: DataFrame) -> Any:
    """Returns the plan that Spark would run. A QueryExecution refuses to show it for a stream that was not started."""
    optimizer = rows.sparkSession._jsparkSession.sessionState().optimizer()
    return optimizer.execute(rows._jdf.queryExecution().analyzed())


def _has(rows: DataFrame, plan: Any, pattern: str) -> bool:
    """True if an expression of this kind is anywhere in the plan. Spark records the kinds in every node of a plan."""
    jvm: Any = rows.sparkSession.sparkContext._jvm
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    return bool(plan.containsPattern(getattr(patterns, pattern)()))
