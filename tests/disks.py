"""Real disks for tests: one that syncs nothing, and one that counts what is asked of it and fails where told to."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from strandline.base.buffers import Buffer
from strandline.node.disk import RealDisk, RealFile


class QuickFile(RealFile):
    __slots__ = ()

    def sync(self) -> None:
        """No test of ours cuts the power."""


class QuickDisk(RealDisk):
    """A real disk that syncs nothing, which is most of what a start and a stop cost."""

    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return QuickFile(path, os.open(path, flags, 0o644))

    def write_whole(self, path: str, data: bytes, *, sync: bool = True) -> None:
        super().write_whole(path, data, sync=False)

    def sync_directory(self, path: str) -> None:
        pass

    def sync_volume(self, path: str) -> bool:
        return True


class WatchedFile(QuickFile):
    __slots__ = ("_disk",)

    def __init__(self, path: str, fd: int, disk: WatchedDisk) -> None:
        super().__init__(path, fd)
        self._disk = disk

    def read_at(self, position: int, size: int) -> bytes:
        data = super().read_at(position, size)
        self._disk.reads.append((self.path, position, len(data)))
        self._disk.check("read", self.path)
        return data

    def write_at(self, position: int, parts: Sequence[Buffer]) -> None:
        self._disk.check("write", self.path)
        data = b"".join(bytes(part) for part in parts)
        taken = self._disk.take_room(len(data))
        super().write_at(position, (data[:taken],))
        if taken < len(data):
            raise OSError(errno.ENOSPC, "No space left on device", self.path)

    def truncate(self, size: int) -> None:
        self._disk.check("truncate", self.path)
        super().truncate(size)

    def preallocate(self, size: int) -> None:
        if self._disk.take_room(size) < size:
            raise OSError(errno.ENOSPC, "No space left on device", self.path)
        super().preallocate(size)

    def sync(self) -> None:
        self._disk.check("sync", self.path)
        self._disk.syncs.append(self.path)


class WatchedDisk(QuickDisk):
    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[str, int, int]] = []
        self.syncs: list[str] = []
        self.room: int | None = None
        """Bytes that can still be written; None: the disk is never full."""
        self._failures: list[tuple[str, str, int]] = []

    def fail(self, what: str, path_end: str, number: int = errno.EIO) -> None:
        """From now on `what` (open, read, write, truncate, sync) fails for paths with this end."""
        self._failures.append((what, path_end, number))

    def heal(self) -> None:
        self._failures.clear()
        self.room = None

    def check(self, what: str, path: str) -> None:
        for failing, path_end, number in self._failures:
            if what == failing and path.endswith(path_end):
                raise OSError(number, os.strerror(number), path)

    def take_room(self, size: int) -> int:
        if self.room is None:
            return size
        taken = min(size, self.room)
        self.room -= taken
        return taken

    def open(self, path: str, *, create: bool = False) -> WatchedFile:
        self.check("open", path)
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return WatchedFile(path, os.open(path, flags, 0o644), self)

    def read(self, path: str) -> bytes:
        data = super().read(path)
        self.reads.append((path, 0, len(data)))
        self.check("read", path)
        return data

    def write_whole(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.check("write", path)
        if self.take_room(len(data)) < len(data):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        super().write_whole(path, data, sync=sync)

    def sync_volume(self, path: str) -> bool:
        return False  # each file is watched

    def sync_directory(self, path: str) -> None:
        self.check("sync", path)
        self.syncs.append(path)

    def bytes_read(self, path_end: str) -> int:
        return sum(size for path, _, size in self.reads if path.endswith(path_end))
