"""Checks that records can be tried again after a transform: they come back through their source, so every stage between
the source and the refusing rule gets them a second time.

1. A dedupe on the path would drop them as duplicates, and they would be lost.
2. Another stage or sink that takes rows from the path already has them, and would get them twice.
3. A topic that two sources read would bring them back to both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from strandline.pipeline.spec.spec import Rule, Spec, Transform
from strandline.pipeline.spec.yaml_lines import Mistake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Reads = Mapping[str, frozenset[str]]  # by transform, the names of the stages that it reads


def stages_read(rows: DataFrame) -> frozenset[str]:
    """Returns the stages that a text of SQL names, as Spark has understood it: each is a view."""
    return frozenset(_views(rows._jdf.queryExecution().analyzed()))


def _views(node: Any) -> Iterator[str]:
    if node.nodeName() == "View":
        yield node.desc().identifier().table()
        return  # the plan below this node belongs to that stage
    children = node.children()  # Spark allows no stream in a subquery of an expression
    for at in range(children.size()):
        yield from _views(children.apply(at))


def retry_mistakes(spec: Spec, reads: Reads) -> list[Mistake]:
    """Returns the mistakes of rules that cannot be tried again."""
    mistakes = list(_shared_topics(spec))
    for transform in spec.transforms:
        for rule in transform.finish.rules:
            if rule.is_retried:
                mistakes += _path_mistakes(spec, reads, transform, rule)
    return mistakes


def _shared_topics(spec: Spec) -> Iterator[Mistake]:
    first: dict[str, str] = {}
    for source in spec.sources:
        for topic in source.topics if spec.is_retried(source) else ():
            other = first.setdefault(topic, source.name)
            if other != source.name:
                text = (
                    f"sources.{source.name}: topic {topic} is read by sources.{other} too, and a record that is "
                    "tried again would come back to both: let only one source read it, and let transforms take from "
                    "that source"
                )
                yield Mistake(file=spec.file, line=source.line, text=text)


def _path_mistakes(spec: Spec, reads: Reads, transform: Transform, rule: Rule) -> Iterator[Mistake]:
    def mistake(why: str) -> Mistake:
        text = f"transforms.{transform.name}: rule {rule.name} cannot be tried again: {why}"
        return Mistake(file=spec.file, line=rule.check.line, text=text)

    path = _path(spec, reads, transform)
    deduped = {each.name for each in spec.sources if each.finish.dedupe}
    deduped |= {each.name for each in spec.transforms if each.finish.dedupe}
    for stage in path:
        if stage in deduped:
            yield mistake(
                f"{stage} drops duplicates before this rule, and would drop the record when it comes again. Move "
                f"watermark and dedupe from {stage} to {transform.name} or to a later stage"
            )
    others = [
        (stage, f"transform {each.name}")
        for each in spec.transforms
        if each.name != transform.name and each.name not in path
        for stage in path
        if stage in reads[each.name]
    ]
    others += [(sink.stage, f"{sink.kind} {sink.target}") for sink in spec.sinks if sink.stage in path]
    for stage, other in others:
        yield mistake(
            f"the record goes through {stage} once more, and {other}, which takes from {stage} too, would have it "
            f"twice. Let it take from {transform.name}, or move it to a pipeline of its own"
        )


def _path(spec: Spec, reads: Reads, transform: Transform) -> list[str]:
    """Returns the stages through which records come to a transform that can be tried again, in the order of the
    spec."""
    upstream = set(reads[transform.name])
    for each in reversed(spec.transforms):
        if each.name in upstream:
            upstream |= reads[each.name]
    carrying = [source.name for source in spec.sources if spec.is_retried(source)]
    for each in spec.transforms:
        if reads[each.name] & set(carrying):
            carrying.append(each.name)
    return [stage for stage in carrying if stage in upstream]
