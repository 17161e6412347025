"""A disk in memory, as one process sees it: the twin of the port over a `PageCache`, with faults and a trace.

Each life of a node has a disk object of its own over the same volume, so that whatever a dead life still holds can no
longer write. As with the real twin a failing write may leave a part of its bytes, `write_whole` its temporary file, and
`preallocate` makes the file longer.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import Final, NoReturn
from zlib import crc32

from strandline.base.buffers import Buffer
from strandline.sim.engine.disk_faults import DiskFaults
from strandline.sim.engine.page_cache import Directory, Inode, PageCache
from strandline.sim.engine.process_life import NodeHalted, ProcessLife
from strandline.sim.engine.trace import Trace
from strandline.sim.random import Generator

KILLED_AMID_OPERATION: Final = "killed amid a disk operation"


class SimulatedFile:
    __slots__ = ("_disk", "_inode", "_owners", "path")

    def __init__(self, disk: SimulatedDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._inode = inode
        self._owners = 1
        self.path = path
        inode.openers += 1

    def read_at(self, position: int, size: int) -> bytes:
        inode = self._opened()
        self._disk._begin("read", self.path)
        assert position >= 0
        return self._disk._read(self.path, inode, position, size)

    def write_at(self, position: int, parts: Sequence[Buffer]) -> None:
        inode = self._opened()
        self._disk._write(self.path, inode, position, b"".join(parts))

    def truncate(self, size: int) -> None:
        inode = self._opened()
        self._disk._begin("truncate", self.path)
        self._disk._resize(self.path, inode, size)

    def preallocate(self, size: int) -> None:
        inode = self._opened()
        self._disk._begin("preallocate", self.path)
        if size > len(inode.content):
            self._disk._resize(self.path, inode, size)

    def size(self) -> int:
        return len(self._opened().content)

    def sync(self) -> None:
        inode = self._opened()
        self._disk._sync(self.path, inode)

    def retain(self) -> None:
        self._owners += 1

    def close(self) -> None:
        self._owners -= 1
        assert self._owners >= 0, "closed once more than it was opened and retained"
        if self._owners == 0 and self._disk._life.is_alive:
            self._inode.openers -= 1
            self._disk._free_if_unused(self._inode)

    def _opened(self) -> Inode:
        if self._owners <= 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        return self._inode


class SimulatedDisk:
    def __init__(
        self,
        volume: PageCache,
        life: ProcessLife,
        faults: DiskFaults,
        chance: Generator,
        trace: Trace,
        *,
        wall_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self._volume = volume
        self._life = life
        self._faults = faults
        self._chance = chance
        self._trace = trace
        self._wall_ms = wall_ms

    # The port

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        self._begin("open", path)
        directory, name = self._parent(path)
        found = directory.children.get(name)
        if found is None:
            if not create:
                raise _missing(path)
            found = self._create(directory, name)
        if isinstance(found, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return SimulatedFile(self, path, found)

    def map(self, path: str) -> Buffer:
        self._begin("map", path)
        inode = self._file(path)
        return memoryview(self._read(path, inode, 0, len(inode.content)))

    def read(self, path: str) -> bytes:
        self._begin("read", path)
        inode = self._file(path)
        return self._read(path, inode, 0, len(inode.content))

    def write_whole(self, path: str, data: bytes, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        try:
            file.truncate(0)
            if data:
                file.write_at(0, (data,))
            if sync:
                file.sync()
        finally:
            file.close()
        self.rename(temporary, path)
        if sync:
            self.sync_directory(path.rpartition("/")[0])

    def names(self, directory: str) -> list[str]:
        self._begin("names", directory)
        return sorted(self._directory(directory).children)

    def exists(self, path: str) -> bool:
        self._life.check()
        return self._find(path) is not None

    def size(self, path: str) -> int:
        self._begin("size", path)
        return len(self._file(path).content)

    def modified_ms(self, path: str) -> int:
        self._begin("modified", path)
        return self._file(path).modified_ms

    def make_directory(self, path: str) -> None:
        self._begin("make_directory", path)
        directory = self._volume.root
        for name in _split(path):
            found = directory.children.get(name)
            if found is None:
                found = Directory()
                directory.change((name, found))
            if not isinstance(found, Directory):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            directory = found

    def rename(self, old: str, new: str) -> None:
        self._begin("rename", f"{old} -> {new}")
        source, old_name = self._parent(old)
        target, new_name = self._parent(new)
        assert source is target, "files are renamed within their directory only"
        moved = source.children.get(old_name)
        if moved is None:
            raise _missing(old)
        replaced = target.children.get(new_name)
        if isinstance(replaced, Directory):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), new)
        source.change((old_name, None), (new_name, moved))
        if replaced is not None and replaced is not moved:
            self._unlink(replaced)

    def remove(self, path: str) -> None:
        self._begin("remove", path)
        found = self._find(path)
        if isinstance(found, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if found is not None:
            directory, name = self._parent(path)
            directory.change((name, None))
            self._unlink(found)

    def remove_directory(self, path: str) -> None:
        self._begin("remove_directory", path)
        self._clear(path)
        parent, name = self._parent(path)
        parent.change((name, None))

    def _clear(self, path: str) -> None:
        for name, child in sorted(self._directory(path).children.items()):
            if isinstance(child, Directory):
                self.remove_directory(f"{path}/{name}")
            else:
                self.remove(f"{path}/{name}")

    def sync_directory(self, path: str) -> None:
        self._begin("sync_directory", path)
        self._directory(path).sync()

    def sync_volume(self, path: str) -> bool:
        self._begin("sync_volume", path)
        self._sync_tree("", self._volume.root)
        return True

    def _sync_tree(self, path: str, directory: Directory) -> None:
        for name, child in sorted(directory.children.items()):
            if isinstance(child, Directory):
                self._sync_tree(f"{path}/{name}", child)
            else:
                self._sync(f"{path}/{name}", child)
        directory.sync()

    def capacity(self, path: str) -> tuple[int, int]:
        self._life.check()
        return self._volume.capacity_bytes, self._volume.free_bytes

    def lock(self, path: str) -> bool:
        self._begin("lock", path)
        directory, name = self._parent(path)
        if name not in directory.children:
            self._create(directory, name)
        holder = self._volume.locks.get(path)
        if holder is not None and holder.is_alive:
            return False
        self._volume.locks[path] = self._life
        return True

    def lock_holder(self, path: str) -> int | None:
        self._life.check()
        holder = self._volume.locks.get(path)
        return 0 if holder is not None and holder.is_alive else None

    def unlock(self, path: str) -> None:
        self._life.check()
        assert self._volume.locks.get(path) is self._life
        del self._volume.locks[path]

    # What the port is made of

    def _begin(self, operation: str, path: str) -> None:
        """Begins an operation: lets faults strike before it. Every operation comes through here, except writes and
        syncs, which can fail midway."""
        self._life.check()
        self._trace.called(f"{operation} {path}")
        if self._faults.is_none:
            return
        if self._faults.kills_now():
            self._die()
        error_number = self._faults.error_of(operation, path)
        if error_number is not None:
            raise OSError(error_number, os.strerror(error_number), path)

    def _die(self) -> NoReturn:
        self._life.end(KILLED_AMID_OPERATION)
        raise NodeHalted(KILLED_AMID_OPERATION)

    def _read(self, path: str, inode: Inode, position: int, size: int) -> bytes:
        data = bytes(inode.content[position : position + size])
        return data if self._faults.is_none else self._faults.flipped(path, position, data)

    def _write(self, path: str, inode: Inode, position: int, data: bytes) -> None:
        self._life.check()
        self._trace.called(f"write {path} {position}+{len(data)} {crc32(data):08x}")
        if not self._faults.is_none:
            self._fail_writing(path, inode, position, data)
        taken = max(0, min(len(data), len(inode.content) - position + self._volume.free_bytes))
        self._put(inode, position, data[:taken])
        if taken < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def _fail_writing(self, path: str, inode: Inode, position: int, data: bytes) -> None:
        """Lets a fault strike a write: a part of the bytes is written then."""
        if self._faults.kills_now():
            self._put(inode, position, data[: self._chance.randrange(len(data) + 1)])
            self._die()
        error_number = self._faults.error_of("write", path)
        if error_number is not None:
            self._put(inode, position, data[: self._chance.randrange(len(data) + 1)])
            raise OSError(error_number, os.strerror(error_number), path)

    def _put(self, inode: Inode, position: int, data: bytes) -> None:
        if data:
            before = len(inode.content)
            inode.write(position, data)
            inode.modified_ms = self._wall_ms()
            self._volume.used_bytes += len(inode.content) - before

    def _resize(self, path: str, inode: Inode, size: int) -> None:
        growth = size - len(inode.content)
        if growth > self._volume.free_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        inode.resize(size)
        self._volume.used_bytes += growth

    def _sync(self, path: str, inode: Inode) -> None:
        self._life.check()
        self._trace.note("sync", path)
        if self._faults.kills_now():
            if self._chance.random() < 0.5:
                inode.sync()
            self._die()
        error_number = self._faults.error_of("sync", path)
        if error_number is not None:
            inode.fail_sync()
            raise OSError(error_number, os.strerror(error_number), path)
        inode.sync()

    def _create(self, directory: Directory, name: str) -> Inode:
        inode = Inode()
        inode.entries = 1
        directory.change((name, inode))
        return inode

    def _unlink(self, inode: Inode) -> None:
        inode.entries -= 1
        self._free_if_unused(inode)

    def _free_if_unused(self, inode: Inode) -> None:
        if inode.entries == 0 and inode.openers == 0:
            self._volume.used_bytes -= len(inode.content)

    def _find(self, path: str) -> Inode | Directory | None:
        found: Inode | Directory | None = self._volume.root
        for name in _split(path):
            if not isinstance(found, Directory):
                return None
            found = found.children.get(name)
        return found

    def _file(self, path: str) -> Inode:
        found = self._find(path)
        if found is None:
            raise _missing(path)
        if isinstance(found, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return found

    def _directory(self, path: str) -> Directory:
        found = self._find(path)
        if found is None:
            raise _missing(path)
        if not isinstance(found, Directory):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return found

    def _parent(self, path: str) -> tuple[Directory, str]:
        *above, name = _split(path)
        return self._directory("/".join(above)), name


def _split(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
