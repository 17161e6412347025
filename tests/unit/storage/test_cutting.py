"""Records leave a log at either end: deletion of the oldest segments, and truncation."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.batches import NOW_MS, batch
from tests.disks import WatchedDisk
from tests.unit.storage.logs import BATCH_BYTES, Store, append, contents, filled, two_batches_each


def test_dropped_segments_are_renamed_and_the_log_starts_after_them(tmp_path: Path) -> None:
    store = two_batches_each(tmp_path)
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


def test_a_response_under_way_still_reads_from_a_dropped_segment(tmp_path: Path) -> None:
    log = filled(two_batches_each(tmp_path))
    region = log.read(0, 20, 1 << 20, whole_first_batch=True)
    assert region is not None
    log.drop_segments(log.segments[:2])
    assert len(region.file.read_at(region.position, region.size)) == 2 * BATCH_BYTES


def test_only_the_oldest_segments_are_dropped_and_one_stays(tmp_path: Path) -> None:
    log = filled(two_batches_each(tmp_path))
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
def test_truncation_drops_the_batch_that_holds_the_offset_and_all_after_it(
    tmp_path: Path, offset: int
) -> None:
    store = two_batches_each(tmp_path, index_interval_bytes=0)
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
    store = two_batches_each(tmp_path)
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


def test_the_size_of_a_log_is_right_whatever_was_done_to_it(tmp_path: Path) -> None:
    log = filled(two_batches_each(tmp_path))

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


def test_changes_of_a_log_whose_directory_was_renamed_are_made_there(tmp_path: Path) -> None:
    """A topic of the same name may have been made again, and has the old name."""
    store = two_batches_each(tmp_path / "t-0", index_interval_bytes=0)
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
    store = Store(tmp_path, disk, segment_bytes=2 * BATCH_BYTES)
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
    log = filled(Store(tmp_path, disk, segment_bytes=2 * BATCH_BYTES, preallocate=True))
    disk.room = 0
    with pytest.raises(OSError, match="without a segment") as failed:
        log.restart_at(100)
    assert failed.value.errno == errno.EIO
