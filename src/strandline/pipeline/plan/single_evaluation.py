"""A rule judges a record once: it is in the output or among the dead letters, never in both or in neither.

Output and dead letters are two filters over one plan, which Spark computes for each of them. That is the same twice
unless the answer can change: behind a table, a Python function, chance or the clock. Rules:
1. In the query that writes into topics such a verdict lies behind a shuffle that both filters read, and which Spark
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

# What the columns of a shuffle begin with that serves output and dead letters.
_JUDGED: Final = "judged."
APART: Final = (
    "the answer of the rules of {stage} can change, and Spark computes it for the output and again for dead letters, "
    "because of rows before them that are drawn by chance (rand, uuid) or picked (dropDuplicates): do that behind the "
    "rules, or in a pipeline of its own"
)


class JudgedTwiceError(RuntimeError):
    """Verdicts of a batch could differ between output and dead letters."""


def is_computed_alike(rows: DataFrame) -> bool:
    """Whether a verdict that is computed twice in a batch is known to be the same."""
    plan = _optimised(rows.select(FAILURE))  # without columns that it does not look at
    return bool(plan.deterministic()) and not _has(rows, plan, "PYTHON_UDF")


def judged_once(rows: DataFrame, stage: str) -> DataFrame:
    """The same rows, computed once for all who filter them. Those of a partition stay together, in the order in which a
    task has read them."""
    from pyspark.sql import functions as f

    names = rows.columns  # of which two may be the same
    numbered = rows.toDF(*(f"{_JUDGED}{stage}.{number}" for number in range(len(names))))
    columns = [f.col(f"`{name}`") for name in numbered.columns]
    topic, partition, headers = (columns[names.index(name)] for name in ("_topic", "_partition", "_headers"))
    # A row of a file has no partition; its headers name the file.
    shuffled = numbered.repartition(topic, f.coalesce(partition, f.hash(headers)))
    return shuffled.select(f.inline(f.array(f.struct(*columns)))).toDF(*names)


def judged_apart(output: DataFrame) -> str | None:
    """A stage whose shuffle Spark would not take for one and the same wherever it is read; None if there is none. That
    is so where its optimiser makes something of its own below it for each, and with chance, which a query draws anew
    for every place in its plan."""
    first: dict[str, Any] = {}
    for stage, plan in _shuffles(_optimised(output)):
        is_drawn = _has(output, plan, "EXPRESSION_WITH_RANDOM_SEED")
        if is_drawn or not first.setdefault(stage, plan).sameResult(plan):
            return stage
    return None


class JudgingSink:
    """Lets no batch through whose verdicts Spark computes apart: only the plan that it runs shows that for certain."""

    def __init__(self, sink: Callable[[DataFrame, int], None]) -> None:
        self._sink = sink

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        stage = computed_apart(df)
        if stage is not None:
            raise JudgedTwiceError(f"batch {batch_id} is not written: {APART.format(stage=stage)}")
        self._sink(df, batch_id)


def computed_apart(df: DataFrame) -> str | None:
    """For foreachBatch: a stage whose shuffle the batch has more than once; None if there is none."""
    jvm: Any = df.sparkSession._jvm
    shared: Any = df.sparkSession._jsparkSession.sharedState()
    running = shared.activeStreamingQueries().get(jvm.java.util.UUID.fromString(query_id_of(df)))
    counts = Counter(_exchanges(running.lastExecution().executedPlan()))
    return next((stage for stage, count in sorted(counts.items()) if count > 1), None)


def _exchanges(plan: Any) -> Iterator[str]:
    """The stages of the shuffles of `judged_once` that are computed; those that are read again have no part in it."""
    name = plan.nodeName()
    if name == "Exchange":
        column = plan.output().head().name()
        if column.startswith(_JUDGED):
            yield column.removeprefix(_JUDGED).rpartition(".")[0]
    inside = plan.executedPlan() if name == "AdaptiveSparkPlan" else None
    inside = plan.plan() if name.endswith("QueryStage") else inside
    if inside is not None:
        yield from _exchanges(inside)
        return
    children = plan.children()
    for at in range(children.size()):
        yield from _exchanges(children.apply(at))


def _shuffles(plan: Any) -> Iterator[tuple[str, Any]]:
    """Those of `judged_once` in a plan, with their stages."""
    if plan.nodeName() == "RepartitionByExpression":
        name = plan.output().head().name()
        if name.startswith(_JUDGED):
            yield name.removeprefix(_JUDGED).rpartition(".")[0], plan
    children = plan.children()
    for at in range(children.size()):
        yield from _shuffles(children.apply(at))


def why_it_changes(rows: DataFrame, finish: Finish) -> str | None:
    """Why the rules may judge otherwise in another query; None if they do not."""
    if any(rule.is_retried for rule in finish.rules):
        return "it is tried again because its answer changes with time"
    if not is_computed_alike(rows):
        return "its answer depends on a table, a Python function or chance"
    is_timed = _has(rows, rows._jdf.queryExecution().analyzed(), "CURRENT_LIKE")
    return "its answer depends on the clock" if is_timed else None


def verdict_mistakes(spec: Spec, reads: Reads, changing: Mapping[str, str]) -> list[Mistake]:
    """`changing` says by stage why its rules may judge otherwise when they are asked again."""
    judged: dict[str, str] = {}  # by stage, the one before it, or itself, that has such rules
    for stage in [*(each.name for each in spec.sources), *(each.name for each in spec.transforms)]:
        before = [judged[each] for each in sorted(reads.get(stage, ())) if each in judged]
        if stage in changing or before:
            judged[stage] = stage if stage in changing else before[0]
    found = []
    for sink in spec.sinks:
        if sink.kind in (TOPIC_SINK, "console") or sink.stage not in judged:
            continue
        stage = judged[sink.stage]
        text = (
            f"{sink.kind} {sink.target} lies behind a rule of {stage}, and {changing[stage]}: this sink would ask at "
            "another time than the query that writes dead letters, and a record could be in both or in neither. Let "
            f"{sink.stage} go into a topic, and a pipeline of its own take it from there to {sink.kind}"
        )
        found.append(Mistake(file=spec.file, line=sink.line, text=text))
    return found


def _optimised(rows: DataFrame) -> Any:
    """As Spark would run it. A QueryExecution refuses to say so of a stream that was not started."""
    optimizer = rows.sparkSession._jsparkSession.sessionState().optimizer()
    return optimizer.execute(rows._jdf.queryExecution().analyzed())


def _has(rows: DataFrame, plan: Any, pattern: str) -> bool:
    """Whether an expression of this kind is anywhere in the plan; Spark notes the kinds in every node of it."""
    jvm: Any = rows.sparkSession.sparkContext._jvm
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    return bool(plan.containsPattern(getattr(patterns, pattern)()))
