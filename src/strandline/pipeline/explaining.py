"""A spec in words: its stages with their columns, its topics, and what is exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.pipeline.plan import Plan
from strandline.pipeline.queries import TOPICS, query_names
from strandline.pipeline.spec import TABLE_SINK, TOPIC_SINK, Finish, Sink, Source, Spec, Transform
from strandline.pipeline.topics import dead_letter_topics, retry_topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def explain(spec: Spec, plan: Plan | None = None) -> str:
    """With a plan also the columns of every stage as Spark sees them."""
    stages = plan.stages if plan is not None else {}
    lines = [
        f"pipeline {spec.name}",
        f"  brokers       {spec.brokers}",
        f"  trigger       {_trigger(spec)}",
        f"  checkpoint    {spec.checkpoint}",
        f"  commit group  {spec.commit_group or 'none: lag tools do not see this pipeline'}",
        f"  spark         {spec.master}",
        "",
        "stages",
    ]
    for source in spec.sources:
        lines += [
            f"  {source.name}: {_source(source)}",
            *_finish(source.finish),
            *_columns(stages.get(source.name)),
        ]
    for transform in spec.transforms:
        lines += [f"  {transform.name}: {_transform(transform)}", *_finish(transform.finish)]
        lines += _columns(stages.get(transform.name))
    for name, sink in query_names(spec).items():
        lines += ["", *(_topics(spec) if sink is None else _other(spec, name, sink))]
    return "\n".join(lines)


def _trigger(spec: Spec) -> str:
    if spec.trigger.every is not None:
        return f"every {spec.trigger.every}, until it is stopped"
    return "once, in one batch" if spec.trigger.is_once else "everything that is there now, in batches"


def _source(source: Source) -> str:
    if source.files is not None:
        what = "rows" if source.decode.format in ("csv", "parquet") else "lines"
        return f"{what} of {source.files} as {source.decode.format}"
    what = "table of the last record per key of" if source.is_table else "stream of"
    kind = "topics" if len(source.topics) > 1 else "topic"
    return f"{what} {kind} {', '.join(source.topics)} as {source.decode.format}"


def _transform(transform: Transform) -> str:
    if transform.sql is not None:
        return "SQL"
    return f"Python function {transform.function} of {', '.join(transform.inputs)}"


def _finish(finish: Finish) -> list[str]:
    lines = [
        f"      rule {rule.name}: {' '.join(rule.check.split())}{', tried again' if rule.is_retried else ''}"
        for rule in finish.rules
    ]
    if finish.watermark is not None:
        lines.append(f"      watermark {finish.watermark[1]} behind {finish.watermark[0]}")
    if finish.dedupe:
        lines.append(f"      one row per {', '.join(finish.dedupe)} within the watermark")
    return lines


def _columns(rows: DataFrame | None) -> list[str]:
    if rows is None:
        return []
    own = [field for field in rows.schema.fields if not field.name.startswith("_")]
    return [f"      {field.name} {field.dataType.simpleString()}" for field in own]


def _topics(spec: Spec) -> list[str]:
    lines = [f"query {TOPICS} ({spec.mode} mode): exactly once, one transaction per batch for all of these"]
    for sink in spec.sinks:
        if sink.kind == TOPIC_SINK:
            key = f", key {' '.join(sink.key.split())}" if sink.key is not None else ""
            lines.append(f"  {sink.stage} -> topic {sink.target}{key}")
    lines += [f"  to try again -> topic {topic}" for topic in retry_topics(spec)]
    lines += [f"  dead letters -> topic {topic}" for topic in dead_letter_topics(spec)]
    return lines


def _other(spec: Spec, name: str, sink: Sink) -> list[str]:
    promise = {
        TABLE_SINK: "exactly once, one version of the table per batch",
        "parquet": "exactly once by Spark's file sink, in batches of its own",
        "console": "shown again after a restart",
    }.get(sink.kind, "what the format's own sink promises, in batches of its own")
    return [f"query {name}: {promise}", f"  {sink.stage} -> {sink.kind} {sink.target}"]
