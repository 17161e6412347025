"""Open files, at most `capacity` of them: the least recently used one is closed when room is needed."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from strandline.ports.disk import Disk, File, lacks_files

# These are not closed when the process may open no more files: the caller that got one may be about to use it.
_KEPT_OPEN: Final = 16


class FileTable:
    def __init__(self, disk: Disk, capacity: int) -> None:
        assert capacity > 0
        self._disk = disk
        self._capacity = capacity
        self._open: OrderedDict[str, File] = OrderedDict()

    def get(self, path: str, *, create: bool = False) -> File:
        file = self._open.get(path)
        if file is not None:
            self._open.move_to_end(path)
            return file
        while len(self._open) >= self._capacity:
            self._close_oldest()
        while True:
            try:
                file = self._open[path] = self._disk.open(path, create=create)
                return file
            except OSError as error:
                # Sockets are files too, and may have used up the limit that this table counts on.
                if not lacks_files(error) or len(self._open) <= _KEPT_OPEN:
                    raise
                self._close_oldest()

    def _close_oldest(self) -> None:
        _, oldest = self._open.popitem(last=False)
        oldest.close()

    def forget(self, path: str) -> None:
        """Closes a file before it is renamed or removed."""
        file = self._open.pop(path, None)
        if file is not None:
            file.close()

    def forget_in(self, directory: str) -> None:
        """Closes the files of a directory before it is removed."""
        for path in [path for path in self._open if path.startswith(f"{directory}/")]:
            self.forget(path)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()
