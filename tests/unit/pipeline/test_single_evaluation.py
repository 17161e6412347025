"""Only topics are written after a rule that may decide otherwise when it is evaluated again."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.pipeline.plan.single_evaluation import varying_rule_mistakes
from strandline.pipeline.spec.reader import load

SPEC = """\
pipeline: judged
brokers: localhost:9092
checkpoint: checkpoint
sources:
  orders: {topic: orders, decode: {format: text}}
  customers: {topic: customers, as: table, decode: {format: text}}
transforms:
  - name: enriched
    sql: SELECT o.*, c.value AS region FROM orders o LEFT JOIN customers c ON o._key = c._key
    rules: [{name: known, check: region IS NOT NULL}]
  - {name: large, sql: SELECT * FROM enriched}
sinks:
  - {from: large, topic: large}
  - {from: large, console: large}
  - {from: orders, parquet: orders}
"""
READS = {"enriched": frozenset({"orders", "customers"}), "large": frozenset({"enriched"})}
CHANGING = {"enriched": "its result depends on chance"}


def mistakes(directory: Path, sink: str, changing: dict[str, str]) -> list[tuple[int, str]]:
    path = directory / "spec.yaml"
    path.write_text(f"{SPEC}  - {sink}\n")
    return [(each.line, each.text) for each in varying_rule_mistakes(load(path, {}), READS, changing)]


@pytest.mark.parametrize(
    "sink",
    ["{from: enriched, parquet: out}", "{from: large, table: out, key: id}", "{from: large, delta: out}"],
)
def test_a_sink_that_would_judge_for_itself_is_refused(tmp_path: Path, sink: str) -> None:
    ((line, why),) = mistakes(tmp_path, sink, CHANGING)
    assert (line, "out comes after a rule of enriched, and its result depends on chance" in why) == (16, True)
    assert "into a topic" in why


def test_before_the_rule_and_behind_rules_that_never_change_every_sink_is_free(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "{from: orders, delta: out}", CHANGING) == []
    assert mistakes(tmp_path, "{from: large, parquet: out}", {}) == []
