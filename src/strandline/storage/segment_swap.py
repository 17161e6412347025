"""Replaces segments with the compacted files that were made from them, whole or not at all: Kafka's replaceSegments.

1. The cleaner writes `.cleaned` files, syncs them, and syncs the directory.
2. They are renamed to `.swap`. While one of them still ends with `.cleaned`, a start removes them all.
3. The old files are renamed to `.deleted`. After step 2 a start completes the swap: it removes the old segments that
   the new one covers and continues with step 4.
4. The suffix `.swap` is removed from the names.

Only the order of the renames matters, so they are done without a sync in between; the directory is synced after them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from strandline.ports.disk import Disk
from strandline.storage import names
from strandline.storage.files import FileTable
from strandline.storage.segment import Segment
from strandline.wire.record_batch import CorruptBatch

_FILES: Final = (names.OFFSET_INDEX, names.TIME_INDEX, names.TRANSACTION_INDEX, names.LOG)


def rename_segment(disk: Disk, directory: str, base_offset: int, old: str, new: str) -> None:
    """Gives the existing files of a segment another suffix."""
    for kind in _FILES:
        path = f"{directory}/{names.segment_file(base_offset, kind)}"
        if disk.exists(path + old):
            disk.rename(path + old, path + new)


def remove_unfinished(disk: Disk, directory: str) -> None:
    """Removes the files of a cleaning that was interrupted."""
    for name in disk.names(directory):
        if name.endswith(names.CLEANED):
            disk.remove(f"{directory}/{name}")


def complete_swaps(disk: Disk, directory: str, file_names: list[str]) -> list[str]:
    """Completes swaps that a crash has interrupted; returns notes for the node's log."""
    swaps = [name for name in file_names if name.endswith(names.SWAP)]
    if not swaps:
        return []
    cleaned = [_offset(name) for name in file_names if name.endswith(names.CLEANED)]
    if cleaned:
        # Not all files had been renamed, so the old segments are complete and stay.
        for name in [name for name in swaps if _offset(name) >= min(cleaned)]:
            disk.remove(f"{directory}/{name}")
            swaps.remove(name)
    notes = []
    for name in swaps:
        if name.endswith(names.LOG + names.SWAP):
            notes.append(f"{directory}/{name}: an interrupted compaction is completed")
            _remove_covered(disk, directory, _offset(name), file_names)
    for name in swaps:
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(names.SWAP)}")
    disk.sync_directory(directory)
    return notes


def _remove_covered(disk: Disk, directory: str, base_offset: int, file_names: list[str]) -> None:
    """Removes old segments from the new segment's first offset to its last. A leftover of later ones does no harm."""
    index = names.segment_file(base_offset, names.OFFSET_INDEX)
    if index in file_names and f"{index}{names.SWAP}" not in file_names:
        return  # step 4 has begun with this file: the old files are gone, and those without a suffix are new
    files = FileTable(disk, 4)
    try:
        size = disk.size(f"{directory}/{names.segment_file(base_offset, names.LOG)}{names.SWAP}")
        new = Segment(disk, files, directory, base_offset, size, names.SWAP)
        last = base_offset
        with suppress(CorruptBatch):  # recovery reports it when it gets there
            for place in new.walk():
                last = place.last_offset
    finally:
        files.close()
    for name in file_names:
        offset = names.base_offset_of(name)
        if offset is not None and base_offset <= offset <= last and name.endswith(_FILES):
            disk.remove(f"{directory}/{name}")


def _offset(name: str) -> int:
    offset = names.base_offset_of(name)
    return -1 if offset is None else offset
