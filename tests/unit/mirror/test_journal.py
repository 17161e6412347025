"""A journal is read from its beginning, or from a snapshot where its beginning is deleted."""

from __future__ import annotations

from typing import Any

from strandline.base.ids import TopicPartition
from strandline.mirror.journal.entries import (
    CONTROL,
    EVENT,
    RANGES,
    SNAPSHOT,
    Event,
    JournalState,
    encode_control,
    encode_event,
    encode_ranges,
)
from strandline.mirror.journal.follower import JournalFollower
from strandline.mirror.journal.offset_map import CopiedRange
from strandline.mirror.journal.snapshots import encode_snapshot

ORDERS = TopicPartition("orders", 0)


def follower(start: int = 0) -> JournalFollower:
    consumer: Any = None  # records are given by hand
    found = JournalFollower(consumer, "journal")
    found.begin(start)
    return found


def entry(number: int) -> bytes:
    """Ten records, and a marker after them."""
    return encode_ranges([(ORDERS, CopiedRange(10 * number, 11 * number, 10))])


def contents(found: JournalFollower) -> list[bytes]:
    return encode_snapshot(found.state, 0, "")


def snapshot_of(count: int, name: str = "a") -> list[bytes]:
    whole = follower()
    for offset in range(count):
        whole.apply(offset, RANGES, entry(offset))
    return encode_snapshot(whole.state, whole.position, name)


def test_reader_of_a_cut_journal_knows_what_a_reader_of_the_whole_one_does() -> None:
    whole, cut = follower(), follower(4)
    parts = snapshot_of(4)
    for offset in range(4):
        whole.apply(offset, RANGES, entry(offset))
    for offset in (4, 5):  # written while the snapshot was
        whole.apply(offset, RANGES, entry(offset))
        cut.apply(offset, RANGES, entry(offset))
    assert not cut.state.is_whole
    assert cut.state.to_target(ORDERS, 12) is None  # and not the first that it knows, which would be ahead
    for offset, part in enumerate(parts, 6):
        whole.apply(offset, SNAPSHOT, part)
        cut.apply(offset, SNAPSHOT, part)

    assert contents(cut) == contents(whole)
    assert [cut.state.to_target(ORDERS, each) for each in (0, 12, 45, 59)] == [0, 13, 49, 64]


def test_snapshot_that_covers_less_than_one_before_changes_nothing() -> None:
    late = snapshot_of(2, "of a process that was taken for dead")
    found = follower(4)
    for offset, part in enumerate(snapshot_of(4), 4):
        found.apply(offset, SNAPSHOT, part)
    before = found.state.maps[ORDERS].ranges
    for offset, part in enumerate(late, 10):
        found.apply(offset, SNAPSHOT, part)

    assert found.state.maps[ORDERS].ranges == before
    assert found.covered == 4


def test_snapshot_from_before_the_beginning_is_not_taken_for_the_state() -> None:
    found = follower(4)
    for offset, part in enumerate(snapshot_of(2), 4):
        found.apply(offset, SNAPSHOT, part)

    assert not found.state.is_whole
    assert found.state.maps == {}


def test_snapshot_of_which_a_part_is_missing_does_not_count() -> None:
    parts = snapshot_of(3)
    found = follower(3)
    found.apply(3, SNAPSHOT, parts[0])  # its writer died
    assert not found.state.is_whole
    for offset, part in enumerate(snapshot_of(3, "another"), 4):
        found.apply(offset, SNAPSHOT, part)
    assert found.state.is_whole


def test_snapshot_has_everything_that_a_state_has() -> None:
    whole = follower()
    event = Event("topic-recreated", "orders-0", "it was created again", 1, 0, 7)
    whole.apply(0, EVENT, encode_event(event))
    whole.apply(1, CONTROL, encode_control(paused=True, reason="repair", time_ms=2))
    whole.apply(2, b"failover", b'{"flow":"east->west"}')
    for offset in range(3, 60):
        whole.apply(offset, RANGES, entry(offset))
    whole.state.maps[ORDERS].coarsen(300, 8, 40)
    found = follower(60)
    for offset, part in enumerate(encode_snapshot(whole.state, 60, "a"), 60):
        found.apply(offset, SNAPSHOT, part)

    assert contents(found) == contents(whole)
    assert not all(each.is_exact for each in found.state.maps[ORDERS].ranges)


def test_journal_of_the_first_version_is_read() -> None:
    state = JournalState()
    state.apply(b"ranges", b'{"ranges":{"orders":[[0,0,0,50],[0,52,51,8]]}}')
    state.apply(
        b"event",
        b'{"kind":"topic-deleted","where":"a","text":"b","time_ms":3,"first_offset":-1,"offset_count":0}',
    )
    state.apply(b"control", b'{"paused": true, "reason": "r", "time_ms": 4}')

    assert state.to_target(ORDERS, 55) == 54
    assert [each.kind for each in state.events] == ["topic-deleted"]
    assert state.is_paused
