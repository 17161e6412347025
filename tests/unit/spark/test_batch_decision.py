"""The sink writes the next batch, skips the committed one, and refuses a batch whose fate cannot be known."""

from __future__ import annotations

import pytest

from strandline.spark.sink.batch_decision import CommitMarker, Decision, LineageError, decide


def decided(
    marker: CommitMarker | None, batch_id: int, *, new_lineage: bool = False, fingerprint: str | None = None
) -> Decision:
    return decide(
        marker, query_id="q", batch_id=batch_id, name="sink", new_lineage=new_lineage, fingerprint=fingerprint
    )


def marker(batch_id: int, fingerprint: str | None = None) -> CommitMarker:
    return CommitMarker(query_id="q", batch_id=batch_id, rows=5, fingerprint=fingerprint)


@pytest.mark.parametrize("written", [marker(7), marker(7, "one")])
def test_a_marker_survives_its_bytes(written: CommitMarker) -> None:
    assert CommitMarker.from_bytes(written.to_bytes()) == written


def test_the_marked_batch_is_skipped_and_the_next_one_is_written() -> None:
    assert decided(marker(4), 4) is Decision.SKIP
    assert decided(marker(4), 5) is Decision.WRITE
    assert decided(None, 0) is Decision.WRITE


def test_another_batch_under_the_marked_number_is_refused() -> None:
    assert decided(marker(4, "one"), 4, fingerprint="one") is Decision.SKIP
    for new_lineage in (False, True):
        with pytest.raises(LineageError, match="planned the batch again"):
            decided(marker(4, "one"), 4, fingerprint="other", new_lineage=new_lineage)
    assert decided(marker(4), 4, fingerprint="one") is Decision.SKIP, "a marker of an older version"
    assert decided(marker(4, "one"), 4) is Decision.SKIP, "Spark does not show the fingerprint"


@pytest.mark.parametrize(
    ("found", "batch_id", "words"),
    [
        (marker(4), 3, "checkpoint is older"),
        (marker(4), 6, "marker is of batch 4"),
        (None, 3, "there is no marker"),
        (CommitMarker(query_id="other", batch_id=4, rows=0), 0, "checkpoint was deleted"),
        (CommitMarker(query_id="other", batch_id=4, rows=0), 4, "checkpoint was deleted"),
        (CommitMarker(query_id="other", batch_id=4, rows=0), 5, "checkpoint was deleted"),
    ],
)
def test_a_batch_that_does_not_follow_the_marker_is_refused(
    found: CommitMarker | None, batch_id: int, words: str
) -> None:
    with pytest.raises(LineageError, match=words):
        decided(found, batch_id)


def test_a_new_lineage_begins_at_any_batch_but_repeats_none_of_its_own() -> None:
    assert decided(CommitMarker(query_id="other", batch_id=4, rows=0), 4, new_lineage=True) is Decision.WRITE
    assert decided(None, 3, new_lineage=True) is Decision.WRITE
    assert decided(marker(4), 4, new_lineage=True) is Decision.SKIP
    with pytest.raises(LineageError):
        decided(marker(4), 3, new_lineage=True)
