"""A rule judges a record once: it is in the output or among the dead letters, never in both or in neither.

Output and dead letters are two filters over one plan, which Spark computes for each of them. That is the same twice
unless the answer can change: behind a table, a Python function, chance or the clock. Rules:
1. In the query that writes into topics such a verdict lies behind a shuffle that both filters read, and which Spark
   therefore computes once for all who take from the stage. Nothing may differ below it: filters and the columns that
   one side can do without stop at a generator, of whose columns none can be left out.
2. Any other sink is a query of its own, which would judge at another time than the one that writes dead letters: it is
   refused. The console promises nothing, and shows what it sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from strandline.pipeline.document import Mistake
from strandline.pipeline.retry_paths import Reads
from strandline.pipeline.spec import TOPIC_SINK, Finish, Spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def is_computed_alike(rows: DataFrame) -> bool:
    """Whether rows that are computed twice in a batch are known to be the same."""
    plan = _analysed(rows)
    return bool(plan.deterministic()) and not _has(rows, plan, "PYTHON_UDF")


def judged_once(rows: DataFrame) -> DataFrame:
    """The same rows, computed once for all who filter them. Those of a partition stay together, in the order in which a
    task has read them."""
    from pyspark.sql import functions as f

    names = rows.columns  # of which two may be the same
    numbered = rows.toDF(*(f"c{number}" for number in range(len(names))))
    topic, partition, headers = (
        f.col(f"c{names.index(name)}") for name in ("_topic", "_partition", "_headers")
    )
    # A row of a file has no partition; its headers name the file.
    shuffled = numbered.repartition(topic, f.coalesce(partition, f.hash(headers)))
    return shuffled.select(f.inline(f.array(f.struct(*shuffled.columns)))).toDF(*names)


def why_it_changes(rows: DataFrame, finish: Finish) -> str | None:
    """Why the rules may judge otherwise in another query; None if they do not."""
    if any(rule.is_retried for rule in finish.rules):
        return "it is tried again because its answer changes with time"
    if not is_computed_alike(rows):
        return "its answer depends on a table, a Python function or chance"
    return "its answer depends on the clock" if _has(rows, _analysed(rows), "CURRENT_LIKE") else None


def verdict_mistakes(spec: Spec, reads: Reads, changing: Mapping[str, str]) -> list[Mistake]:
    """`changing` says by stage why its rules may judge otherwise when they are asked again."""
    judged: dict[str, str] = {}  # by stage, the one with rules before which its rows come
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


def _analysed(rows: DataFrame) -> Any:
    return rows._jdf.queryExecution().analyzed()


def _has(rows: DataFrame, plan: Any, pattern: str) -> bool:
    """Whether an expression of this kind is anywhere in the plan; Spark notes the kinds in every node of it."""
    jvm: Any = rows.sparkSession.sparkContext._jvm
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    return bool(plan.containsPattern(getattr(patterns, pattern)()))
