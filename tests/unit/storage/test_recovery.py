"""Recovery: the state that a start makes of the files that an end left."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.partition.producers import Producers
from strandline.storage.log import Log
from strandline.storage.segment import DamagedSegment
from tests.batches import NOW_MS, batch, header, resealed
from tests.disks import WatchedDisk
from tests.unit.storage.logs import Store, append, contents

EACH = len(batch(2))


def filled(store: Store, count: int = 10) -> Log:
    log = store.open()
    for number in range(count):
        data = batch(2, timestamp=NOW_MS + 10 * number, producer_id=7, epoch=0, sequence=2 * number)
        append(log, data, epoch=number // 4)
    return log


def whole(count: int) -> list[tuple[int, int]]:
    return [(2 * number, 2 * number + 1) for number in range(count)]


def entries(log: Log) -> object:
    return log.producers.entries()


def test_whole_log_comes_back_as_it_was(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_bytes=4 * EACH, index_interval_bytes=EACH)
    log = filled(store)
    before = entries(log), log.epochs.entries, contents(log), store.file(0, ".index").read_bytes()
    for _ in range(2):
        log = store.open()
        after = entries(log), log.epochs.entries, contents(log), store.file(0, ".index").read_bytes()
        assert after == before
        assert store.notes == ()


def test_recovery_keeps_everything_before_the_damage_and_nothing_behind_it(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_bytes=4 * EACH)
    filled(store)
    assert store.names(".log") == [0, 8, 16]
    damage(store.file(8), 2 * EACH + 30)
    log = store.open()
    assert contents(log) == whole(6)
    assert store.names(".log") == [0, 8]
    assert log.log_end_offset == 12
    assert len(store.notes) == 2
    assert log.epochs.entries == [(0, 0), (1, 8)]


def damage(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(bytes(data))


def test_producers_after_a_cut_are_those_of_the_batches_that_are_left(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_bytes=4 * EACH)
    filled(store)
    damage(store.file(8), 2 * EACH + 30)
    expected = Producers()
    for number in range(6):
        data = batch(2, timestamp=NOW_MS + 10 * number, producer_id=7, epoch=0, sequence=2 * number)
        expected.appended(header(data), 2 * number)
    assert entries(store.open()) == expected.entries()


def test_flushed_segments_are_neither_read_nor_touched(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = Store(tmp_path, disk, index_interval_bytes=4096)
    log = store.open()
    for _ in range(1900):
        append(log, batch(1, size=300))
    recovery_point = log.flush_work().end_offset
    for _ in range(100):
        append(log, batch(1, size=300))
    total = log.size
    disk.reads.clear()
    log = store.open(recovery_point=recovery_point)
    assert log.log_end_offset == 2000
    # From the last index entry below the recovery point on; producers come from headers, and here there are none.
    assert disk.bytes_read(".log") < total // 4
    disk.reads.clear()
    store.open(recovery_point=0)
    assert disk.bytes_read(".log") >= total


def test_clean_start_reads_only_the_tail(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = Store(tmp_path, disk, index_interval_bytes=4096)
    log = store.open()
    for number in range(2000):
        append(log, batch(1, size=300, producer_id=1, epoch=0, sequence=number))
    log.close()
    disk.reads.clear()
    log = store.open(clean=True)
    assert log.log_end_offset == 2000
    assert disk.bytes_read(".log") < 40_000
    assert store.notes == ()


def test_damage_below_the_recovery_point_cuts_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_bytes=4 * EACH)
    filled(store)
    damage(store.file(0), EACH + 40)
    log = store.open(recovery_point=16)
    assert log.log_end_offset == 20
    assert store.names(".log") == [0, 8, 16]
    assert store.file(0).stat().st_size == 4 * EACH


@pytest.mark.parametrize("clean", [True, False])
def test_damage_to_what_was_flushed_costs_nothing_behind_it(tmp_path: Path, clean: bool) -> None:
    """It is no torn end: a reader of the damaged batch gets an error, and all others find the acknowledged records."""
    store = Store(tmp_path)
    log = filled(store)
    end = log.log_end_offset
    log.close()
    damage(store.file(0), 8 * EACH + 80)
    log = store.open(clean=clean, recovery_point=end)
    assert log.log_end_offset == end
    assert store.notes == ()
    with pytest.raises(DamagedSegment):
        contents(log)
    damage(store.file(0), 8 * EACH + 80)
    assert contents(log) == whole(10)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-3]),
        lambda path: path.write_bytes(b"\xff" * path.stat().st_size),
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
        lambda path: path.write_bytes(path.read_bytes()[:-4] + struct.pack(">i", EACH + 5)),
        lambda path: path.write_bytes(path.read_bytes()[:-4] + struct.pack(">i", 3 * EACH)),
        lambda path: path.write_bytes(path.read_bytes()[:-4] + struct.pack(">i", -EACH)),
        lambda path: path.write_bytes(
            path.read_bytes()[:4] + struct.pack(">i", 3 * EACH) + path.read_bytes()[8:]
        ),
        lambda path: path.unlink(),
    ],
    ids=("cut", "ones", "zeros", "inside a batch", "another batch", "negative", "over batches", "gone"),
)
@pytest.mark.parametrize("base_offset", [0, 8], ids=("closed", "active"))
def test_a_damaged_offset_index_costs_no_record(
    tmp_path: Path, clean: bool, spoil: Callable[[Path], object], base_offset: int
) -> None:
    """An index is only an accelerator: whatever it says, the log is read as it is."""
    store = Store(tmp_path, segment_bytes=4 * EACH, index_interval_bytes=0)
    filled(store, 8).close()
    spoil(store.file(base_offset, ".index"))
    log = store.open(clean=clean, recovery_point=16)
    assert contents(log) == whole(8)
    for offset in range(16):
        region = log.read(offset, 16, 1, whole_first_batch=True)
        assert region is not None
        assert region.position % EACH == 0
        assert region.position // EACH == offset // 2 % 4


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("base_offset", [0, 8], ids=("closed", "active"))
@pytest.mark.parametrize("left", [None, 5], ids=("gone", "cut"))
def test_a_time_index_that_is_gone_or_cut_is_made_again(
    tmp_path: Path, clean: bool, base_offset: int, left: int | None
) -> None:
    store = Store(tmp_path, segment_bytes=4 * EACH, index_interval_bytes=0)
    filled(store, 8).close()
    path = store.file(base_offset, ".timeindex")
    if left is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:left])
    log = store.open(clean=clean, recovery_point=16)
    for number in range(8):
        assert log.offset_by_time(NOW_MS + 10 * number, 0) == (NOW_MS + 10 * number, 2 * number)


def test_rebuilding_the_index_of_a_closed_segment_never_cuts_it(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_bytes=4 * EACH, index_interval_bytes=0)
    filled(store, 8).close()
    store.file(0, ".index").unlink()
    damage(store.file(0), EACH + 10)  # the length of the second batch
    log = store.open(clean=True)
    assert store.file(0).stat().st_size == 4 * EACH
    assert log.log_end_offset == 16


@pytest.mark.parametrize("clean", [True, False])
def test_malformed_epochs_are_rebuilt_from_the_log(tmp_path: Path, clean: bool) -> None:
    store = Store(tmp_path, segment_bytes=4 * EACH)
    log = filled(store)
    expected = log.epochs.entries
    log.close()
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"0\n7\n1 1\n")
    assert store.open(clean=clean, recovery_point=20).epochs.entries == expected


def test_a_corrupt_snapshot_is_replaced_by_an_older_one_and_the_log_behind_it(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_bytes=4 * EACH)
    log = filled(store)
    expected = entries(log)
    log.close()
    assert store.names(".snapshot") == [8, 16, 20]
    damage(store.file(20, ".snapshot"), 12)
    damage(store.file(16, ".snapshot"), 3)
    log = store.open(clean=True)
    assert entries(log) == expected
    assert len(store.notes) == 2
    assert store.names(".snapshot") == [8]


def test_without_any_snapshot_producers_come_from_the_whole_log(tmp_path: Path) -> None:
    store = Store(tmp_path, segment_bytes=4 * EACH)
    log = filled(store)
    expected = entries(log)
    for path in tmp_path.glob("*.snapshot"):
        path.unlink()
    assert entries(store.open()) == expected


def test_a_snapshot_from_beyond_the_end_is_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    filled(store).close()
    store.file(0).write_bytes(store.file(0).read_bytes()[: 3 * EACH + 7])
    log = store.open()
    assert store.names(".snapshot") == []
    assert entries(log)[0].last_sequence == 5  # type: ignore[index]


def test_leftovers_of_deletion_and_of_interrupted_writes_are_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    filled(store)
    for name in (
        "00000000000000000009.log.deleted",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000000.log.cleaned",
    ):
        (tmp_path / name).write_bytes(b"x")
    store.open()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
    ]


def test_log_that_ends_before_its_start_begins_again_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    filled(store, 3)
    log = store.open(start_offset=50)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)
    assert append(log, batch(1)) == 50


@pytest.mark.parametrize(
    "tail",
    [b"\x00", bytes(60), bytes(61), bytes(5000), batch(2)[:-1], b"\xff" * 200, resealed(batch(2), magic=1)],
    ids=("a byte", "almost a header", "a header of zeros", "zeros", "a torn batch", "ones", "another magic"),
)
def test_a_bad_tail_is_cut(tmp_path: Path, tail: bytes) -> None:
    store = Store(tmp_path)
    filled(store, 3)
    with store.file(0).open("ab") as file:
        file.write(tail)
    log = store.open()
    assert contents(log) == whole(3)
    assert store.file(0).stat().st_size == 3 * EACH
    assert len(store.notes) == 1
    append(log, batch(2))
    assert contents(log) == whole(4)


def test_an_offset_that_no_segment_can_hold_is_a_bad_tail(tmp_path: Path) -> None:
    store = Store(tmp_path, index_interval_bytes=0)
    filled(store, 3)
    data = bytearray(store.file(0).read_bytes())
    data[2 * EACH + 1] = 0x40
    store.file(0).write_bytes(bytes(data))
    assert contents(store.open()) == whole(2)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("is_damaged", [False, True])
def test_epochs_whose_file_lost_its_contents_are_found_in_the_log(
    tmp_path: Path, clean: bool, is_damaged: bool
) -> None:
    """A power cut can do that, and with fewer epochs a diverging follower would not be seen to diverge."""
    store = Store(tmp_path, segment_bytes=4 * EACH)
    log = filled(store)
    expected, end = log.epochs.entries, log.log_end_offset
    log.close()
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"")
    if is_damaged:
        damage(store.file(8), 2 * EACH + 80)
    log = store.open(clean=clean, recovery_point=end)
    assert (log.epochs.entries, log.log_end_offset) == (expected, end)
    assert any("leader-epoch-checkpoint" in note for note in store.notes)
