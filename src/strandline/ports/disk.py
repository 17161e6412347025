"""The disk. Every failure is an OSError whose errno says what happened (ENOSPC, EIO, …).

Writes go to the operating system's page cache and may be called on the loop; `sync` blocks until the device has the
bytes and is called only through `Workers`. A write may be partial when it raises: the caller cuts the file back.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Protocol

from strandline.base.buffers import Buffer


def passes(error: OSError) -> bool:
    """Whether the disk is sound all the same: it is full, or the process has no file or memory left."""
    return is_full(error) or lacks_files(error) or error.errno == errno.ENOMEM


def is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def lacks_files(error: OSError) -> bool:
    """Too many are open: what was to be opened has not been touched."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


class File(Protocol):
    path: str

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""
        ...

    def write_at(self, position: int, parts: Sequence[Buffer]) -> None:
        """Writes all the parts, one behind the other, at `position`."""
        ...

    def truncate(self, size: int) -> None: ...

    def preallocate(self, size: int) -> None:
        """Reserves room without changing what reads see beyond the old end."""
        ...

    def size(self) -> int: ...

    def sync(self) -> None: ...

    def retain(self) -> None:
        """One more owner: the file is closed when each has called `close`."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> File:
        """For reading and writing; FileNotFoundError unless `create`."""
        ...

    def map(self, path: str) -> Buffer:
        """The file's present contents, read-only, paged in on demand."""
        ...

    def read(self, path: str) -> bytes: ...

    def write_whole(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replaces the file in one step: temporary file, sync, rename, sync of the directory."""
        ...

    def names(self, directory: str) -> list[str]:
        """The names in a directory, sorted."""
        ...

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int:
        """When the file was last written, in milliseconds since 1970."""
        ...

    def make_directory(self, path: str) -> None:
        """With its parents; no error if it is there."""
        ...

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, path: str) -> None:
        """A file; no error if it is gone."""
        ...

    def remove_directory(self, path: str) -> None:
        """With all that is in it."""
        ...

    def sync_directory(self, path: str) -> None: ...

    def sync_volume(self, path: str) -> bool:
        """Syncs everything on the volume of a directory; False where the system cannot, or would not tell of errors."""
        ...

    def capacity(self, path: str) -> tuple[int, int]:
        """Total and usable bytes of the volume."""
        ...

    def lock(self, path: str) -> bool:
        """Takes the lock file for as long as this process lives; False if another holds it."""
        ...

    def lock_holder(self, path: str) -> int | None:
        """The id of the process that holds the lock file, 0 where that is unknown; None if nobody holds it."""
        ...

    def unlock(self, path: str) -> None: ...
