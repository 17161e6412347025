"""Explains a spec: its stages with their columns, its topics, and which of its sinks are exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from strandline.pipeline.plan.plan import PipelinePlan
from strandline.pipeline.runtime.queries import query_names
from strandline.pipeline.spec.dead_letter_topics import dead_letter_topics, retry_topics
from strandline.pipeline.spec.spec import TABLE_SINK, TOPIC_SINK, Finish, Sink, Source, Spec, Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def explain(spec: Spec, plan: PipelinePlan | None = None) -> dict[str, Any]:
    """Returns the explanation as values that JSON has; with a plan also the columns of every stage as Spark sees
    them."""
    stages = plan.stages if plan is not None else {}
    return {
        "pipeline": spec.name,
        "brokers": spec.brokers,
        "trigger": _trigger(spec),
        "checkpoint": spec.checkpoint,
        "commit_group": spec.commit_group,
        "spark": spec.master,
        "stages": [
            *(_stage(each.name, _source(each), each.finish, stages) for each in spec.sources),
            *(_stage(each.name, _transform(each), each.finish, stages) for each in spec.transforms),
        ],
        "queries": [
            {"name": name, **(_topics(spec) if sink is None else _other(sink))}
            for name, sink in query_names(spec).items()
        ],
    }


def in_words(explained: dict[str, Any]) -> str:
    """Returns the explanation as text."""
    lines = [
        f"pipeline {explained['pipeline']}",
        f"  brokers       {explained['brokers']}",
        f"  trigger       {explained['trigger']}",
        f"  checkpoint    {explained['checkpoint']}",
        f"  commit group  {explained['commit_group'] or 'none: lag tools do not see this pipeline'}",
        f"  spark         {explained['spark']}",
        "",
        "stages",
    ]
    for stage in explained["stages"]:
        lines.append(f"  {stage['name']}: {stage['what']}")
        lines += [f"      {each}" for each in stage["details"]]
        lines += [f"      {name} {kind}" for name, kind in stage["columns"].items()]
    for query in explained["queries"]:
        mode = f" ({query['mode']} mode)" if "mode" in query else ""
        lines += ["", f"query {query['name']}{mode}: {query['promise']}"]
        lines += [f"  {each['from']} -> {each['to']}" for each in query["writes"]]
    return "\n".join(lines)


def _trigger(spec: Spec) -> str:
    if spec.trigger.every is not None:
        return f"every {spec.trigger.every}, until it is stopped"
    return "once, in one batch" if spec.trigger.is_once else "everything that is there now, in batches"


def _stage(name: str, what: str, finish: Finish, stages: Mapping[str, DataFrame]) -> dict[str, Any]:
    return {
        "name": name,
        "what": what,
        "details": _finish(finish),
        "columns": _columns(stages.get(name)),
    }


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
        f"rule {rule.name}: {' '.join(rule.check.split())}{', tried again' if rule.is_retried else ''}"
        for rule in finish.rules
    ]
    if finish.watermark is not None:
        lines.append(f"watermark on {finish.watermark[0]}, delay {finish.watermark[1]}")
    if finish.dedupe:
        lines.append(f"one row per {', '.join(finish.dedupe)} within the watermark")
    return lines


def _columns(rows: DataFrame | None) -> dict[str, str]:
    fields = [] if rows is None else rows.schema.fields
    return {field.name: field.dataType.simpleString() for field in fields if not field.name.startswith("_")}


def _topics(spec: Spec) -> dict[str, Any]:
    writes = [_write(sink) for sink in spec.sinks if sink.kind == TOPIC_SINK]
    writes += [{"from": "to try again", "to": f"topic {topic}"} for topic in retry_topics(spec)]
    writes += [{"from": "dead letters", "to": f"topic {topic}"} for topic in dead_letter_topics(spec)]
    promise = "exactly once, one transaction per batch for all of these"
    return {"mode": spec.mode, "promise": promise, "writes": writes}


def _write(sink: Sink) -> dict[str, str]:
    key = f", key {' '.join(sink.key.split())}" if sink.key is not None else ""
    return {"from": sink.stage, "to": f"{sink.kind} {sink.target}{key}"}


def _other(sink: Sink) -> dict[str, Any]:
    promise = {
        TABLE_SINK: "exactly once, one version of the table per batch",
        "parquet": "exactly once by Spark's file sink, in batches of its own",
        "console": "shown again after a restart",
    }.get(sink.kind, "what the format's own sink promises, in batches of its own")
    return {"promise": promise, "writes": [_write(sink)]}
