"""Leader epochs: the cases of Kafka's LeaderEpochFileCache."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.node.disk import RealDisk
from strandline.storage.epochs import LeaderEpochs
from tests.disks import WatchedDisk

UNDEFINED = (-1, -1)


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    return LeaderEpochs(RealDisk(), f"{tmp_path}/leader-epoch-checkpoint")


def with_entries(epochs: LeaderEpochs, *entries: tuple[int, int]) -> LeaderEpochs:
    for epoch, offset in entries:
        epochs.assign(epoch, offset)
    return epochs


def test_nothing_is_known_of_an_empty_log(epochs: LeaderEpochs) -> None:
    assert epochs.latest_epoch == -1
    assert epochs.end_offset_for(0, 10) == UNDEFINED
    assert epochs.epoch_at(0) == -1


def test_the_latest_epoch_ends_where_the_log_does(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (2, 6))
    assert epochs.end_offset_for(2, 9) == (2, 9)


def test_an_earlier_epoch_ends_where_the_next_begins(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (1, 11), (2, 12), (3, 13))
    assert epochs.end_offset_for(1, 17) == (1, 12)
    assert epochs.end_offset_for(2, 17) == (2, 13)


def test_a_missing_epoch_ends_where_the_largest_below_it_ends(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (0, 10), (1, 13), (4, 17))
    assert epochs.end_offset_for(2, 20) == (1, 17)
    assert epochs.end_offset_for(3, 20) == (1, 17)


def test_an_epoch_before_the_first_ends_where_the_first_begins(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (5, 11), (6, 12), (7, 13))
    assert epochs.end_offset_for(4, 15) == (4, 11)


def test_an_epoch_from_the_future_is_undefined(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (2, 6))
    assert epochs.end_offset_for(3, 9) == UNDEFINED


def test_the_undefined_epoch_is_undefined(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (0, 0))
    assert epochs.end_offset_for(-1, 9) == UNDEFINED


def test_an_epoch_begins_once(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (2, 6), (2, 7))
    assert epochs.entries == [(2, 6)]


def test_entries_that_contradict_a_new_one_are_dropped(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (1, 5), (2, 6), (3, 9))
    epochs.assign(4, 7)
    assert epochs.entries == [(1, 5), (2, 6), (4, 7)]
    epochs.assign(2, 10)
    assert epochs.entries == [(1, 5), (2, 10)]


def test_two_epochs_never_begin_at_the_same_offset(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (0, 0), (1, 0))
    assert epochs.entries == [(1, 0)]


def test_cutting_the_end_keeps_epochs_that_began_before_it(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (2, 6), (3, 8), (4, 11))
    epochs.truncate_from_end(11)
    assert epochs.entries == [(2, 6), (3, 8)]
    epochs.truncate_from_end(9)
    assert epochs.entries == [(2, 6), (3, 8)]
    epochs.truncate_from_end(8)
    assert epochs.entries == [(2, 6)]


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (5, [(2, 6), (3, 8), (4, 11)]),
        (6, [(2, 6), (3, 8), (4, 11)]),
        (7, [(2, 7), (3, 8), (4, 11)]),
        (8, [(3, 8), (4, 11)]),
        (9, [(3, 9), (4, 11)]),
        (15, [(4, 15)]),
    ],
)
def test_cutting_the_start_moves_the_epoch_it_belongs_to(
    epochs: LeaderEpochs, start: int, left: list[tuple[int, int]]
) -> None:
    with_entries(epochs, (2, 6), (3, 8), (4, 11))
    epochs.truncate_from_start(start)
    assert epochs.entries == left


def test_an_offset_belongs_to_the_last_epoch_that_began_at_or_before_it(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (2, 6), (3, 8))
    assert [epochs.epoch_at(offset) for offset in (5, 6, 7, 8, 100)] == [-1, 2, 2, 3, 3]


def test_every_change_is_in_the_file_as_kafka_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    epochs = LeaderEpochs(RealDisk(), str(path))
    with_entries(epochs, (0, 0), (3, 17))
    assert path.read_bytes() == b"0\n2\n0 0\n3 17\n"
    assert LeaderEpochs(RealDisk(), str(path)).entries == [(0, 0), (3, 17)]
    epochs.clear()
    assert path.read_bytes() == b"0\n0\n"


def test_a_change_that_cannot_be_written_has_not_happened(tmp_path: Path) -> None:
    disk = WatchedDisk()
    epochs = LeaderEpochs(disk, f"{tmp_path}/leader-epoch-checkpoint")
    epochs.assign(0, 0)
    disk.room = 0
    with pytest.raises(OSError, match="No space"):
        epochs.assign(1, 5)
    assert epochs.entries == [(0, 0)]
    disk.room = None
    epochs.assign(1, 5)
    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n0 0\n1 5\n"


def test_an_epoch_that_a_leader_begins_counts_before_it_is_written(tmp_path: Path) -> None:
    """A follower with records of epoch 2 has left this log where epoch 1 ended, and must be told so."""
    disk = WatchedDisk()
    epochs = LeaderEpochs(disk, f"{tmp_path}/leader-epoch-checkpoint")
    epochs.assign(1, 0)
    disk.room = 0
    for _ in range(2):
        epochs.begin(3, 5)
    assert epochs.end_offset_for(2, 5) == (1, 5)
    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n1\n1 0\n"
    disk.room = None
    epochs.assign(3, 5)
    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n1 0\n3 5\n"
