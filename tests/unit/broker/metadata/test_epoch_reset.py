"""Epochs of a metadata log are lowered in every file, in their order, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strandline.broker.metadata.epoch_reset import CannotReset, EpochReset, lowered, plan_reset, reset
from strandline.broker.metadata.raft_log import render_snapshot, snapshot_name
from strandline.node.disk import RealDisk
from strandline.quorum.epochs import EPOCH_MAX
from strandline.quorum.messages import OffsetAndEpoch
from strandline.storage.checkpoints import parse_epochs, render_epochs
from strandline.wire.record_batch import Record, build_batch, checksum, headers_in

HIGH = EPOCH_MAX - 1
LOG = "00000000000000000000.log"


def batch(offset: int, epoch: int) -> bytes:
    return build_batch([Record(offset, 0, None, b"x")], base_offset=offset, leader_epoch=epoch)


def quorum_directory(home: Path, epochs: list[int], state_epoch: int) -> Path:
    directory = home / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    (directory / LOG).write_bytes(b"".join(batch(offset, epoch) for offset, epoch in enumerate(epochs)))
    (directory / snapshot_name(OffsetAndEpoch(1, epochs[0]))).write_bytes(render_snapshot((), 0, epochs[0]))
    (directory / snapshot_name(OffsetAndEpoch(2, epochs[1]))).write_bytes(render_snapshot((), 0, epochs[1]))
    starts = {epoch: epochs.index(epoch) for epoch in epochs}
    (directory / "leader-epoch-checkpoint").write_bytes(render_epochs(list(starts.items())))
    state = {"leaderId": 1, "leaderEpoch": state_epoch, "votedId": 1, "data_version": 1}
    (directory / "quorum-state").write_text(json.dumps(state))
    return directory


def epochs_of(path: Path) -> list[int]:
    data = path.read_bytes()
    for position, header in headers_in(data):
        assert checksum(memoryview(data)[position : position + header.size]) == header.crc
    return [header.leader_epoch for _, header in headers_in(data)]


def test_every_file_has_the_lower_epochs(tmp_path: Path) -> None:
    directory = quorum_directory(tmp_path, [3, HIGH, HIGH, EPOCH_MAX], EPOCH_MAX)
    expected = EpochReset(EPOCH_MAX, lowered(EPOCH_MAX), 3 + 2)
    assert plan_reset(RealDisk(), str(tmp_path)) == expected
    assert epochs_of(directory / LOG) == [3, HIGH, HIGH, EPOCH_MAX], "a plan changes nothing"
    assert reset(RealDisk(), str(tmp_path)) == expected
    assert epochs_of(directory / LOG) == [3, lowered(HIGH), lowered(HIGH), lowered(EPOCH_MAX)]
    assert sorted(path.name for path in directory.glob("*.checkpoint")) == [
        snapshot_name(OffsetAndEpoch(1, 3)),
        snapshot_name(OffsetAndEpoch(2, lowered(HIGH))),
    ]
    for path in directory.glob("*.checkpoint"):
        assert set(epochs_of(path)) <= {3, lowered(HIGH)}
    assert parse_epochs((directory / "leader-epoch-checkpoint").read_bytes()) == [
        (3, 0),
        (lowered(HIGH), 1),
        (lowered(EPOCH_MAX), 3),
    ]
    state = json.loads((directory / "quorum-state").read_text())
    assert state == {"leaderId": 1, "leaderEpoch": lowered(EPOCH_MAX), "votedId": 1, "data_version": 1}
    again = reset(RealDisk(), str(tmp_path))
    assert again == EpochReset(lowered(EPOCH_MAX), lowered(EPOCH_MAX), 0), "a second time changes nothing"


def test_an_epoch_beyond_what_can_be_sent_is_lowered_too(tmp_path: Path) -> None:
    """As version 0.1.0 kept it before it died."""
    directory = quorum_directory(tmp_path, [3, 4], EPOCH_MAX + 1)
    reset(RealDisk(), str(tmp_path))
    assert (
        json.loads((directory / "quorum-state").read_text())["leaderEpoch"]
        == lowered(EPOCH_MAX + 1)
        < 1 << 22
    )


def test_epochs_whose_order_would_change_are_left(tmp_path: Path) -> None:
    directory = quorum_directory(tmp_path, [1 << 29, HIGH], HIGH)
    with pytest.raises(CannotReset, match="change their order"):
        reset(RealDisk(), str(tmp_path))
    assert epochs_of(directory / LOG) == [1 << 29, HIGH]


@pytest.mark.parametrize("state", [None, "junk", "{}"])
def test_a_directory_without_a_readable_state_is_refused(tmp_path: Path, state: str | None) -> None:
    directory = quorum_directory(tmp_path, [1, 2], 2)
    (directory / "quorum-state").unlink()
    if state is not None:
        (directory / "quorum-state").write_text(state)
    with pytest.raises(CannotReset, match="quorum-state"):
        plan_reset(RealDisk(), str(tmp_path))
