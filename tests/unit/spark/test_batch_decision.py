"""Which batch is written, which skipped, and what is refused."""

from __future__ import annotations

import pytest

from strandline.spark.sink.batch_decision import CommitMarker, Decision, LineageError, decide
from strandline.spark.sink.task_writer import (
    WHOLE_TOPIC,
    RepeatedWriteError,
    TaskFailedError,
    TaskReport,
    check_reports,
)


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


def test_the_marked_batch_is_skipped_and_the_one_behind_it_written() -> None:
    assert decided(marker(4), 4) is Decision.SKIP
    assert decided(marker(4), 5) is Decision.WRITE
    assert decided(None, 0) is Decision.WRITE


def test_a_batch_that_was_planned_again_is_neither_skipped_nor_written() -> None:
    assert decided(marker(4, "one"), 4, fingerprint="one") is Decision.SKIP
    for new_lineage in (False, True):
        with pytest.raises(LineageError, match="planned the batch again"):
            decided(marker(4, "one"), 4, fingerprint="other", new_lineage=new_lineage)
    assert decided(marker(4), 4, fingerprint="one") is Decision.SKIP, "a marker of an older version"
    assert decided(marker(4, "one"), 4) is Decision.SKIP, "Spark does not let it be seen"


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
def test_what_cannot_be_known_is_refused(found: CommitMarker | None, batch_id: int, words: str) -> None:
    with pytest.raises(LineageError, match=words):
        decided(found, batch_id)


def test_a_new_lineage_begins_where_the_user_says_so_but_never_repeats_its_own_batches() -> None:
    assert decided(CommitMarker(query_id="other", batch_id=4, rows=0), 4, new_lineage=True) is Decision.WRITE
    assert decided(None, 3, new_lineage=True) is Decision.WRITE
    assert decided(marker(4), 4, new_lineage=True) is Decision.SKIP
    with pytest.raises(LineageError):
        decided(marker(4), 3, new_lineage=True)


def test_a_stage_that_ran_twice_is_not_committed() -> None:
    reports = [TaskReport("t", 0, 5, 3), TaskReport("t", 1, 5, 3)]
    check_reports(reports, {3: 0})
    with pytest.raises(RepeatedWriteError, match="stage 3"):
        check_reports(reports, {3: 1})
    with pytest.raises(RepeatedWriteError, match="does not say"):
        check_reports(reports, {3: None})


def test_what_a_task_could_not_do_is_raised_before_what_followed_from_it() -> None:
    with pytest.raises(TaskFailedError, match="too large"):
        check_reports(
            [TaskReport("t", 0, 5, 3), TaskReport("", WHOLE_TOPIC, 0, 3, "a row is too large")], {3: 1}
        )


def test_two_tasks_of_one_partition_are_not_committed() -> None:
    with pytest.raises(RepeatedWriteError, match="one partition"):
        check_reports([TaskReport("t", 0, 5, 3), TaskReport("t", 0, 1, 3)], {3: 0})


def test_a_topic_that_one_task_has_whole_has_no_second_writer() -> None:
    whole = TaskReport("t", WHOLE_TOPIC, 5, 3)
    check_reports([whole, TaskReport("u", 0, 1, 3)], {3: 0})
    for other in (whole, TaskReport("t", 2, 1, 3)):
        with pytest.raises(RepeatedWriteError, match="two tasks"):
            check_reports([whole, other], {3: 0})
