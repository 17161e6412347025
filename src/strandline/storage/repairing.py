"""Repairs a partition without a broker: exactly what a start after a crash does, and nothing else.

The flushed part ends at the recovery point, which stands in a checkpoint beside the partition's directory and not in
it. Of a partition that was copied without the checkpoint nobody knows what was flushed, and a repair could cut all of
it: the caller has to say from which offset on it may be cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.ports.disk import Disk
from strandline.storage import checkpoints, names
from strandline.storage.log_loader import EVERYWHERE, Opening, open_log
from strandline.storage.producer_state import ProducerTable

# As index.interval.bytes is by default; a partition's directory does not say what its topic has.
_INDEX_INTERVAL_BYTES: Final = 4096


def recovery_point(disk: Disk, directory: str, data: str) -> int | None:
    """Up to where the partition in `directory` was flushed, by the checkpoint in `data`; None if it does not say."""
    return _offsets(disk, f"{data}/{names.RECOVERY_POINTS}").get(_partition(directory))


def repair(
    disk: Disk, directory: str, data: str, flushed_to: int, new_producers: Callable[[], ProducerTable]
) -> list[str]:
    """Repairs the partition in `directory`, and cuts nothing below the offset `flushed_to`; what was repaired."""
    opening = Opening(
        directory=directory,
        is_clean=False,
        recovery_point=flushed_to,
        start_offset=_offsets(disk, f"{data}/{names.LOG_STARTS}").get(_partition(directory), 0),
        index_interval_bytes=_INDEX_INTERVAL_BYTES,
        new_producers=new_producers,
        # Whether the topic is compacted is not known here, and a gap must not cost what is after it.
        gaps_below=EVERYWHERE,
    )
    return list(open_log(disk, opening).notes)


def bytes_of_log(disk: Disk, directory: str) -> int:
    return sum(disk.size(f"{directory}/{name}") for name in disk.names(directory) if name.endswith(names.LOG))


def _partition(directory: str) -> TopicPartition:
    partition = names.parse_partition_directory(directory.rpartition("/")[2])
    assert partition is not None
    return partition


def _offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    return checkpoints.parse_offsets(disk.read(path)) if disk.exists(path) else {}
