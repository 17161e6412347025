"""Reading by offset and by time."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.storage.log import Log
from strandline.wire.record_batch import CorruptBatch, headers_in, read_header
from tests.batches import NOW_MS, batch, resealed
from tests.disks import WatchedDisk
from tests.unit.storage.logs import Store, append, read


def filled(store: Store, count: int, records: int = 2) -> Log:
    log = store.open()
    for number in range(count):
        append(log, batch(records, timestamp=NOW_MS + 10 * number))
    return log


def test_read_begins_with_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    log = filled(Store(tmp_path, segment_bytes=500), 10, records=3)
    for offset in range(30):
        assert read_header(read(log, offset)).base_offset == offset // 3 * 3


def test_read_gives_nothing_at_the_end(tmp_path: Path) -> None:
    log = filled(Store(tmp_path), 2)
    assert log.read(4, 4, 1000, whole_first_batch=True) is None


def test_read_stops_before_the_upper_offset(tmp_path: Path) -> None:
    log = filled(Store(tmp_path), 5)
    region = log.read(2, 6, 1 << 20, whole_first_batch=True)
    assert region is not None
    data = region.file.read_at(region.position, region.size)
    assert [header.base_offset for _, header in headers_in(data)] == [2, 4]


def test_read_may_cut_off_its_last_batch_but_not_its_first(tmp_path: Path) -> None:
    log = filled(Store(tmp_path), 3)
    size = len(batch(2, timestamp=NOW_MS))
    assert len(read(log, 0, size + 10)) == size + 10
    assert len(read(log, 0, 10)) == size


def test_first_batch_that_does_not_fit_is_left_out_where_it_need_not_be_whole(tmp_path: Path) -> None:
    log = filled(Store(tmp_path), 3)
    assert read(log, 0, 10, whole_first_batch=False) == b""


def test_read_goes_on_in_the_next_segment_where_one_ends(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_bytes=len(batch(2)) * 2)
    log = filled(store, 4)
    assert store.names(".log") == [0, 4]
    assert [header.base_offset for _, header in headers_in(read(log, 0))] == [0, 2]
    assert [header.base_offset for _, header in headers_in(read(log, 4))] == [4, 6]


def test_read_by_offset_looks_at_a_few_headers_and_scans_nothing(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = Store(tmp_path, disk, index_interval_bytes=4096)
    log = store.open()
    for _ in range(3000):
        append(log, batch(1, size=300))
    disk.reads.clear()
    log.read(2500, 3000, 1 << 20, whole_first_batch=True)
    assert disk.bytes_read(".log") <= 2 * 8192


def test_time_finds_the_first_record_that_is_not_older(tmp_path: Path) -> None:
    log = filled(Store(tmp_path, segment_bytes=400, index_interval_bytes=0), 20)
    assert log.offset_by_time(NOW_MS, 0) == (NOW_MS, 0)
    assert log.offset_by_time(NOW_MS + 50, 0) == (NOW_MS + 50, 10)
    assert log.offset_by_time(NOW_MS + 51, 0) == (NOW_MS + 51, 11)
    assert log.offset_by_time(NOW_MS + 52, 0) == (NOW_MS + 60, 12)
    assert log.offset_by_time(NOW_MS + 191, 0) == (NOW_MS + 191, 39)
    assert log.offset_by_time(NOW_MS + 192, 0) is None
    assert log.offset_by_time(0, 0) == (NOW_MS, 0)


def test_time_never_finds_what_lies_below_the_log_start(tmp_path: Path) -> None:
    log = filled(Store(tmp_path), 3)
    log.advance_start(3)
    assert log.offset_by_time(NOW_MS, log.log_start_offset) == (NOW_MS + 11, 3)
    log.advance_start(6)
    assert log.offset_by_time(NOW_MS, log.log_start_offset) is None


def test_time_that_goes_back_does_not_hide_earlier_records(tmp_path: Path) -> None:
    log = Store(tmp_path, index_interval_bytes=0).open()
    for timestamp in (500, 100, 900, 200):
        append(log, batch(1, timestamp=timestamp))
    assert log.offset_by_time(150, 0) == (500, 0)
    assert log.offset_by_time(501, 0) == (900, 2)


def test_largest_timestamp_is_found_with_the_first_record_that_has_it(tmp_path: Path) -> None:
    log = Store(tmp_path, segment_bytes=300).open()
    assert log.offset_of_largest_timestamp() is None
    for timestamp in (500, 900, 100, 900):
        append(log, batch(2, timestamp=timestamp))
    assert log.offset_of_largest_timestamp() == (901, 3)


def test_largest_timestamp_below_the_log_start_no_longer_counts(tmp_path: Path) -> None:
    log = Store(tmp_path).open()
    for timestamp in (900, 100, 300, 200):
        append(log, batch(1, timestamp=timestamp))
    log.advance_start(1)
    assert log.offset_of_largest_timestamp() == (300, 2)
    log.advance_start(4)
    assert log.offset_of_largest_timestamp() is None


@pytest.mark.parametrize("lookup", ["by_time", "largest"])
def test_batch_whose_records_cannot_be_read_is_found_as_a_whole(tmp_path: Path, lookup: str) -> None:
    """The broker does not read records when it takes them, so they may turn out to be garbage later."""
    log = Store(tmp_path).open()
    append(log, batch(2, timestamp=NOW_MS - 10))
    append(log, resealed(batch(2)[:-3], length=len(batch(2)) - 15))
    found = log.offset_by_time(NOW_MS, 0) if lookup == "by_time" else log.offset_of_largest_timestamp()
    assert found == (NOW_MS + 1, 2)


@pytest.mark.parametrize("length", [0, -12, 48, -(1 << 31), 1 << 30])
def test_a_damaged_length_is_an_error_and_never_walked_over(tmp_path: Path, length: int) -> None:
    store = Store(tmp_path)
    log = filled(store, 5)
    size = len(batch(2, timestamp=NOW_MS))
    data = bytearray(store.file(0).read_bytes())
    data[2 * size + 8 : 2 * size + 12] = length.to_bytes(4, "big", signed=True)
    store.file(0).write_bytes(bytes(data))
    assert read_header(read(log, 2, size)).base_offset == 2
    with pytest.raises(CorruptBatch):
        log.read(7, 10, 1000, whole_first_batch=True)
    with pytest.raises(CorruptBatch):
        list(log.segments[0].headers())
    with pytest.raises(CorruptBatch):
        log.offset_by_time(NOW_MS + 40, 0)


def test_a_batch_that_was_just_appended_is_found_without_a_walk_and_no_longer_once_it_was_cut(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    log = filled(store, 5)
    segment = log.segments[0]
    size = len(batch(2, timestamp=NOW_MS))

    def set_first_length(length: int) -> None:
        data = bytearray(store.file(0).read_bytes())
        data[8:12] = length.to_bytes(4, "big")
        store.file(0).write_bytes(bytes(data))

    set_first_length(0)  # no walk gets past that
    assert segment.position_of(6) == 3 * size
    with pytest.raises(CorruptBatch):
        segment.position_of(7)
    set_first_length(size - 12)
    log.truncate_to(6)
    set_first_length(0)
    with pytest.raises(CorruptBatch):
        segment.position_of(4)


def test_a_place_that_the_file_does_not_confirm_is_looked_for_by_a_walk(tmp_path: Path) -> None:
    store = Store(tmp_path)
    log = filled(store, 5)
    size = len(batch(2, timestamp=NOW_MS))
    data = bytearray(store.file(0).read_bytes())
    data[3 * size + 8 : 3 * size + 12] = bytes(4)
    store.file(0).write_bytes(bytes(data))
    with pytest.raises(CorruptBatch):
        log.read(6, 10, 1000, whole_first_batch=True)


@pytest.mark.parametrize("is_compacted", [True, False])
def test_a_walk_survives_that_the_file_is_closed_or_replaced_between_two_of_its_steps(
    tmp_path: Path, is_compacted: bool
) -> None:
    """The loading of a coordinator lets others run now and then: files are closed to make room, segments compacted."""
    store = Store(tmp_path)
    log = filled(store, 300)
    walks = [log.places(0), iter(log.segments[0].headers())]
    firsts = [next(walk) for walk in walks]
    if is_compacted:
        log.segments[0].rename_for_deletion()
    else:
        store.files.close()
    assert [len([first, *walk]) for first, walk in zip(firsts, walks, strict=True)] == [300, 300]
