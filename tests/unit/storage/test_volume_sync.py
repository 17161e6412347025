"""Many files are synced with their volume, and an error of that sync is as good as one of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.storage.flushing import VOLUME_SYNC_FILES_MIN, FlushWork
from tests.disks import WatchedDisk


class VolumeDisk(WatchedDisk):
    def __init__(self, *, can_sync_volumes: bool = True) -> None:
        super().__init__()
        self.volumes: list[str] = []
        self._can = can_sync_volumes

    def sync_volume(self, path: str) -> bool:
        self.check("sync", path)
        self.volumes.append(path)
        return self._can


def work(directory: Path, count: int) -> FlushWork:
    paths = [directory / f"{number}.log" for number in range(count)]
    for path in paths:
        path.write_bytes(b"x")
    return FlushWork(tuple(map(str, paths)), (str(directory),), 1)


def test_few_files_are_synced_one_by_one(tmp_path: Path) -> None:
    disk = VolumeDisk()
    work(tmp_path, VOLUME_SYNC_FILES_MIN - 1).run(disk)
    assert len(disk.syncs) == VOLUME_SYNC_FILES_MIN  # and the directory
    assert disk.volumes == []


def test_many_files_are_synced_with_their_volume(tmp_path: Path) -> None:
    disk = VolumeDisk()
    work(tmp_path, VOLUME_SYNC_FILES_MIN).run(disk)
    assert (disk.syncs, disk.volumes) == ([], [str(tmp_path)])


def test_where_volumes_cannot_be_synced_every_file_is(tmp_path: Path) -> None:
    disk = VolumeDisk(can_sync_volumes=False)
    work(tmp_path, VOLUME_SYNC_FILES_MIN).run(disk)
    assert len(disk.syncs) == VOLUME_SYNC_FILES_MIN + 1  # and the directory


def test_a_sync_of_a_volume_that_fails_is_an_error(tmp_path: Path) -> None:
    disk = VolumeDisk()
    disk.fail("sync", str(tmp_path))
    with pytest.raises(OSError, match="Input/output error"):
        work(tmp_path, VOLUME_SYNC_FILES_MIN).run(disk)
