"""MirrorMaker 2's records, byte for byte, and the journal."""

from __future__ import annotations

from strandline.base.ids import TopicPartition
from strandline.mirror.checkpoints.mm2_records import Checkpoint, Heartbeat, OffsetSync
from strandline.mirror.copying.copier import ranges_of
from strandline.mirror.copying.rate_limit import RateLimit
from strandline.mirror.journal.entries import (
    CONTROL,
    EVENT,
    RANGES,
    Event,
    JournalState,
    encode_control,
    encode_event,
    encode_ranges,
)
from strandline.mirror.journal.offset_map import CopiedRange

ORDERS = TopicPartition("orders", 0)


def test_records_have_the_bytes_of_kafkas_structs() -> None:
    key, value = Checkpoint("g", "t", 1, 2, 3, "m").encode()
    assert key == b"\0\1g\0\1t\0\0\0\1"
    assert value == b"\0\0" + (2).to_bytes(8, "big") + (3).to_bytes(8, "big") + b"\0\1m"
    key, value = Heartbeat("a", "b", 5).encode()
    assert (key, value) == (b"\0\1a\0\1b", b"\0\0" + (5).to_bytes(8, "big"))
    key, value = OffsetSync("t", 1, 2, 3).encode()
    assert (key, value) == (b"\0\1t\0\0\0\1", (2).to_bytes(8, "big") + (3).to_bytes(8, "big"))


def test_records_are_read_back() -> None:
    for record in (Checkpoint("grüppe", "t", 1, 2, 3, ""), Heartbeat("a", "b", 5), OffsetSync("t", 1, 2, 3)):
        assert type(record).decode(*record.encode()) == record


def test_journal_adds_up() -> None:
    state = JournalState()
    event = Event("kind", "orders-0", "text", 5, 7, 3)
    state.apply(RANGES, encode_ranges([(ORDERS, CopiedRange(0, 10, 5))]))
    state.apply(EVENT, encode_event(event))
    state.apply(CONTROL, encode_control(paused=True, reason="night", time_ms=1))
    state.apply(b"of a later version", b"{}")
    state.apply(None, None)
    assert state.to_target(ORDERS, 3) == 13
    assert state.events == [event]
    assert (state.is_paused, state.pause_reason) == (True, "night")


def test_map_of_a_topic_that_was_created_again_begins_again() -> None:
    state = JournalState()
    state.apply(RANGES, encode_ranges([(ORDERS, CopiedRange(0, 0, 50))]))
    state.apply(RANGES, encode_ranges([(ORDERS, CopiedRange(0, 51, 2))], recreated=[ORDERS]))
    assert state.maps[ORDERS].ranges == (CopiedRange(0, 51, 2),)


def test_runs_of_both_ends_become_ranges() -> None:
    assert ranges_of([(7, 2), (12, 2)], [(100, 3), (110, 1)]) == [
        CopiedRange(7, 100, 2),
        CopiedRange(12, 102, 1),
        CopiedRange(13, 110, 1),
    ]


def test_rate_limit_waits_for_the_bytes_that_were_sent() -> None:
    limit = RateLimit(100)
    limit.charge(10.0, 250)
    assert limit.wait_seconds(10.0) == 2.5
    assert limit.wait_seconds(13.0) == 0
    assert RateLimit(0).wait_seconds(0.0) == 0
