"""The disk. Every failure is an OSError whose errno gives the reason (ENOSPC, EIO, …).

Writes go to the operating system's page cache and may be called on the loop; `sync` blocks until the device has the
bytes and is called only through `Workers`. A write may be partial when it raises: the caller cuts the file back.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Protocol

from strandline.base.buffers import Buffer


def passes(error: OSError) -> bool:
    """Returns True if the error can pass while the disk is sound: it is full, or the process has no files or memory
    left."""
    return is_full(error) or lacks_files(error) or error.errno == errno.ENOMEM


def is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def lacks_files(error: OSError) -> bool:
    """Returns True if too many files are open: then the file was not opened or changed."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


class File(Protocol):
    path: str

    def read_at(self, position: int, size: int) -> bytes:
        """Returns `size` bytes, or fewer at the end of the file."""
        ...

    def write_at(self, position: int, parts: Sequence[Buffer]) -> None:
        """Writes all the parts, one after the other, at `position`."""
        ...

    def truncate(self, size: int) -> None: ...

    def preallocate(self, size: int) -> None:
        """Reserves room without changing what reads see beyond the old end."""
        ...

    def size(self) -> int: ...

    def sync(self) -> None: ...

    def retain(self) -> None:
        """Adds an owner: the file is closed when each owner has called `close`."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> File:
        """Opens a file for reading and writing; raises FileNotFoundError unless `create`."""
        ...

    def map(self, path: str) -> Buffer:
        """Returns the file's present contents, read-only, paged in on demand."""
        ...

    def read(self, path: str) -> bytes: ...

    def write_whole(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replaces the file in one step: temporary file, sync, rename, sync of the directory."""
        ...

    def names(self, directory: str) -> list[str]:
        """Returns the names in a directory, sorted."""
        ...

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int:
        """Returns the time of the last write, in milliseconds since 1970."""
        ...

    def make_directory(self, path: str) -> None:
        """Creates a directory and its parents; it is no error if it exists."""
        ...

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, path: str) -> None:
        """Removes a file; it is no error if it does not exist."""
        ...

    def remove_directory(self, path: str) -> None:
        """Removes a directory and its contents."""
        ...

    def sync_directory(self, path: str) -> None: ...

    def sync_volume(self, path: str) -> bool:
        """Syncs the whole volume of a directory; returns False if the system cannot, or would not report errors."""
        ...

    def capacity(self, path: str) -> tuple[int, int]:
        """Returns the total and the usable bytes of the volume."""
        ...

    def lock(self, path: str) -> bool:
        """Takes the lock file for as long as this process lives; returns False if another process holds it."""
        ...

    def lock_holder(self, path: str) -> int | None:
        """Returns the id of the process that holds the lock file; 0 if it is unknown, None if no process holds it."""
        ...

    def unlock(self, path: str) -> None: ...
