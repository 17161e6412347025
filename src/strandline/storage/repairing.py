"""Repairs a partition without a broker: exactly what a start after a crash does, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.ports.disk import Disk
from strandline.storage import checkpoints, names
from strandline.storage.log_loader import EVERYWHERE, LoadRequest, load_log
from strandline.storage.producer_state import ProducerTable

# As index.interval.bytes is by default; a partition's directory does not say what its topic has.
_INDEX_INTERVAL_BYTES: Final = 4096


def repair(disk: Disk, directory: str, data: str, new_producers: Callable[[], ProducerTable]) -> list[str]:
    """Opens the partition in `directory` by what the checkpoints in `data` say of it; what was repaired."""
    partition = names.parse_partition_directory(directory.rpartition("/")[2])
    assert partition is not None
    recovery_points = _offsets(disk, f"{data}/{names.RECOVERY_POINTS}")
    request = LoadRequest(
        directory=directory,
        is_clean=False,
        recovery_point=recovery_points.get(partition, 0),
        start_offset=_offsets(disk, f"{data}/{names.LOG_STARTS}").get(partition, 0),
        index_interval_bytes=_INDEX_INTERVAL_BYTES,
        new_producers=new_producers,
        # Whether the topic is compacted is not known here, and a gap must not cost what is after it.
        gaps_below=EVERYWHERE,
    )
    return list(load_log(disk, request).notes)


def _offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    return checkpoints.parse_offsets(disk.read(path)) if disk.exists(path) else {}
