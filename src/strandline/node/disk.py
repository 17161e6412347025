"""Files of the operating system."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import re
import shutil
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from strandline.base.buffers import Buffer

# The C structure `flock`, which F_GETLK reads and fills in.
_IS_DARWIN: Final = sys.platform == "darwin"
_FLOCK: Final = struct.Struct("@qqihh" if _IS_DARWIN else "@hhqqi4x")
# Lock files of this process, by descriptor. They are not opened twice: closing any descriptor of a file would release
# the lock of the kind that Apache Kafka takes.
_locked: Final[dict[int, str]] = {}


def _find_syncfs() -> Callable[[int], int] | None:
    """Returns Linux's syncfs, or None before the version in which it began to report errors of writing back (5.8)."""
    if sys.platform != "linux":
        return None
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if version is None or tuple(map(int, version.groups())) < (5, 8):
        return None
    function: Callable[[int], int] | None = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return function


_syncfs: Final = _find_syncfs()


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
        """Writes the rest after a short write. If the disk is the reason, this write raises the error."""
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

    def send_to(self, socket_fd: int, position: int, size: int) -> int:
        """Hands a region to a socket without reading it; returns the number of bytes that the socket took."""
        return os.sendfile(socket_fd, self.fd, position, size)

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

    def sync_volume(self, path: str) -> bool:
        if _syncfs is None:
            return False
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _syncfs(fd) != 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), path)
        finally:
            os.close(fd)
        return True

    def capacity(self, path: str) -> tuple[int, int]:
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    def lock(self, path: str) -> bool:
        real_path = os.path.realpath(path)
        if real_path in _locked.values():
            return False
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # against another node of this process, too
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kind that Apache Kafka and its tools take
        except (BlockingIOError, PermissionError):
            os.close(fd)
            return False
        self._locks[path] = fd
        _locked[fd] = real_path
        return True

    def lock_holder(self, path: str) -> int | None:
        if os.path.realpath(path) in _locked.values():
            return os.getpid()
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # there is no lock file, or it cannot be read, and then nobody can take it
            return None
        try:
            return _holder(fcntl.fcntl(fd, fcntl.F_GETLK, _conflicting_lock()))
        finally:
            os.close(fd)

    def unlock(self, path: str) -> None:
        fd = self._locks.pop(path)
        del _locked[fd]
        fcntl.flock(fd, fcntl.LOCK_UN)  # closing alone leaves it to a child that was forked meanwhile
        os.close(fd)


def _conflicting_lock() -> bytes:
    """Returns the request for the lock of a whole file."""
    kind, whence, start, length = fcntl.F_WRLCK, os.SEEK_SET, 0, 0
    if _IS_DARWIN:
        return _FLOCK.pack(start, length, 0, kind, whence)
    return _FLOCK.pack(kind, whence, start, length, 0)


def _holder(contents: bytes) -> int | None:
    """Returns the process that holds a conflicting lock, from F_GETLK's response; 0 for a process of another container,
    None if there is no such lock."""
    if _IS_DARWIN:
        _, _, process_id, kind, _ = _FLOCK.unpack(contents)
    else:
        kind, _, _, _, process_id = _FLOCK.unpack(contents)
    return None if kind == fcntl.F_UNLCK else max(0, process_id)
