"""A simulated device seen through a page cache: inodes, directories, and the part of them that is durable.

Rules:
1. A write changes the cached contents of a file. `sync` of the file makes the contents durable.
2. A file or directory is reached after a power cut only if its entry is durable: after `sync_directory` of the
   directory that holds it. Entries made, removed or renamed since then survive in order: some first of them, by chance,
   and none of the rest.
3. A power cut keeps or loses each unsynced page by itself; some are torn at a sector. A lost page has the contents it
   had when it was last synced, zeros where the file was shorter. A truncation that was not synced may be undone.
4. After a failed sync nobody writes those pages again by itself: they are never durable until they are written again
   (fsync's errors are reported once, https://lwn.net/Articles/752063).
5. A killed process loses nothing that it had written: the cache is the operating system's.
"""

from __future__ import annotations

from typing import Final

from strandline.sim.engine.process_life import ProcessLife
from strandline.sim.random import Generator

PAGE_BYTES: Final = 4096
SECTOR_BYTES: Final = 512
# How likely an unsynced page is to have reached the device: the cut decides for all of them, so that some cuts lose
# nearly everything and some nearly nothing.
_KEEP_CHANCES: Final = (0.0, 0.2, 0.5, 0.8, 0.95, 1.0)
_TORN_CHANCE: Final = 0.1
_SIZE_ONLY_CHANCE: Final = 0.25


class Inode:
    """A file's contents: as processes see them, and as they are on the device."""

    __slots__ = ("_cut_to", "_dirty", "_forsaken", "content", "entries", "modified_ms", "openers", "synced")

    def __init__(self) -> None:
        self.content = bytearray()
        self.synced = bytearray()
        self._dirty: dict[int, None] = {}  # pages written since the last sync
        self._forsaken: dict[int, None] = {}  # pages that a failed sync has given up
        self._cut_to = 0  # the smallest size since the last sync
        self.entries = 0
        self.openers = 0
        self.modified_ms = 0

    def write(self, position: int, data: bytes) -> None:
        start = min(position, len(self.content))
        if position > len(self.content):
            self.content += bytes(position - len(self.content))
        self.content[position : position + len(data)] = data
        self._mark(start, position + len(data))

    def resize(self, size: int) -> None:
        if size < len(self.content):
            del self.content[size:]
            self._cut_to = min(self._cut_to, size)
            for pages in (self._dirty, self._forsaken):
                for page in [page for page in pages if page * PAGE_BYTES >= size]:
                    del pages[page]
        else:
            start = len(self.content)
            self.content += bytes(size - start)
            self._mark(start, size)

    def _mark(self, start: int, end: int) -> None:
        for page in range(start // PAGE_BYTES, -(-end // PAGE_BYTES)):
            self._dirty[page] = None
            self._forsaken.pop(page, None)

    def sync(self) -> None:
        size = len(self.content)
        del self.synced[self._cut_to :]
        self.synced += bytes(max(0, size - len(self.synced)))
        for page in self._dirty:
            start = page * PAGE_BYTES
            end = min(start + PAGE_BYTES, size)
            self.synced[start:end] = self.content[start:end]
        self._dirty.clear()
        self._cut_to = size

    def fail_sync(self) -> None:
        self._forsaken.update(self._dirty)
        self._dirty.clear()

    def cut_power(self, chance: Generator, keep: float) -> None:
        """Replaces the contents by those that the device has."""
        content, after = self.content, self.synced
        reach = len(content)
        if self._cut_to < len(after):
            if chance.random() < keep:
                del after[self._cut_to :]
            else:
                # Without the truncation the old blocks are still the file's, and what came later is in none of them.
                reach = self._cut_to
        for page in sorted({**self._dirty, **self._forsaken}):
            start = page * PAGE_BYTES
            end = min(start + PAGE_BYTES, reach)
            if start >= end or chance.random() >= keep:
                continue
            if chance.random() < _TORN_CHANCE:
                end = min(end, start + SECTOR_BYTES * chance.randrange(PAGE_BYTES // SECTOR_BYTES))
            after += bytes(max(0, start - len(after)))
            after[start:end] = content[start:end]
        if len(after) < reach and chance.random() < _SIZE_ONLY_CHANCE:
            after += bytes(reach - len(after))  # the size arrived and the data did not
        self.content = bytearray(after)
        self._dirty.clear()
        self._forsaken.clear()
        self._cut_to = len(after)


class Directory:
    __slots__ = ("children", "durable", "pending")

    def __init__(self) -> None:
        self.children: dict[str, Inode | Directory] = {}
        self.durable: dict[str, Inode | Directory] = {}
        # Changes since the last sync, in order: names with what they have become.
        self.pending: list[tuple[tuple[str, Inode | Directory | None], ...]] = []

    def change(self, *changes: tuple[str, Inode | Directory | None]) -> None:
        """Makes a name, removes one, or does both in a rename, as one step."""
        _apply(self.children, changes)
        self.pending.append(changes)

    def sync(self) -> None:
        for changes in self.pending:
            _apply(self.durable, changes)
        self.pending.clear()

    def cut_power(self, chance: Generator, keep: float) -> None:
        """Replaces the entries by those on the device, here and in every directory that is still reached."""
        survivors = 0
        while survivors < len(self.pending) and chance.random() < keep:
            survivors += 1
        del self.pending[survivors:]
        self.sync()
        self.children = dict(sorted(self.durable.items()))
        for child in self.children.values():
            child.cut_power(chance, keep)


def _apply(
    entries: dict[str, Inode | Directory], changes: tuple[tuple[str, Inode | Directory | None], ...]
) -> None:
    for name, became in changes:
        if became is None:
            entries.pop(name, None)
        else:
            entries[name] = became


class PageCache:
    """A device with a file system: what outlives every process that uses it."""

    def __init__(self, chance: Generator, *, capacity_bytes: int = 1 << 40) -> None:
        self._chance = chance
        self.root = Directory()
        self.capacity_bytes = capacity_bytes
        self.used_bytes = 0
        self.locks: dict[str, ProcessLife] = {}  # a lock ends with the life that took it

    def crash(self, *, power_cut: bool) -> None:
        """Leaves the device as the next process finds it. A mere kill leaves everything as it was."""
        if power_cut:
            self.root.cut_power(self._chance, self._chance.choice(_KEEP_CHANCES))
        self._recount()

    def _recount(self) -> None:
        """Counts the used bytes again: open files without a name have gone with their processes."""
        self.used_bytes = 0
        directories = [self.root]
        while directories:
            for child in directories.pop().children.values():
                if isinstance(child, Directory):
                    directories.append(child)
                else:
                    child.openers = 0
                    child.entries = 1
                    self.used_bytes += len(child.content)

    @property
    def free_bytes(self) -> int:
        return max(0, self.capacity_bytes - self.used_bytes)
