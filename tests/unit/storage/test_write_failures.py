"""A write that fails leaves the log as it was (rule 2), wherever in the append it fails."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from strandline.storage.log import Log
from tests.batches import NOW_MS, batch
from tests.disks import WatchedDisk
from tests.unit.storage.logs import Store, append, contents

EACH = len(batch(2))


def picture(store: Store, log: Log) -> object:
    """Everything that an append may change, in memory and on disk."""
    segment = log.active
    files = {
        path.name: path.read_bytes()
        for path in sorted(store.path.iterdir())
        if not path.name.endswith(".tmp")
    }
    return (
        log.log_start_offset,
        log.log_end_offset,
        [(s.base_offset, s.size) for s in log.segments],
        (segment.size, segment.bytes_since_index_entry, segment.first_timestamp),
        (segment.offset_index.contents(), segment.time_index.contents()),
        (segment.max_timestamp, segment.max_timestamp_offset),
        log.epochs.entries,
        files,
    )


@pytest.mark.parametrize(
    ("batches", "index_bytes"),
    [
        pytest.param(3, 0, id="the batch alone"),
        pytest.param(43, 43 * 12, id="and what is due in the time index"),
        pytest.param(64, 64 * 8, id="and what is due in the offset index"),
    ],
)
def test_full_disk_at_any_byte_of_an_append_changes_nothing(
    tmp_path: Path, batches: int, index_bytes: int
) -> None:
    """The first batch has no entry in an index; each of the others has one, and they are written some at a time."""
    for room in [*range(0, EACH, 5), EACH - 1, *range(EACH, EACH + index_bytes, 41)]:
        disk = WatchedDisk()
        store = Store(tmp_path / str(room), disk, index_interval_bytes=0)
        log = store.open()
        for number in range(batches):
            append(log, batch(2, timestamp=NOW_MS + 10 * number))
        before = picture(store, log)
        disk.room = room
        with pytest.raises(OSError, match="No space") as full:
            append(log, batch(2, timestamp=NOW_MS + 1000))
        assert full.value.errno == errno.ENOSPC
        assert picture(store, log) == before
        disk.room = None
        assert append(log, batch(2, timestamp=NOW_MS + 1000)) == 2 * batches
        expected = [(2 * number, 2 * number + 1) for number in range(batches + 1)]
        assert contents(log) == expected
        assert contents(store.open()) == expected
        assert store.notes == ()


@pytest.mark.parametrize("room", [0, 5, 12, 20, 40, 80, 100])
def test_full_disk_while_rolling_leaves_a_log_that_goes_on(tmp_path: Path, room: int) -> None:
    disk = WatchedDisk()
    store = Store(tmp_path, disk, segment_bytes=3 * EACH)
    log = store.open()
    for number in range(3):
        append(log, batch(2, timestamp=NOW_MS + number, producer_id=4, epoch=0, sequence=2 * number))
    disk.room = room
    with pytest.raises(OSError, match="No space"):
        append(log, batch(2, producer_id=4, epoch=0, sequence=6))
    assert contents(log) == [(0, 1), (2, 3), (4, 5)]
    disk.room = None
    for number in range(3, 8):
        append(log, batch(2, timestamp=NOW_MS + number, producer_id=4, epoch=0, sequence=2 * number))
    expected = [(2 * number, 2 * number + 1) for number in range(8)]
    assert contents(log) == expected
    producers = log.producers.entries()
    log = store.open()
    assert contents(log) == expected
    assert log.producers.entries() == producers
    assert store.notes == ()
    assert log.offset_by_time(NOW_MS + 7, 0) is not None


def test_full_disk_while_preallocating_leaves_a_log_that_goes_on(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = Store(tmp_path, disk, segment_bytes=3 * EACH, preallocate=True)
    log = store.open()
    for _ in range(3):
        append(log, batch(2))
    disk.room = 2 * EACH
    with pytest.raises(OSError, match="No space"):
        append(log, batch(2))
    disk.room = None
    append(log, batch(2))
    assert contents(log) == [(0, 1), (2, 3), (4, 5), (6, 7)]


@pytest.mark.parametrize("is_elected", [True, False])
def test_full_disk_when_an_epoch_begins_refuses_the_append(tmp_path: Path, is_elected: bool) -> None:
    disk = WatchedDisk()
    store = Store(tmp_path, disk)
    log = store.open()
    append(log, batch(1), epoch=0)
    disk.room = 3
    if is_elected:
        log.epochs.begin(1, 1)
    with pytest.raises(OSError, match="No space"):
        append(log, batch(1), epoch=1)
    disk.room = None
    append(log, batch(1), epoch=1)
    log.close()
    assert store.open(clean=True).epochs.entries == [(0, 0), (1, 1)]


def test_an_error_while_cutting_back_is_raised_and_not_hidden(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = Store(tmp_path, disk)
    log = store.open()
    append(log, batch(1))
    disk.room = 5
    disk.fail("truncate", ".log")
    with pytest.raises(OSError, match="Input/output") as failed:
        append(log, batch(1))
    assert failed.value.errno == errno.EIO, (
        "the caller takes the directory offline for this, not for a full disk"
    )
    assert log.log_end_offset == 1


def test_the_recovery_point_moves_only_when_the_sync_is_done(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = Store(tmp_path, disk, segment_bytes=3 * EACH)
    log = store.open()
    for _ in range(4):
        append(log, batch(2))
    work = log.flush_work()
    append(log, batch(2))
    assert log.recovery_point == 0
    disk.syncs.clear()
    work.run(disk)
    assert log.recovery_point == 0
    log.flushed(work.end_offset)
    assert log.recovery_point == 8, "what was appended during the sync is not on the device"
    for name in (
        "00000000000000000000.log",
        "00000000000000000006.log",
        "00000000000000000006.snapshot",
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
    ):
        assert f"{tmp_path}/{name}" in disk.syncs
    assert str(tmp_path) in disk.syncs


def test_a_failed_sync_is_an_error_of_the_work(tmp_path: Path) -> None:
    disk = WatchedDisk()
    log = Store(tmp_path, disk).open()
    append(log, batch(1))
    disk.fail("sync", ".log")
    with pytest.raises(OSError, match="Input/output"):
        log.flush_work().run(disk)


def test_a_flush_survives_segments_that_go_meanwhile(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_bytes=EACH)
    log = store.open()
    for _ in range(4):
        append(log, batch(2))
    work = log.flush_work()
    log.drop_segments(log.segments[:2])
    work.run(store.disk)


def test_only_what_is_not_flushed_is_synced(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = Store(tmp_path, disk, segment_bytes=EACH)
    log = store.open()
    for _ in range(5):
        append(log, batch(2))
    work = log.flush_work()
    work.run(disk)
    log.flushed(work.end_offset)
    append(log, batch(2))
    paths = log.flush_work().paths
    assert f"{tmp_path}/00000000000000000010.log" in paths
    assert f"{tmp_path}/00000000000000000004.log" not in paths
