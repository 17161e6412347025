"""The files of a log that have to be synced, listed where the log lives and synced in a worker."""

from __future__ import annotations

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
