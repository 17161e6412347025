"""The table of open files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from strandline.storage.files import FileTable
from tests.disks import QuickDisk, QuickFile


class FewFiles(QuickDisk):
    """A process that may have `limit` files open."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.open_files: list[QuickFile] = []

    def open(self, path: str, *, create: bool = False) -> QuickFile:
        self.open_files = [file for file in self.open_files if file.fd >= 0]
        if len(self.open_files) >= self.limit:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        file = super().open(path, create=create)
        assert isinstance(file, QuickFile)
        self.open_files.append(file)
        return file


def test_files_that_sockets_took_are_made_up_for_by_closing_older_ones(tmp_path: Path) -> None:
    disk = FewFiles(40)
    files = FileTable(disk, 40)
    for number in range(40):
        files.get(f"{tmp_path}/{number}", create=True)
    disk.limit = 20
    last = files.get(f"{tmp_path}/last", create=True)
    assert files.get(f"{tmp_path}/last") is last
    disk.limit = 10
    with pytest.raises(OSError, match="open files"):
        files.get(f"{tmp_path}/none", create=True)
    assert files.get(f"{tmp_path}/39").size() == 0, "the latest stay, as they may be in use"
    files.close()
