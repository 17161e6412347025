"""Which batch a table takes, which it has already, what is refused, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline.pipeline.plan.table_sink import TableSink, is_batch_written, why_no_table
from strandline.pipeline.runtime.validation import validate
from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.yaml_lines import SpecError
from strandline.spark.sink.batch_decision import LineageError
from tests.unit.pipeline.specs import SPEC

CURRENT = {"version": "q-4", "query": "q", "batch": 4, "fingerprint": "one"}
OLDER = {"version": "q-4", "query": "q", "batch": 4}  # written by a version that noted no fingerprint


@pytest.mark.parametrize(
    ("current", "query_id", "batch_id", "fingerprint", "expected"),
    [
        ({}, "q", 0, "any", False),
        (CURRENT, "q", 5, "any", False),
        (CURRENT, "other", 0, "any", False),
        (CURRENT, "q", 4, "one", True),
        (CURRENT, "q", 4, None, True),
        (OLDER, "q", 4, "one", True),
    ],
)
def test_the_next_batch_is_written_and_the_current_one_is_there(
    current: dict[str, Any], query_id: str, batch_id: int, fingerprint: str | None, expected: bool
) -> None:
    assert is_batch_written(current, query_id, batch_id, fingerprint, "table") is expected


@pytest.mark.parametrize(
    ("current", "batch_id", "fingerprint", "words"),
    [
        (CURRENT, 4, "other", "the last one there is another batch 4"),
        (CURRENT, 3, "one", "the last one there is batch 4"),
        (CURRENT, 6, "one", "the last one there is batch 4"),
        ({}, 3, "one", "there is no table"),
    ],
)
def test_a_table_that_does_not_belong_to_the_checkpoint_is_refused(
    current: dict[str, Any], batch_id: int, fingerprint: str, words: str
) -> None:
    with pytest.raises(LineageError, match=words):
        is_batch_written(current, "q", batch_id, fingerprint, "table")


def test_only_versions_of_the_table_are_removed(tmp_path: Path) -> None:
    query, other = "0f9a4c7e-2b1d-4a52-9f67-3c1b0a9d8e77", "5d7b2c10-9a3e-4f08-8c44-b1e6d2f3a509"
    old, before, now = f"{other}-12", f"{query}-3", f"{query}-4"
    for name in (old, before, now, "photos", f"{query}-4.bak"):
        (tmp_path / name).mkdir()
    TableSink(str(tmp_path), ["id"], None)._switch({"version": now}, before)
    assert {each.name for each in tmp_path.iterdir() if each.is_dir()} == {
        before,
        now,
        "photos",
        f"{query}-4.bak",
    }


def test_a_directory_of_somebody_else_is_refused_before_anything_runs(tmp_path: Path) -> None:
    table = tmp_path / "out"
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("topic: big-orders", "table: out"))

    def check() -> None:
        validate(load(path), with_brokers=False, with_spark=False)

    check()
    table.mkdir()
    check()
    (table / "0f9a4c7e-2b1d-4a52-9f67-3c1b0a9d8e77-0").mkdir()
    (table / "current.json.new").touch()
    check()  # so much is left of a run that was killed in its first batch
    (table / "photos").mkdir()
    with pytest.raises(
        SpecError, match=r"spec.yaml:20: .*out contains photos and is not a table of a pipeline"
    ):
        check()
    (table / "current.json").touch()
    assert why_no_table(table) is None
