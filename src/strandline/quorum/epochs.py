"""Where each epoch of the log began: enough to say how two logs differ (Raft §5.3, KIP-595)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strandline.quorum.messages import OffsetAndEpoch

# The largest that the protocol and quorum-state can hold.
EPOCH_MAX: Final = 0x7FFF_FFFF
# An epoch up to here leaves room for a million elections. No cluster gets there by elections alone: one a second takes
# 68 years.
EPOCH_TRUSTED_MAX: Final = EPOCH_MAX - (1 << 20)
# Beyond it a peer's epoch is believed only if it is so close to one's own that a few elections explain it.
EPOCH_STEP_MAX: Final = 16


def is_believable(own: int, epoch: int) -> bool:
    """True if a peer's epoch may be taken over: otherwise one forged request could use up all epochs for good."""
    return epoch <= EPOCH_TRUSTED_MAX or epoch <= min(own + EPOCH_STEP_MAX, EPOCH_MAX)


def last_epoch(epochs: Sequence[tuple[int, int]]) -> int:
    return epochs[-1][0] if epochs else 0


def end_of(epochs: Sequence[tuple[int, int]], end_offset: int, epoch: int) -> OffsetAndEpoch | None:
    """The largest epoch at or below `epoch` that the log has, and where it ended; None if the log has none such."""
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
    """Where a replica must go back to before it can go on from `fetch_offset`; None if its log is a prefix of this."""
    if fetch_offset == start_offset and last_fetched_epoch <= 0 and start_offset == 0:
        return None
    end = end_of(epochs, end_offset, last_fetched_epoch)
    if end is None:
        return OffsetAndEpoch(start_offset, 0)
    if end.epoch != last_fetched_epoch or end.offset < fetch_offset:
        return end
    return None


def is_up_to_date(candidate: OffsetAndEpoch, own: OffsetAndEpoch) -> bool:
    """Raft §5.4.1: the later last epoch wins; with equal ones the longer log."""
    return candidate.epoch > own.epoch or (candidate.epoch == own.epoch and candidate.offset >= own.offset)


def is_behind(last: OffsetAndEpoch, snapshot: OffsetAndEpoch) -> bool:
    """Whether a log that ends so lacks what is in a snapshot: it is shorter, or has left the committed log before."""
    return last.offset < snapshot.offset or last.epoch < snapshot.epoch
