"""Files of the operating system."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress

from strandline.base.buffers import Buffer


class RealFile:
    __slots__ = ("_owners", "fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd
        self._owners = 1

    def read_at(self, position: int, size: int) -> bytes:
        data = os.pread(self.fd, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        while len(data) and (size := size - len(data)):
            position += len(data)
            data = os.pread(self.fd, size, position)
            parts.append(data)
        return b"".join(parts)

    def write_at(self, position: int, parts: Sequence[Buffer]) -> None:
        if len(parts) == 1:
            size = len(parts[0])
            written = os.pwrite(self.fd, parts[0], position)
        else:
            size = sum(map(len, parts))
            written = os.pwritev(self.fd, parts, position)
        if written != size:
            self._write_rest(position, parts, written)

    def _write_rest(self, position: int, parts: Sequence[Buffer], written: int) -> None:
        """After a short write: the next one says why it was short."""
        rest = memoryview(b"".join(parts))
        while written < len(rest):
            count = os.pwrite(self.fd, rest[written:], position + written)
            if count == 0:
                raise OSError(errno.EIO, "the disk takes no more bytes", self.path)
            written += count

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fd, size)

    def preallocate(self, size: int) -> None:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self.fd, 0, size)

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def sync(self) -> None:
        if hasattr(os, "fdatasync"):
            os.fdatasync(self.fd)
        else:
            os.fsync(self.fd)

    def retain(self) -> None:
        self._owners += 1

    def close(self) -> None:
        self._owners -= 1
        if self._owners == 0:
            os.close(self.fd)
            self.fd = -1


class RealDisk:
    def __init__(self) -> None:
        self._locks: dict[str, int] = {}

    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(path, os.open(path, flags, 0o644))

    def map(self, path: str) -> Buffer:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(fd).st_size == 0:
                return b""
            return memoryview(mmap.mmap(fd, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(fd)

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write_whole(self, path: str, data: bytes, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def names(self, directory: str) -> list[str]:
        return sorted(os.listdir(directory))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(path)

    def remove_directory(self, path: str) -> None:
        shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def capacity(self, path: str) -> tuple[int, int]:
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    def lock(self, path: str) -> bool:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # against another node of this process, too
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kind that Apache Kafka and its tools take
        except (BlockingIOError, PermissionError):
            os.close(fd)
            return False
        self._locks[path] = fd
        return True

    def unlock(self, path: str) -> None:
        fd = self._locks.pop(path)
        fcntl.flock(fd, fcntl.LOCK_UN)  # closing alone leaves it to a child that was forked meanwhile
        os.close(fd)
