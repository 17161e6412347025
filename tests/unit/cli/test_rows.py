"""Rows of JSON that become records."""

from __future__ import annotations

import pytest

from strandline.cli.records.rows import BadRow, from_row


@pytest.mark.parametrize("row", ['{"valu": "x"}', '{"key": "k", "payload": "x"}'])
def test_row_with_a_mistyped_value_is_no_tombstone(row: str) -> None:
    with pytest.raises(BadRow, match="which a row does not have"):
        from_row(row)


@pytest.mark.parametrize("row", ['{"key": "k"}', '{"key": "k", "value": null, "comment": "x"}'])
def test_row_without_a_value_is_a_tombstone(row: str) -> None:
    assert from_row(row)[:2] == (b"k", None)
