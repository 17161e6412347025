"""The files of a log that have to be synced, listed where the log lives and synced in a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from strandline.ports.disk import Disk


class FlushWork(NamedTuple):
    """The files to sync so that everything below `end_offset` is on the device."""

    paths: tuple[str, ...]
    directories: tuple[str, ...]
    end_offset: int

    def run(self, disk: Disk) -> None:
        """Blocks; in a worker."""
        for path in self.paths:
            try:
                file = disk.open(path)
            except FileNotFoundError:
                continue  # it never was there, or it has been deleted meanwhile
            try:
                file.sync()
            finally:
                file.close()
        for directory in self.directories:
            disk.sync_directory(directory)


def together(works: Sequence[FlushWork]) -> FlushWork:
    """The work of several logs as one. Each directory is synced once, and after the files in it."""
    if len(works) == 1:
        return works[0]
    return FlushWork(
        tuple(path for work in works for path in work.paths),
        tuple(dict.fromkeys(directory for work in works for directory in work.directories)),
        -1,
    )
