"""Repairs a partition without a broker. It does exactly what a start after a crash does.

The flushed part ends at the recovery point, which stands in a checkpoint beside the partition's directory and not in
it. For a partition that was copied without the checkpoint it is not known how much was flushed, and a repair could cut
all of it: the caller has to say from which offset on it may be cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from strandline.base.ids import TopicPartition
from strandline.ports.disk import Disk, File
from strandline.storage import checkpoints, names
from strandline.storage.compaction.batches import emptied
from strandline.storage.dumping import read_batches
from strandline.storage.log_loader import EVERYWHERE, LoadRequest, load_log
from strandline.storage.producer_state import ProducerTable
from strandline.wire.record_batch import BatchHeader, checksum
from strandline.wire.record_check import check

# The default of index.interval.bytes: a partition's directory does not say the topic's value.
_INDEX_INTERVAL_BYTES: Final = 4096
_COPY_BYTES: Final = 1024 * 1024


def recovery_point(disk: Disk, directory: str, data: str) -> int | None:
    """Returns the recovery point of the partition in `directory`, by the checkpoint in `data`; None if it has none."""
    return _offsets(disk, f"{data}/{names.RECOVERY_POINTS}").get(_partition(directory))


def repair(
    disk: Disk, directory: str, data: str, flushed_to: int, new_producers: Callable[[], ProducerTable]
) -> list[str]:
    """Repairs the partition in `directory`, and cuts nothing below the offset `flushed_to`; returns notes of the
    repairs."""
    request = LoadRequest(
        directory=directory,
        is_clean=False,
        recovery_point=flushed_to,
        start_offset=_offsets(disk, f"{data}/{names.LOG_STARTS}").get(_partition(directory), 0),
        index_interval_bytes=_INDEX_INTERVAL_BYTES,
        new_producers=new_producers,
        # It is not known here whether the topic is compacted, so a gap does not count as a lost tail.
        gaps_below=EVERYWHERE,
    )
    return list(load_log(disk, request).notes)


class CannotDrop(ValueError):
    """The batch does not exist, or nothing is wrong with it."""


class MalformedBatch(NamedTuple):
    """A batch in a partition's log that no consumer can read, and its place."""

    segment: int
    position: int
    header: BatchHeader
    fault: str


def find_malformed(disk: Disk, directory: str, offset: int) -> MalformedBatch:
    """Returns the malformed batch whose base offset is `offset`; raises CannotDrop if there is none."""
    bases = [base for base in _segments(disk, directory) if base <= offset]
    if not bases:
        raise CannotDrop(f"the log begins after offset {offset}")
    segment = bases[-1]
    path = f"{directory}/{names.segment_file(segment, names.LOG)}"
    for position, header, batch in read_batches(disk, path):
        if header.base_offset == offset:
            return MalformedBatch(segment, position, header, _fault_of(header, batch))
        if header.base_offset > offset:
            break
    raise CannotDrop(
        f"no batch begins at offset {offset}; `strandline log verify` names those that can be dropped"
    )


def _fault_of(header: BatchHeader, batch: bytes) -> str:
    if header.is_control:
        raise CannotDrop(f"the batch at offset {header.base_offset} is a transaction's marker, and stays")
    if checksum(memoryview(batch)) != header.crc:
        return "its CRC is wrong"
    verdict = check(batch)
    if not verdict.fault:
        raise CannotDrop(f"the batch at offset {header.base_offset} is sound, and stays")
    return verdict.sentence()


def drop_malformed(disk: Disk, directory: str, malformed: MalformedBatch) -> None:
    """Replaces the batch with a header without records, as compaction does: its offsets and sequences stay.

    A crash leaves the old segment, or the new one without indexes, which a start rebuilds.
    """
    path = f"{directory}/{names.segment_file(malformed.segment, names.LOG)}"
    old = disk.open(path)
    new = disk.open(f"{path}{names.CLEANED}", create=True)
    try:
        new.truncate(0)
        _copy(old, 0, malformed.position, new, 0)
        empty = emptied(malformed.header).data
        new.write_at(malformed.position, [empty])
        rest = malformed.position + malformed.header.size
        _copy(old, rest, old.size() - rest, new, malformed.position + len(empty))
        new.sync()
    finally:
        old.close()
        new.close()
    for suffix in (names.OFFSET_INDEX, names.TIME_INDEX):
        index = f"{directory}/{names.segment_file(malformed.segment, suffix)}"
        if disk.exists(index):
            disk.remove(index)
    disk.sync_directory(directory)
    disk.rename(f"{path}{names.CLEANED}", path)
    disk.sync_directory(directory)


def _copy(old: File, position: int, size: int, new: File, at: int) -> None:
    while size:
        data = old.read_at(position, min(size, _COPY_BYTES))
        new.write_at(at, [data])
        position, at, size = position + len(data), at + len(data), size - len(data)


def _segments(disk: Disk, directory: str) -> list[int]:
    bases = (names.base_offset_of(name) for name in disk.names(directory) if name.endswith(names.LOG))
    return sorted(base for base in bases if base is not None)


def bytes_of_log(disk: Disk, directory: str) -> int:
    return sum(disk.size(f"{directory}/{name}") for name in disk.names(directory) if name.endswith(names.LOG))


def _partition(directory: str) -> TopicPartition:
    partition = names.parse_partition_directory(directory.rpartition("/")[2])
    assert partition is not None
    return partition


def _offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    return checkpoints.parse_offsets(disk.read(path)) if disk.exists(path) else {}
