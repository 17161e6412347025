"""Which batch a table takes, which it has already, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.pipeline.table_sink import is_written
from strandline.spark.lineage import LineageError

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
    assert is_written(current, query_id, batch_id, fingerprint, "table") is expected


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
        is_written(current, "q", batch_id, fingerprint, "table")
