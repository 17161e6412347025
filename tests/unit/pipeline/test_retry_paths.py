"""Which rules can be tried again: nothing on a record's way back may drop it, or give it to others twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.pipeline.plan.retry_paths import retry_mistakes
from strandline.pipeline.spec.reader import load

SPEC = """\
pipeline: again
brokers: localhost:9092
checkpoint: checkpoint
retry: {backoff: 5 seconds}
dead-letters: dead
sources:
  orders:
    topic: orders
    decode: {format: json, schema: {id: bigint, at: timestamp}}
    watermark: {column: at, delay: 1 hour}
  customers: {topic: customers, as: table, decode: {format: text}}
  history: {files: history, decode: {format: raw}}
transforms:
  - {name: clean, sql: SELECT * FROM orders}
  - name: enriched
    sql: SELECT c.* FROM clean c LEFT JOIN customers
    rules:
      - {name: known, check: region IS NOT NULL, retry: true}
  - {name: large, sql: SELECT * FROM enriched}
  - {name: regions, sql: SELECT * FROM customers JOIN history}
sinks:
  - {from: large, topic: large}
  - {from: enriched, topic: enriched}
  - {from: history, topic: history}
"""
READS = {
    "clean": frozenset({"orders"}),
    "enriched": frozenset({"clean", "customers"}),
    "large": frozenset({"enriched"}),
    "regions": frozenset({"customers", "history"}),
}


def mistakes(directory: Path, text: str, reads: dict[str, frozenset[str]]) -> list[tuple[int, str]]:
    path = directory / "spec.yaml"
    path.write_text(text)
    return [(each.line, each.text) for each in retry_mistakes(load(path, {}), reads)]


def test_stages_after_the_rule_and_stages_that_no_retried_record_reaches_are_free(tmp_path: Path) -> None:
    deduped = SPEC.replace(
        "  - {name: large,", "    watermark: {column: at, delay: 1 hour}\n    dedupe: id\n  - {name: large,"
    )
    assert mistakes(tmp_path, deduped, READS) == []


@pytest.mark.parametrize("stage", ["orders", "clean"])
def test_a_dedupe_on_the_way_is_refused(tmp_path: Path, stage: str) -> None:
    late = "watermark: {column: at, delay: 1 hour}"
    if stage == "orders":
        text = SPEC.replace(late, f"{late}\n    dedupe: id")
    else:
        text = SPEC.replace("FROM orders}", f"FROM orders, {late}, dedupe: id}}")
    ((line, why),) = mistakes(tmp_path, text, READS)
    assert (
        line == text.splitlines().index("      - {name: known, check: region IS NOT NULL, retry: true}") + 1
    )
    assert f"{stage} drops duplicates before this rule" in why


def test_another_reader_on_the_retry_path_is_refused(tmp_path: Path) -> None:
    text = f"{SPEC}  - {{from: orders, parquet: orders}}\n"
    ((line, why),) = mistakes(tmp_path, text, READS)
    assert (line, "parquet orders, which takes from orders too" in why) == (18, True)
    # Behind the rule, and beside it: both have seen the record when it comes again.
    for name in ("large", "regions"):
        reads = {**READS, name: READS[name] | {"clean"}}
        ((line, why),) = mistakes(tmp_path, SPEC, reads)
        assert (line, f"transform {name}, which takes from clean too" in why) == (18, True)


def test_a_topic_that_comes_back_to_two_sources_is_refused(tmp_path: Path) -> None:
    other = "  others: {topic: [more, orders], decode: {format: raw}}\ntransforms:"
    ((line, why),) = mistakes(tmp_path, SPEC.replace("transforms:", other), READS)
    assert (line, "topic orders is read by sources.orders too" in why) == (13, True)
