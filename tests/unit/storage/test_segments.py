"""When a segment is rolled, and what its files look like."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.wire.record_batch import Record, build_batch, read_header
from tests.batches import NOW_MS, batch
from tests.unit.storage.logs import Store, append, contents, read


def entries(path: Path, layout: str) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack(layout, path.read_bytes()))


def test_offset_and_epoch_are_written_into_the_batch_and_nothing_else_is_touched(tmp_path: Path) -> None:
    store = Store(tmp_path)
    log = store.open()
    data = batch(3, size=100)
    append(log, data)
    append(log, data, epoch=7)
    written = store.file(0).read_bytes()
    second = written[len(data) :]
    header = read_header(second)
    assert (header.base_offset, header.leader_epoch) == (3, 7)
    assert second[16:] == data[16:]
    assert written[: len(data)][16:] == data[16:]
    assert log.log_end_offset == 6


def test_segment_is_rolled_before_an_append_that_would_exceed_its_size(tmp_path: Path) -> None:
    size = len(batch(1))
    store = Store(tmp_path, segment_bytes=3 * size)
    log = store.open()
    for _ in range(7):
        append(log, batch(1))
    assert store.names(".log") == [0, 3, 6]
    assert store.file(0).stat().st_size == 3 * size
    assert contents(log) == [(n, n) for n in range(7)]


def test_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = Store(tmp_path, segment_bytes=200).open()
    with pytest.raises(KafkaError) as refused:
        append(log, batch(1, size=300))
    assert refused.value.code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


def test_segment_is_rolled_by_its_records_own_time(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_ms=1000)
    log = store.open()
    append(log, batch(1, timestamp=NOW_MS))
    append(log, batch(1, timestamp=NOW_MS + 1000), now_ms=NOW_MS + 10**9)
    assert store.names(".log") == [0]
    append(log, batch(1, timestamp=NOW_MS + 1001))
    assert store.names(".log") == [0, 2]


def test_segment_of_records_without_timestamps_is_rolled_by_the_clock(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_ms=1000)
    log = store.open()
    append(log, batch(1, timestamp=-1), now_ms=NOW_MS)
    append(log, batch(1, timestamp=-1), now_ms=NOW_MS + 1000)
    assert store.names(".log") == [0]
    append(log, batch(1, timestamp=-1), now_ms=NOW_MS + 1001)
    assert store.names(".log") == [0, 2]


def test_jitter_closes_a_segment_sooner_by_less_than_it_says_and_not_always_by_the_same(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path, segment_ms=1000, segment_jitter_ms=400)
    log = store.open()
    ages = []
    timestamp = NOW_MS
    append(log, batch(1, timestamp=timestamp))
    while len(ages) < 5:
        began, base_offset = timestamp, log.active.base_offset
        while log.active.base_offset == base_offset:
            timestamp += 20
            append(log, batch(1, timestamp=timestamp))
        ages.append(timestamp - began)
    assert all(600 < age <= 1020 for age in ages)
    assert len(set(ages)) > 1


def test_empty_segment_is_not_rolled(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_ms=1)
    log = store.open()
    assert log.roll(NOW_MS) is log.active
    append(log, batch(1, timestamp=NOW_MS + 10**6))
    assert store.names(".log") == [0]


def test_segment_is_rolled_when_its_offset_index_is_full(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_index_bytes=5 * 8 + 3, index_interval_bytes=0)
    log = store.open()
    for _ in range(7):
        append(log, batch(1, timestamp=NOW_MS))  # the same time each: the time index gets one entry
    assert store.names(".log") == [0, 6]
    assert store.file(0, ".index").stat().st_size == 5 * 8


def test_segment_is_rolled_one_entry_before_its_time_index_is_full(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_index_bytes=4 * 12, index_interval_bytes=0)
    log = store.open()
    for number in range(5):
        append(log, batch(1, timestamp=NOW_MS + number))
    assert store.names(".log") == [0, 4]
    assert store.file(0, ".timeindex").stat().st_size == 3 * 12, "closing it adds nothing it has already"


def test_segment_is_rolled_before_its_offsets_exceed_31_bits(tmp_path: Path) -> None:
    store = Store(tmp_path)
    log = store.open()
    append(log, batch(1))
    at_the_end = build_batch([Record(0x7FFFFFFF, NOW_MS, None, b"v")])
    log.append_replicated(at_the_end, read_header(at_the_end), NOW_MS)
    assert store.names(".log") == [0]
    beyond = build_batch([Record(0x80000000, NOW_MS, None, b"v")])
    log.append_replicated(beyond, read_header(beyond), NOW_MS)
    assert store.names(".log") == [0, 0x80000000]
    assert read(log, 0x80000000) == beyond


def test_index_has_an_entry_for_the_batch_behind_each_interval(tmp_path: Path) -> None:
    data = batch(2, timestamp=NOW_MS)
    store = Store(tmp_path, index_interval_bytes=2 * len(data))
    log = store.open()
    for _ in range(9):
        append(log, data)
    log.active.save_indexes()
    # More than the interval lies before batches 3 and 6; an entry has the batch's last offset.
    assert entries(store.file(0, ".index"), ">ii") == [(7, 3 * len(data)), (13, 6 * len(data))]
    # The time index has one entry, since time stood still.
    assert entries(store.file(0, ".timeindex"), ">qi") == [(NOW_MS + 1, 1)]


def test_closing_a_segment_ends_its_time_index_with_its_largest_timestamp(tmp_path: Path) -> None:
    store = Store(tmp_path)
    log = store.open()
    for timestamp in (NOW_MS, NOW_MS + 500, NOW_MS + 100):
        append(log, batch(1, timestamp=timestamp))
    log.roll(NOW_MS)
    assert entries(store.file(0, ".timeindex"), ">qi") == [(NOW_MS + 500, 1)]
    assert store.file(0, ".index").read_bytes() == b""


def test_time_index_has_nothing_to_say_of_records_without_timestamps(tmp_path: Path) -> None:
    store = Store(tmp_path, index_interval_bytes=0)
    log = store.open()
    for _ in range(4):
        append(log, batch(1, timestamp=-1))
    log.roll(NOW_MS)
    assert store.file(0, ".timeindex").read_bytes() == b""


def test_rolling_leaves_a_snapshot_of_the_producers_at_the_new_segment(tmp_path: Path) -> None:
    store = Store(tmp_path)
    log = store.open()
    append(log, batch(2, producer_id=5, epoch=0, sequence=0))
    log.roll(NOW_MS)
    assert store.names(".snapshot") == [2]


def test_preallocated_segment_has_its_full_size_until_it_is_closed(tmp_path: Path) -> None:
    store = Store(tmp_path, preallocate=True, segment_bytes=5000)
    log = store.open()
    data = batch(1)
    append(log, data)
    assert store.file(0).stat().st_size == 5000
    assert read(log, 0)[16:] == data[16:]
    log.roll(NOW_MS)
    assert store.file(0).stat().st_size == len(data)
    append(log, data)
    log.close()
    assert store.file(1).stat().st_size == len(data)
    assert contents(store.open(clean=True)) == [(0, 0), (1, 1)]


def test_preallocation_that_was_never_given_back_is_no_torn_batch_to_readers(tmp_path: Path) -> None:
    store = Store(tmp_path, preallocate=True, segment_bytes=5000)
    append(store.open(), batch(3))
    log = store.open()
    assert contents(log) == [(0, 2)]
    assert log.active.size == len(batch(3))
