"""One partition's replica on this node: its log, its role, and who waits for it.

A replica is opened on its first use. From then on appending and reading are plain calls without an await, so nothing
changes between a check and the act that relies on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.config import TopicConfig
from strandline.partition.intake import Intake
from strandline.partition.leader import ACKS_ALL, Leader
from strandline.partition.producers import Producers
from strandline.storage.directory import LogDirectory
from strandline.storage.log import Log
from strandline.wire.record_batch import BatchHeader


class Appended(NamedTuple):
    """Where a batch is: the offsets it got now or, for a repeated batch, had got before."""

    base_offset: int
    last_offset: int
    append_time_ms: int


class Replica:
    __slots__ = (
        "_wakers",
        "config",
        "directory",
        "flushing",
        "intake",
        "last_flush_ms",
        "leader",
        "log",
        "partition",
        "producers",
        "topic_id",
    )

    def __init__(
        self,
        partition: TopicPartition,
        topic_id: bytes,
        config: TopicConfig,
        directory: LogDirectory,
        log: Log,
        leader: Leader,
        now_ms: int,
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.directory = directory
        self.log = log
        self.leader = leader
        producers = log.producers
        assert isinstance(producers, Producers)
        self.producers: Producers = producers
        self.last_flush_ms: int = now_ms
        self.flushing: asyncio.Task[KafkaError | None] | None = None  # the sync that runs now
        # Called when the high watermark advances, in the order of their coming.
        self._wakers: dict[int, Callable[[], None]] = {}
        self.configure(config)

    def configure(self, config: TopicConfig) -> None:
        self.config = config
        self.log.config = config
        self.intake = Intake(config)

    @property
    def high_watermark(self) -> int:
        return self.leader.high_watermark

    def last_stable_offset(self) -> int:
        """How far read_committed readers see."""
        return self.leader.high_watermark

    def check_online(self) -> None:
        if self.directory.offline_because is not None:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Log directory {self.directory.path} is offline: see the node's log.",
            )

    def check_leader_epoch(self, epoch: int) -> None:
        """What KIP-320 asks of a request that says which epoch it believes in (-1: it does not say)."""
        if epoch >= 0 and epoch != self.leader.epoch:
            if epoch < self.leader.epoch:
                raise KafkaError(
                    ErrorCode.FENCED_LEADER_EPOCH, f"The leader epoch is {self.leader.epoch}, not {epoch}."
                )
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH, f"The leader epoch is {self.leader.epoch}, not {epoch} yet."
            )

    def append(self, batch: memoryview, header: BatchHeader, acks: int, now_ms: int) -> Appended:
        """Appends a batch that `intake` has checked; raises KafkaError, or OSError if the disk refuses."""
        if acks == ACKS_ALL:
            try:
                self.leader.check_acks_all(self.config.min_insync_replicas)
            except KafkaError:
                self._refused(header)
                raise
        append_time = header.max_timestamp if header.uses_log_append_time else -1
        if header.producer_id >= 0:
            repeated = self.producers.check(header)
            if repeated is not None:
                return Appended(repeated.first_offset, repeated.last_offset, repeated.timestamp)
        log = self.log
        base_offset = log.log_end_offset
        try:
            log.append(batch, header, base_offset, self.leader.epoch, now_ms)
        except OSError:
            self._refused(header)
            raise
        if header.producer_id >= 0:
            self.producers.appended(header, base_offset)
        if self.leader.appended(log.log_end_offset, self.config.min_insync_replicas) and self._wakers:
            for wake in list(self._wakers.values()):
                wake()
        return Appended(base_offset, log.log_end_offset - 1, append_time)

    def _refused(self, header: BatchHeader) -> None:
        if header.producer_id >= 0:
            self.producers.refused(header)

    def wake_on_advance(self, key: int, wake: Callable[[], None]) -> None:
        self._wakers[key] = wake

    def forget_waker(self, key: int) -> None:
        self._wakers.pop(key, None)

    def wake_all(self) -> None:
        """When the replica goes away or its role changes: whoever waits must look again."""
        for wake in list(self._wakers.values()):
            wake()

    def delete_records_before(self, offset: int) -> int:
        """Moves the log start; -1 means the high watermark. Returns the new log start."""
        target = self.high_watermark if offset == -1 else offset
        if target > self.high_watermark or target < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Records can be deleted up to the high watermark {self.high_watermark}, not to {offset}.",
            )
        self.log.advance_start(target)
        return self.log.log_start_offset
