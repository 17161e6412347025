"""The offsets at which the epochs of a log began: enough to find where two logs diverge (Raft §5.3, KIP-595)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strandline.quorum.messages import OffsetAndEpoch

# The largest epoch that the protocol and quorum-state can hold.
EPOCH_MAX: Final = 0x7FFF_FFFF
# An epoch up to here leaves room for a million elections. No cluster gets there by elections alone: one each second
# takes 68 years.
EPOCH_TRUSTED_MAX: Final = EPOCH_MAX - (1 << 20)
# A higher epoch of a peer is believed only if it is at most so far from this node's own that a few elections explain
# it.
EPOCH_STEP_MAX: Final = 16


def is_believable(own: int, epoch: int) -> bool:
    """True if a peer's epoch may be taken over: otherwise one forged request could use up all epochs for good."""
    return epoch <= EPOCH_TRUSTED_MAX or epoch <= min(own + EPOCH_STEP_MAX, EPOCH_MAX)


def last_epoch(epochs: Sequence[tuple[int, int]]) -> int:
    return epochs[-1][0] if epochs else 0


def end_of(epochs: Sequence[tuple[int, int]], end_offset: int, epoch: int) -> OffsetAndEpoch | None:
    """Returns the largest epoch at or below `epoch` in the log, and where it ended; None if there is none."""
    end_of_epoch: OffsetAndEpoch | None = None
    for number, (known, _) in enumerate(epochs):
        if known > epoch:
            break
        end = epochs[number + 1][1] if number + 1 < len(epochs) else end_offset
        end_of_epoch = OffsetAndEpoch(end, known)
    return end_of_epoch


def diverging_point(
    epochs: Sequence[tuple[int, int]],
    start_offset: int,
    end_offset: int,
    fetch_offset: int,
    last_fetched_epoch: int,
) -> OffsetAndEpoch | None:
    """Returns where a replica must truncate before it can fetch from `fetch_offset`; None if its log is a prefix of
    this."""
    if fetch_offset == start_offset and last_fetched_epoch <= 0 and start_offset == 0:
        return None
    end = end_of(epochs, end_offset, last_fetched_epoch)
    if end is None:
        return OffsetAndEpoch(start_offset, 0)
    if end.epoch != last_fetched_epoch or end.offset < fetch_offset:
        return end
    return None


def is_up_to_date(candidate: OffsetAndEpoch, own: OffsetAndEpoch) -> bool:
    """Compares two logs by Raft §5.4.1: the later last epoch wins; with equal epochs the longer log."""
    return candidate.epoch > own.epoch or (candidate.epoch == own.epoch and candidate.offset >= own.offset)


def is_behind(last: OffsetAndEpoch, snapshot: OffsetAndEpoch) -> bool:
    """Returns True if a log with this end lacks records of a snapshot: it is shorter, or diverged from the committed
    log."""
    return last.offset < snapshot.offset or last.epoch < snapshot.epoch
