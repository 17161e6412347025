"""Which leader epoch began at which offset (KIP-101, KIP-279): what truncation after a leader change goes by."""

from __future__ import annotations

from strandline.ports.disk import Disk
from strandline.storage import checkpoints

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """(epoch, start offset), both strictly ascending, written to the checkpoint on every change.

    A leader's own epoch counts from the moment it begins, and is written before the first record of it: otherwise a
    follower with records of an epoch between the last one here and its own would not be seen to have left this log.
    A node may begin to lead thousands of partitions at once; most of them have no record soon.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self._note(checkpoints.parse_epochs(disk.read(path)) if disk.exists(path) else [], is_saved=True)

    def _note(self, entries: list[tuple[int, int]], *, is_saved: bool) -> None:
        self.entries = entries
        self.latest_epoch = entries[-1][0] if entries else UNDEFINED_EPOCH  # asked for at each append
        self.is_saved = is_saved

    def assign(self, epoch: int, start_offset: int) -> None:
        """Notes that `epoch` began at `start_offset`; entries that contradict it are dropped."""
        if self.latest_epoch == epoch:
            if not self.is_saved:
                self._set(self.entries)
        elif epoch >= 0:
            self._set(self._with(epoch, start_offset))

    def begin(self, epoch: int, start_offset: int) -> None:
        """The same for the epoch that this node leads; it is written before the first record of it is appended."""
        if self.latest_epoch != epoch and epoch >= 0:
            self._have(self._with(epoch, start_offset))

    def _with(self, epoch: int, start_offset: int) -> list[tuple[int, int]]:
        kept = [(e, o) for e, o in self.entries if e < epoch and o < start_offset]
        return [*kept, (epoch, start_offset)]

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch at or below `epoch` and where it ended; both undefined if there is none such."""
        if epoch == UNDEFINED_EPOCH or not self.entries:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.entries[-1][0]:
            return epoch, log_end_offset
        later = [(e, o) for e, o in self.entries if e > epoch]
        if not later:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET  # an epoch from the future
        earlier = [e for e, _ in self.entries if e <= epoch]
        # Nothing is known of epochs before the first: it began where the log begins.
        return (earlier[-1] if earlier else epoch), later[0][1]

    def epoch_at(self, offset: int) -> int:
        found = UNDEFINED_EPOCH
        for epoch, start in self.entries:
            if start > offset:
                break
            found = epoch
        return found

    def truncate_from_end(self, end_offset: int) -> None:
        """The log was cut, so what it no longer has is forgotten even if that cannot be written, which raises."""
        kept = [(e, o) for e, o in self.entries if o < end_offset]
        if len(kept) != len(self.entries):
            self._have(kept)
            self._set(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """Keeps the epoch that `start_offset` belongs to, moved to begin there."""
        before = [(e, o) for e, o in self.entries if o <= start_offset]
        if before and (len(before) > 1 or before[0][1] < start_offset):
            after = [(e, o) for e, o in self.entries if o > start_offset]
            self._set([(before[-1][0], start_offset), *after])

    def clear(self) -> None:
        """The same for a log that begins again."""
        if self.entries:
            self._have([])
            self._set([])

    def _have(self, entries: list[tuple[int, int]]) -> None:
        """They count from now on; before the next append they are written."""
        self._note(entries, is_saved=False)

    def _set(self, entries: list[tuple[int, int]]) -> None:
        self._disk.write_whole(self.path, checkpoints.render_epochs(entries), sync=False)
        self._note(entries, is_saved=True)
