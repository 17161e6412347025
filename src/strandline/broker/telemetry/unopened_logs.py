"""Figures of logs that were not used since the node started, which are opened on their first use (ADR 3).

After a clean shutdown the checkpoints have the end of a log and its high watermark, and nothing changes them before it
is opened. So they are read once. After an unclean shutdown every log is soon opened for recovery.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.base.ids import TopicPartition
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.ports.disk import Disk
from strandline.storage import names


class LogFigures(NamedTuple):
    size: int = 0
    segments: int = 0
    start_offset: int = 0
    end_offset: int = 0
    high_watermark: int = 0


_NOTHING = LogFigures()


def figures_of(replica: Replica) -> LogFigures:
    log = replica.log
    return LogFigures(
        log.size, len(log.segments), log.log_start_offset, log.log_end_offset, replica.high_watermark
    )


class UnopenedLogs:
    def __init__(self, disk: Disk, replicas: Replicas) -> None:
        self._disk = disk
        self._replicas = replicas
        self._known: dict[tuple[bytes, int], LogFigures] = {}  # by topic id and partition

    def figures(self, topic_id: bytes, partition: TopicPartition) -> LogFigures:
        """Returns the figures of a log that is not open; all are 0 if there is none yet, or its disk fails."""
        key = (topic_id, partition.partition)
        found = self._known.get(key)
        if found is None:
            try:
                found = self._look(partition)
            except OSError:
                return _NOTHING  # the next use of the log gets the reason
            self._known[key] = found
        return found

    def forget(self, topic_id: bytes, index: int) -> None:
        """Forgets the figures of a log that is open now."""
        self._known.pop((topic_id, index), None)

    def forget_all_but(self, topic_ids: frozenset[bytes]) -> None:
        """Forgets the figures of topics that are not among these."""
        for key in [key for key in self._known if key[0] not in topic_ids]:
            del self._known[key]

    def _look(self, partition: TopicPartition) -> LogFigures:
        directory = self._replicas.directory_of(partition)
        if directory is None or directory.offline_because is not None:
            return _NOTHING
        path = directory.path_of(partition)
        sizes = {
            base_offset: self._disk.size(f"{path}/{name}")
            for name in self._disk.names(path)
            if name.endswith(names.LOG) and (base_offset := names.base_offset_of(name)) is not None
        }
        first = min(sizes, default=0)
        end = max(directory.recovery_points.get(partition, 0), first)
        return LogFigures(
            size=sum(sizes.values()),
            segments=len(sizes),
            start_offset=max(directory.log_starts.get(partition, 0), first),
            end_offset=end,
            high_watermark=min(directory.high_watermarks.get(partition, 0), end),
        )
