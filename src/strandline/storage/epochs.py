"""The offsets at which leader epochs began (KIP-101, KIP-279), by which followers truncate after a leader change."""

from __future__ import annotations

from strandline.ports.disk import Disk
from strandline.storage import checkpoints

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """Pairs of epoch and start offset, both strictly ascending, which are written to the checkpoint on every change.

    A leader's own epoch is in the list from the moment it begins: otherwise the leader would not notice that the log of
    a follower with records of an epoch in between has diverged. It is written to the checkpoint only before its first
    record, because a node may begin to lead thousands of partitions at once, and most of them get no record soon.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self._note(checkpoints.parse_epochs(disk.read(path)) if disk.exists(path) else [], is_saved=True)

    def _note(self, entries: list[tuple[int, int]], *, is_saved: bool) -> None:
        self.entries = entries
        self.latest_epoch = entries[-1][0] if entries else UNDEFINED_EPOCH  # read at each append
        self.is_saved = is_saved

    def assign(self, epoch: int, start_offset: int) -> None:
        """Notes that `epoch` began at `start_offset`; entries that contradict it are dropped."""
        if self.latest_epoch == epoch:
            if not self.is_saved:
                self._set(self.entries)
        elif epoch >= 0:
            self._set(self._with(epoch, start_offset))

    def begin(self, epoch: int, start_offset: int) -> None:
        """Notes the epoch that this node leads; it is written before its first record is appended."""
        if self.latest_epoch != epoch and epoch >= 0:
            self._have(self._with(epoch, start_offset))

    def _with(self, epoch: int, start_offset: int) -> list[tuple[int, int]]:
        earlier = [(e, o) for e, o in self.entries if e < epoch and o < start_offset]
        return [*earlier, (epoch, start_offset)]

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Returns the largest epoch at or below `epoch` and where it ended; both are undefined if there is none."""
        if epoch == UNDEFINED_EPOCH or not self.entries:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.entries[-1][0]:
            return epoch, log_end_offset
        later = [(e, o) for e, o in self.entries if e > epoch]
        if not later:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET  # an epoch from the future
        earlier = [e for e, _ in self.entries if e <= epoch]
        # Epochs before the first are not known: the requested one ended where the first begins.
        return (earlier[-1] if earlier else epoch), later[0][1]

    def epoch_at(self, offset: int) -> int:
        latest = UNDEFINED_EPOCH
        for epoch, start in self.entries:
            if start > offset:
                break
            latest = epoch
        return latest

    def truncate_from_end(self, end_offset: int) -> None:
        """Forgets the epochs from `end_offset` on, because the log was truncated. They are forgotten even if writing
        that fails and raises."""
        earlier = [(e, o) for e, o in self.entries if o < end_offset]
        if len(earlier) != len(self.entries):
            self._have(earlier)
            self._set(earlier)

    def truncate_from_start(self, start_offset: int) -> None:
        """Drops epochs before the one that `start_offset` belongs to, which then begins there."""
        before = [(e, o) for e, o in self.entries if o <= start_offset]
        if before and (len(before) > 1 or before[0][1] < start_offset):
            after = [(e, o) for e, o in self.entries if o > start_offset]
            self._set([(before[-1][0], start_offset), *after])

    def clear(self) -> None:
        """Drops all epochs, for a log that begins again."""
        if self.entries:
            self._have([])
            self._set([])

    def _have(self, entries: list[tuple[int, int]]) -> None:
        """Takes these entries; they are written before the next append."""
        self._note(entries, is_saved=False)

    def _set(self, entries: list[tuple[int, int]]) -> None:
        self._disk.write_whole(self.path, checkpoints.render_epochs(entries), sync=False)
        self._note(entries, is_saved=True)
