"""A partition with a real leader and a log in memory, for runtimes that need no more of a broker than that.

One follower copies it. What the follower has fetched is committed; what it has not can be lost when the leader dies.
The storm says when it fetches, when it falls out of the in-sync set, and when it takes over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from strandline.base.aborted_transaction import AbortedTransaction
from strandline.base.ids import TopicPartition
from strandline.broker.replication.replica import Replica
from strandline.partition.follower import PartitionFollower
from strandline.partition.leader import PartitionLeader
from strandline.partition.producers import Producers
from strandline.telemetry.topic_metrics import TopicMetrics
from strandline.wire.record_batch import BatchHeader
from tests.unit.storage.logs import topic_config

LEADER, FOLLOWER = 1, 2
WALL_MS = 1_700_000_000_000
_CONFIG = topic_config(min_insync_replicas=2)

Batch = tuple[BatchHeader, bytes]


def wall_ms() -> int:
    return WALL_MS + int(asyncio.get_running_loop().time() * 1000)


class MemoryLog:
    """As much of a log as appending takes."""

    def __init__(self, batches: list[Batch], seen: Callable[[BatchHeader, bytes], None]) -> None:
        self.batches = batches
        self._seen = seen
        self.config = _CONFIG
        self.log_start_offset = 0
        self.log_end_offset = batches[-1][0].next_offset if batches else 0
        self.producers = Producers()
        for header, batch in batches:
            if header.producer_id >= 0:
                self.producers.replay(header, batch)

    def append(
        self,
        batch: memoryview,
        header: BatchHeader,
        base_offset: int,
        leader_epoch: int,
        now_ms: int,
        aborted: AbortedTransaction | None = None,
    ) -> None:
        placed = header._replace(base_offset=base_offset, leader_epoch=leader_epoch)
        self.batches.append((placed, bytes(batch)))
        self.log_end_offset = placed.next_offset
        self._seen(placed, bytes(batch))


class LedPartition:
    def __init__(
        self,
        topic: str,
        index: int = 0,
        seen: Callable[[BatchHeader, bytes], None] = lambda header, batch: None,
    ) -> None:
        """`seen` is told of everything that a leader appends."""
        self._seen = seen
        self.partition = TopicPartition(topic, index)
        self._committed_end = 0
        self._epoch = 0
        self._partition_epoch = 0
        self.is_stalled = False  # the follower does not fetch
        self.replica = self._lead([], 0)

    @property
    def batches(self) -> list[Batch]:
        log: Any = self.replica.log
        return log.batches  # type: ignore[no-any-return]

    @property
    def committed_end(self) -> int:
        """The highest that any leader's high watermark has been."""
        self._committed_end = max(self._committed_end, self.replica.high_watermark)
        return self._committed_end

    def _lead(self, batches: list[Batch], high_watermark: int) -> Replica:
        log: Any = MemoryLog(batches, self._seen)
        role = PartitionLeader(
            node_id=LEADER,
            epoch=self._epoch,
            replicas=(LEADER, FOLLOWER),
            in_sync=(LEADER, FOLLOWER),
            end_offset=log.log_end_offset,
            high_watermark=high_watermark,
            partition_epoch=self._partition_epoch,
            now=0.0,
        )
        directory: Any = SimpleNamespace(offline_because=None, path="memory")
        clock: Any = SimpleNamespace(wall_ms=lambda: WALL_MS, monotonic=asyncio.get_running_loop().time)
        return Replica(self.partition, bytes(16), _CONFIG, directory, log, role, clock, TopicMetrics())

    def replicate(self) -> None:
        """Has the follower fetch everything, and say so."""
        if not self.is_stalled:
            now = asyncio.get_running_loop().time()
            self.replica.fetched_by(FOLLOWER, self.replica.log.log_end_offset, 0, -1, now)

    def set_in_sync(self, is_follower_in: bool) -> None:
        self._partition_epoch += 1
        nodes = (LEADER, FOLLOWER) if is_follower_in else (LEADER,)
        self.replica.in_sync_decided(nodes, self._partition_epoch)

    def fail_over(self, kept_end: int, known_high_watermark: int) -> None:
        """Makes the follower the leader, with its copy: all committed records, and perhaps some more."""
        assert kept_end >= self.committed_end
        old = self.replica
        self._epoch += 1
        self._partition_epoch += 1
        kept = [each for each in self.batches if each[0].last_offset < kept_end]
        self.replica = self._lead(kept, min(known_high_watermark, self.committed_end))
        old.take(PartitionFollower(node_id=LEADER, leader_id=FOLLOWER, epoch=self._epoch, high_watermark=0))

    def ends_above_committed(self) -> list[int]:
        """Returns the offsets at which a follower's copy can end: after any batch that is not committed, or before them
        all."""
        return [
            self.committed_end,
            *(h.next_offset for h, _ in self.batches if h.next_offset > self.committed_end),
        ]
