"""Which transactions are open in a partition, and how far that lets a read_committed reader see.

1. A transaction is open from its first batch to its marker. The last stable offset is the first offset of the earliest
   open transaction, and never above the high watermark.
2. A transaction whose marker is not below the high watermark yet counts as open: a failover could take the marker back.
3. A batch may open a transaction only if the coordinator knows that the partition is in it (KIP-890). The leader asks
   the coordinator, which takes a while. If the transaction's marker is appended meanwhile, the coordinator's response
   says nothing about the next transaction. A guard stands in the partition from the request on, and the marker removes
   it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

# Limits how many requests to coordinators one partition remembers, under way or completed a moment ago.
GUARDS_MAX: Final = 10_000


class VerificationGuard:
    """One request to the coordinator for the state of a transaction."""

    __slots__ = ("begins_with_zero", "epoch", "lowest_sequence")

    def __init__(self, epoch: int, lowest_sequence: int, begins_with_zero: bool) -> None:
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence
        self.begins_with_zero = begins_with_zero


class OpenTransactions:
    """The open transactions of one partition, and the guards of those that may begin."""

    def __init__(self) -> None:
        # First offsets by producer, the earliest first: they are opened in the order of the log.
        self._open: dict[int, int] = {}
        # First offset and marker of those whose marker a failover could take back.
        self._ended: deque[tuple[int, int]] = deque()
        self._guards: dict[int, VerificationGuard] = {}

    def open(self, producer_id: int, first_offset: int) -> None:
        assert producer_id not in self._open
        self._open[producer_id] = first_offset

    def end(self, producer_id: int, marker_offset: int) -> None:
        first_offset = self._open.pop(producer_id, None)
        if first_offset is not None:
            self._ended.append((first_offset, marker_offset))

    def stable_without(self, producer_id: int, marker_offset: int) -> int:
        """Returns the last stable offset as of this producer's marker, without regard to the high watermark."""
        for other, first_offset in self._open.items():
            if other != producer_id:
                return first_offset
        return marker_offset + 1

    def last_stable_offset(self, high_watermark: int) -> int:
        if not self._open and not self._ended:
            return high_watermark
        while self._ended and self._ended[0][1] < high_watermark:
            self._ended.popleft()
        stable = min((first for first, _ in self._ended), default=high_watermark)
        if self._open:
            stable = min(stable, next(iter(self._open.values())))
        return min(stable, high_watermark)

    # Guards

    def begin_check(
        self, producer_id: int, epoch: int, sequence: int, *, begins_with_zero: bool
    ) -> VerificationGuard:
        guard = self._guards.get(producer_id)
        if guard is None or guard.epoch < epoch:
            guard = self._guards[producer_id] = VerificationGuard(epoch, sequence, begins_with_zero)
            if len(self._guards) > GUARDS_MAX:
                del self._guards[next(iter(self._guards))]
        elif guard.epoch == epoch:
            guard.lowest_sequence = min(guard.lowest_sequence, sequence)
        return guard

    def holds(self, producer_id: int, guard: VerificationGuard | None) -> bool:
        return guard is not None and self._guards.get(producer_id) is guard

    def take_guards(self, other: OpenTransactions) -> None:
        """Takes over the guards of another copy of the same partition."""
        self._guards = other._guards

    def end_guard(self, producer_id: int, marker_epoch: int, transaction_version: int) -> None:
        """Removes the guard of the transaction that a marker ends."""
        guard = self._guards.get(producer_id)
        if guard is None:
            return
        # From version 2 on a marker has the epoch of the *next* transaction, whose first batch may be waiting here
        # already: the producer gets the response to EndTxn before every partition has the marker.
        is_of_the_next = transaction_version >= 2 and guard.epoch >= marker_epoch
        if not is_of_the_next:
            del self._guards[producer_id]

    def forget_guard(self, producer_id: int) -> None:
        self._guards.pop(producer_id, None)
