"""Makes room for elections in a metadata quorum whose epochs are used up, on the files of a stopped node.

Epochs only matter in their order. One forged Vote could raise the epoch of a cluster of version 0.1.0 (and of Apache
Kafka 4.3) almost to the maximum, after which no election was possible any more. A reset subtracts the same number from
every epoch above a bound: in the batches of the log and of snapshots, in the names of snapshots, in the leader epoch
checkpoint and in quorum-state. It does the same on every node, so that their logs stay comparable; it must be done on
all of them, brokers too, before any is started.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from struct import Struct
from typing import Any, Final, NamedTuple

from strandline.broker.metadata.raft_log import PARTITION, QUORUM_STATE, parse_snapshot_name, snapshot_name
from strandline.ports.disk import Disk
from strandline.quorum.messages import OffsetAndEpoch
from strandline.storage import checkpoints, names
from strandline.wire.record_batch import headers_in

# Higher epochs cannot come from elections.
_REAL_MAX: Final = 1 << 30
# The largest epoch becomes 2 ** 21 - 1, which leaves enough room for elections.
_SUBTRACTED: Final = (1 << 31) - (1 << 21)
# The position in the header of a record batch; the CRC does not cover it.
_LEADER_EPOCH_AT: Final = 12
_EPOCH: Final = Struct(">i")


class CannotReset(Exception):
    """The epochs of this log cannot be lowered, with the reason."""


class EpochReset(NamedTuple):
    """The changes of a reset: the epoch in quorum-state before and after, and how many batches get another epoch."""

    old_epoch: int
    new_epoch: int
    batches: int


def lowered(epoch: int) -> int:
    return epoch if epoch <= _REAL_MAX else epoch - _SUBTRACTED


def plan_reset(disk: Disk, data: str) -> EpochReset:
    """Returns the changes that a reset of the metadata log in the log directory `data` would make; raises
    CannotReset."""
    directory = _directory(disk, data)
    state = _state(disk, directory)
    old = int(state["leaderEpoch"])
    found = [epoch for path in _batch_files(disk, directory) for _, epoch in _epochs_in(disk.read(path))]
    order = sorted({*found, old})
    if [lowered(epoch) for epoch in order] != sorted({lowered(epoch) for epoch in order}):
        raise CannotReset(
            f"{directory} has epochs on both sides of {_REAL_MAX} that would change their order: {order[-5:]}"
        )
    return EpochReset(old, lowered(old), sum(lowered(epoch) != epoch for epoch in found))


def reset(disk: Disk, data: str) -> EpochReset:
    """Lowers all epochs. An interrupted reset is done again from the beginning: lowered epochs stay as they are."""
    plan = plan_reset(disk, data)
    directory = _directory(disk, data)
    for path in _batch_files(disk, directory):
        _lower_batches(disk, path)
    for name in disk.names(directory):
        snapshot = parse_snapshot_name(name)
        if snapshot is not None and lowered(snapshot.epoch) != snapshot.epoch:
            lower = snapshot_name(OffsetAndEpoch(snapshot.offset, lowered(snapshot.epoch)))
            disk.rename(f"{directory}/{name}", f"{directory}/{lower}")
    epochs = f"{directory}/{names.LEADER_EPOCHS}"
    if disk.exists(epochs):
        entries = [(lowered(epoch), offset) for epoch, offset in checkpoints.parse_epochs(disk.read(epochs))]
        disk.write_whole(epochs, checkpoints.render_epochs(entries))
    state = _state(disk, directory)
    state["leaderEpoch"] = lowered(int(state["leaderEpoch"]))
    disk.write_whole(f"{directory}/{QUORUM_STATE}", json.dumps(state, separators=(",", ":")).encode())
    disk.sync_directory(directory)
    return plan


def _directory(disk: Disk, data: str) -> str:
    directory = f"{data}/{names.partition_directory(PARTITION)}"
    if not disk.exists(f"{directory}/{QUORUM_STATE}"):
        raise CannotReset(
            f"{directory} has no {QUORUM_STATE}: name the directory with the metadata log of a node"
        )
    return directory


def _state(disk: Disk, directory: str) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads(disk.read(f"{directory}/{QUORUM_STATE}"))
        int(state["leaderEpoch"])
    except (ValueError, KeyError, TypeError) as error:
        raise CannotReset(f"{directory}/{QUORUM_STATE} cannot be read: {error!r}") from error
    return state


def _batch_files(disk: Disk, directory: str) -> list[str]:
    return [
        f"{directory}/{name}"
        for name in disk.names(directory)
        if name.endswith(names.LOG) or parse_snapshot_name(name) is not None
    ]


def _epochs_in(data: bytes) -> Iterator[tuple[int, int]]:
    """Yields position and epoch of each batch."""
    for position, header in headers_in(data):
        yield position, header.leader_epoch


def _lower_batches(disk: Disk, path: str) -> None:
    changes = [
        (position, lowered(epoch))
        for position, epoch in _epochs_in(disk.read(path))
        if lowered(epoch) != epoch
    ]
    if not changes:
        return
    file = disk.open(path)
    try:
        for position, epoch in changes:
            file.write_at(position + _LEADER_EPOCH_AT, [_EPOCH.pack(epoch)])
        file.sync()
    finally:
        file.close()
