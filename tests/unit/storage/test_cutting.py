"""Taking records off either end: retention, deletion, truncation."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.storage import retention
from strandline.storage.log import Log
from strandline.storage.segment import Segment
from tests.batches import NOW_MS, batch
from tests.disks import WatchedDisk
from tests.unit.storage.logs import Store, append, contents, topic_config

EACH = len(batch(2))


def filled(store: Store, count: int = 10, step_ms: int = 1000) -> Log:
    log = store.open()
    for number in range(count):
        append(log, batch(2, timestamp=NOW_MS + step_ms * number), epoch=number // 3)
    return log


def two_each(tmp_path: Path, **overrides: object) -> Store:
    """Segments of two batches, four offsets, each."""
    return Store(tmp_path, segment_bytes=2 * EACH, **overrides)


@pytest.mark.parametrize(
    ("age_ms", "retention_ms", "expired"),
    [
        (0, 10_000, 0),
        (10_000, 10_000, 0),
        # The first segment's largest timestamp is 1,001 ms, the second's 3,001 ms behind the first record.
        (11_001, 10_000, 0),
        (11_002, 10_000, 1),
        (13_001, 10_000, 1),
        (13_002, 10_000, 2),
        (10**9, 10_000, 5),
        (10**9, -1, 0),
    ],
)
def test_segments_expire_by_their_largest_timestamp(
    tmp_path: Path, age_ms: int, retention_ms: int, expired: int
) -> None:
    log = filled(two_each(tmp_path))
    config = topic_config(retention_ms=retention_ms)
    assert retention.expired_by_time(log.segments, config, NOW_MS + age_ms) == expired


def test_expiry_stops_at_the_first_segment_that_is_young_enough(tmp_path: Path) -> None:
    log = two_each(tmp_path).open()
    for timestamp in (0, 0, 9_000_000, 0, 0, 0):
        append(log, batch(2, timestamp=NOW_MS + timestamp))
    config = topic_config(retention_ms=1000)
    assert retention.expired_by_time(log.segments, config, NOW_MS + 10_000) == 1


def test_segments_whose_records_have_no_timestamps_expire_by_when_they_were_written(tmp_path: Path) -> None:
    log = Store(tmp_path, segment_bytes=EACH).open()
    for _ in range(3):
        append(log, batch(1, timestamp=-1))
    for segment, second in zip(log.segments, (1, 2, 3), strict=True):
        os.utime(segment.log_path, (second, second))
    config = topic_config(retention_ms=10_000)
    assert [
        retention.expired_by_time(log.segments, config, now_ms) for now_ms in (11_000, 11_001, 12_001, 13_001)
    ] == [0, 1, 2, 3]


def test_an_empty_segment_never_expires(tmp_path: Path) -> None:
    log = Store(tmp_path).open()
    assert retention.expired_by_time(log.segments, topic_config(retention_ms=1), NOW_MS * 2) == 0
    assert retention.expired_by_size(log.segments, topic_config(retention_bytes=0), 0) == 0


@pytest.mark.parametrize(
    ("retention_bytes", "expired"),
    [(-1, 0), (10 * EACH, 0), (8 * EACH + 1, 0), (8 * EACH, 1), (5 * EACH, 2), (2 * EACH, 4), (0, 5)],
)
def test_segments_go_while_enough_stays(tmp_path: Path, retention_bytes: int, expired: int) -> None:
    log = filled(two_each(tmp_path))
    config = topic_config(retention_bytes=retention_bytes)
    assert retention.expired_by_size(log.segments, config, log.size) == expired


@pytest.mark.parametrize(("start", "count"), [(0, 0), (3, 0), (4, 1), (7, 1), (8, 2), (20, 4)])
def test_segments_below_the_log_start_can_go(tmp_path: Path, start: int, count: int) -> None:
    log = filled(two_each(tmp_path))
    assert retention.below_start(log.segments, start) == count


def test_dropped_segments_are_renamed_and_the_log_starts_behind_them(tmp_path: Path) -> None:
    store = two_each(tmp_path)
    log = filled(store)
    paths = log.drop_segments(log.segments[:2])
    assert log.log_start_offset == 8
    assert contents(log)[0] == (8, 9)
    assert store.names(".log") == [8, 12, 16]
    assert store.names(".snapshot") == [8, 12, 16]
    assert all(path.endswith(".deleted") and Path(path).exists() for path in paths)
    assert len(paths) == 6
    assert log.epochs.entries == [(1, 8), (2, 12), (3, 18)]
    assert contents(store.open()) == contents(log)
    assert not any(Path(path).exists() for path in paths)


def test_an_answer_under_way_still_reads_from_a_dropped_segment(tmp_path: Path) -> None:
    log = filled(two_each(tmp_path))
    region = log.read(0, 20, 1 << 20, whole_first_batch=True)
    assert region is not None
    log.drop_segments(log.segments[:2])
    assert len(region.file.read_at(region.position, region.size)) == 2 * EACH


def test_only_the_oldest_segments_are_dropped_and_one_stays(tmp_path: Path) -> None:
    log = filled(two_each(tmp_path))
    with pytest.raises(AssertionError, match="oldest"):
        log.drop_segments(log.segments[1:2])
    with pytest.raises(AssertionError, match="one segment stays"):
        log.drop_segments(log.segments)


def test_log_start_moves_forward_only(tmp_path: Path) -> None:
    log = filled(Store(tmp_path))
    log.advance_start(7)
    log.advance_start(3)
    assert log.log_start_offset == 7
    assert log.epochs.entries == [(1, 7), (2, 12), (3, 18)]
    with pytest.raises(AssertionError):
        log.advance_start(21)


@pytest.mark.parametrize("offset", range(21))
def test_truncation_drops_the_batch_that_holds_the_offset_and_all_behind_it(
    tmp_path: Path, offset: int
) -> None:
    store = two_each(tmp_path, index_interval_bytes=0)
    log = filled(store)
    log.truncate_to(offset)
    left = offset // 2
    expected = [(2 * number, 2 * number + 1) for number in range(left)]
    assert contents(log) == expected
    assert log.log_end_offset == 2 * left
    assert all(start < log.log_end_offset for _, start in log.epochs.entries)
    assert all(name <= log.log_end_offset for name in store.names(".snapshot"))
    largest = log.offset_of_largest_timestamp()
    assert largest == ((NOW_MS + 1000 * (left - 1) + 1, 2 * left - 1) if left else None)
    append(log, batch(2), epoch=9)
    assert contents(log) == [*expected, (2 * left, 2 * left + 1)]
    assert contents(store.open()) == contents(log)
    assert store.notes == ()


def test_truncation_below_the_log_start_takes_the_start_along(tmp_path: Path) -> None:
    log = filled(Store(tmp_path))
    log.advance_start(10)
    log.truncate_to(4)
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)


def test_truncation_lowers_the_recovery_point(tmp_path: Path) -> None:
    log = filled(Store(tmp_path))
    log.flushed(20)
    log.truncate_to(6)
    assert log.recovery_point == 6


def test_truncation_before_the_first_segment_begins_the_log_there(tmp_path: Path) -> None:
    store = two_each(tmp_path)
    log = filled(store)
    log.drop_segments(log.segments[:2])
    log.truncate_to(3)
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    assert store.names(".log") == [3]
    assert append(log, batch(1)) == 3


def test_truncation_to_the_end_forgets_an_epoch_that_has_no_record(tmp_path: Path) -> None:
    """A leader that was replaced before it appended: otherwise it would be told to go back there again and again."""
    log = filled(Store(tmp_path))
    last = log.epochs.latest_epoch
    log.epochs.assign(last + 5, log.log_end_offset)
    log.truncate_to(log.log_end_offset)
    assert log.epochs.latest_epoch == last


def test_a_segment_that_compaction_emptied_does_not_hold_up_those_behind_it(tmp_path: Path) -> None:
    log = filled(two_each(tmp_path))
    log.segments[0].size = 0
    config = topic_config(retention_ms=1000, retention_bytes=0)
    assert retention.expired_by_time(log.segments, config, NOW_MS + 10**9) == 5
    assert retention.expired_by_size(log.segments, config, log.segments[1].size) == 2


def test_a_check_costs_what_it_deletes_and_not_what_there_is(tmp_path: Path) -> None:
    log = filled(two_each(tmp_path))
    looked_at = []

    def oldest_first() -> Iterator[Segment]:
        for segment in log.segments_below(log.log_end_offset):
            looked_at.append(segment.base_offset)
            yield segment

    config = topic_config(retention_ms=10_000, retention_bytes=log.size - log.segments[0].size)
    assert retention.expired_by_time(oldest_first(), config, NOW_MS + 11_002) == 1
    assert retention.expired_by_size(oldest_first(), config, log.size) == 1
    assert looked_at == [0, 4, 0, 4]


def test_segments_above_an_offset_are_not_below_it(tmp_path: Path) -> None:
    log = filled(two_each(tmp_path))
    assert [segment.base_offset for segment in log.segments_below(7)] == [0]
    assert [segment.base_offset for segment in log.segments_below(8)] == [0, 4]
    assert len(list(log.segments_below(log.log_end_offset))) == len(log.segments)


def test_the_size_of_a_log_is_right_whatever_was_done_to_it(tmp_path: Path) -> None:
    log = filled(two_each(tmp_path))

    def check() -> None:
        assert log.size == sum(segment.size for segment in log.segments)

    check()
    append(log, batch(2))
    check()
    log.roll(NOW_MS)
    check()
    log.drop_segments(log.segments[:1])
    check()
    log.truncate_to(log.segments[-2].base_offset)
    check()
    log.restart_at(100)
    check()


def test_what_is_done_to_a_log_whose_directory_was_renamed_is_done_there(tmp_path: Path) -> None:
    """A topic of the same name may have been made again, and has the old name."""
    store = two_each(tmp_path / "t-0", index_interval_bytes=0)
    log = filled(store)
    log.release()
    doomed = tmp_path / "t-0.deleted"
    (tmp_path / "t-0").rename(doomed)
    log.moved_to(str(doomed))
    log.truncate_to(14)
    append(log, batch(2), epoch=9)
    log.restart_at(50)
    append(log, batch(2), epoch=10)
    log.close()
    assert not (tmp_path / "t-0").exists()
    assert (doomed / "leader-epoch-checkpoint").read_bytes() == b"0\n1\n10 50\n"


def test_a_cut_log_without_room_for_its_epochs_forgets_them_nevertheless(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = Store(tmp_path, disk, segment_bytes=2 * EACH)
    log = filled(store)
    assert log.epochs.entries == [(0, 0), (1, 6), (2, 12), (3, 18)]
    disk.fail("write", "leader-epoch-checkpoint", errno.ENOSPC)
    with pytest.raises(OSError, match="No space"):
        log.truncate_to(14)
    assert (log.log_end_offset, log.epochs.entries) == (14, [(0, 0), (1, 6), (2, 12)])
    with pytest.raises(OSError, match="No space"):
        append(log, batch(2), epoch=2)
    disk.heal()
    append(log, batch(2), epoch=2)
    assert store.open(clean=True).epochs.entries == [(0, 0), (1, 6), (2, 12)]


def test_a_log_that_is_left_without_a_segment_says_that_this_does_not_pass(tmp_path: Path) -> None:
    disk = WatchedDisk()
    log = filled(Store(tmp_path, disk, segment_bytes=2 * EACH, preallocate=True))
    disk.room = 0
    with pytest.raises(OSError, match="without a segment") as failed:
        log.restart_at(100)
    assert failed.value.errno == errno.EIO
