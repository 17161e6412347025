"""The files of a log that have to be synced: they are listed in the loop and synced in a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from strandline.ports.disk import Disk

# Syncing 300 files one by one takes about half a second on a disk on which syncing the whole volume takes a tenth of a
# second.
VOLUME_SYNC_FILES_MIN: Final = 300


class FlushWork(NamedTuple):
    """The files to sync so that everything below `end_offset` is durable."""

    paths: tuple[str, ...]
    directories: tuple[str, ...]
    end_offset: int

    def run(self, disk: Disk) -> None:
        """Blocks, so it runs in a worker. Many files are synced by one sync of their volume, which takes less time."""
        if len(self.paths) >= VOLUME_SYNC_FILES_MIN and disk.sync_volume(self.directories[0]):
            return
        for path in self.paths:
            try:
                file = disk.open(path)
            except FileNotFoundError:
                continue  # the file was never written, or has been deleted meanwhile
            try:
                file.sync()
            finally:
                file.close()
        for directory in self.directories:
            disk.sync_directory(directory)


def together(works: Sequence[FlushWork]) -> FlushWork:
    """Returns the work of several logs as one. Each directory is synced once, after the files in it."""
    if len(works) == 1:
        return works[0]
    return FlushWork(
        tuple(path for work in works for path in work.paths),
        tuple(dict.fromkeys(directory for work in works for directory in work.directories)),
        -1,
    )
