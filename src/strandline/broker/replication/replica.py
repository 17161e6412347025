"""One partition's replica on this node: its log, its role, and the requests that wait for it.

Fetches of consumers and acknowledgements wait for the high watermark, fetches of followers for the end of the log.

A replica is opened on its first use. From then on appending and reading are plain calls without an await, so nothing
changes between a check and the step that relies on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.base.tuples import new_tuple
from strandline.config import TopicConfig
from strandline.partition.batch_validation import BatchValidator
from strandline.partition.follower import PartitionFollower
from strandline.partition.leader import ACKS_ALL, PartitionLeader
from strandline.partition.open_transactions import VerificationGuard
from strandline.partition.producers import AppendedBatch, Producers
from strandline.partition.refused_batches import RefusedBatches, error_after
from strandline.ports.clock import Clock
from strandline.storage.directory import LogDirectory
from strandline.storage.log import Log
from strandline.telemetry.topic_metrics import TopicMetrics
from strandline.wire.record_batch import (
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    checksum,
    headers_in,
)
from strandline.wire.records.markers import Marker, marker_batch, read_marker


class Appended(NamedTuple):
    """The offsets of a batch: those that it got now or, for a repeated batch, had got before."""

    base_offset: int
    last_offset: int
    append_time_ms: int


def _appended_before(repeated: AppendedBatch) -> Appended:
    """Returns the offsets that a repeated batch got when it was appended first."""
    return Appended(repeated.first_offset, repeated.last_offset, repeated.timestamp)


def _switching_error() -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_ENOUGH_REPLICAS, "The log is being moved to another directory: try again in a moment."
    )


class Replica:
    __slots__ = (
        "_append_wakers",
        "_clock",
        "_refused_batches",
        "_wakers",
        "config",
        "directory",
        "expires_after_ms",
        "flushing",
        "has_unsaved_cut",
        "is_switching",
        "last_flush_ms",
        "log",
        "metrics",
        "partition",
        "producers",
        "role",
        "topic_id",
        "validator",
    )

    def __init__(
        self,
        partition: TopicPartition,
        topic_id: bytes,
        config: TopicConfig,
        directory: LogDirectory,
        log: Log,
        role: PartitionLeader | PartitionFollower,
        clock: Clock,
        metrics: TopicMetrics,
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.directory = directory
        self.log = log
        self.role = role
        self.metrics = metrics  # the metrics of its topic on this node
        producers = log.producers
        assert isinstance(producers, Producers)
        self.producers: Producers = producers
        self._clock = clock
        self._refused_batches = RefusedBatches()
        self.last_flush_ms: int = clock.wall_ms()
        self.is_switching = False  # a copy in another directory is replacing its log
        self.has_unsaved_cut = False  # nothing may be fetched yet: see `LogFlusher.save_cut`
        self.flushing: asyncio.Task[KafkaError | None] | None = None  # the sync that runs now
        # These are called when the high watermark advances, in the order of registration.
        self._wakers: dict[object, Callable[[], None]] = {}
        self._append_wakers: dict[object, Callable[[], None]] = {}
        self.configure(config)

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role, PartitionLeader)

    @property
    def leader(self) -> PartitionLeader:
        """The leader's role; raises NOT_LEADER_OR_FOLLOWER on a follower."""
        role = self.role
        if isinstance(role, PartitionLeader):
            return role
        raise self._not_leader()

    @property
    def epoch(self) -> int:
        return self.role.epoch

    def configure(self, config: TopicConfig) -> None:
        self.config = config
        self.log.config = config
        # The age at which retention deletes a record; -1 if none is too old.
        self.expires_after_ms = config.retention_ms if "delete" in config.cleanup_policy else -1
        self.validator = BatchValidator(config)

    @property
    def high_watermark(self) -> int:
        return self.role.high_watermark

    def last_stable_offset(self) -> int:
        """Returns the end of what read_committed consumers see."""
        stable = self.producers.transactions.last_stable_offset(self.role.high_watermark)
        return max(stable, self.log.log_start_offset)

    def check_online(self) -> None:
        if self.directory.offline_because is not None:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Log directory {self.directory.path} is offline: see the node's log for the reason.",
            )

    def check_leader_epoch(self, epoch: int) -> None:
        """Checks the leader epoch that a request names, by KIP-320 (-1: it names none)."""
        if epoch >= 0 and epoch != self.epoch:
            if epoch < self.epoch:
                raise KafkaError(
                    ErrorCode.FENCED_LEADER_EPOCH, f"The leader epoch is {self.epoch}, not {epoch}."
                )
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH, f"The leader epoch is {self.epoch}, not {epoch} yet."
            )

    def append(
        self,
        batch: memoryview,
        header: BatchHeader,
        acks: int,
        now_ms: int,
        guard: VerificationGuard | None = None,
    ) -> Appended:
        """Appends a batch that `validator` has checked; raises KafkaError, or OSError if the disk refuses.

        `guard` says that the coordinator has verified the transaction that this batch may open.
        """
        leader = self.role
        if not isinstance(leader, PartitionLeader):
            raise self.refuse(header, self._not_leader())
        if self.is_switching:
            raise self.refuse(header, _switching_error())
        min_in_sync = self.config.min_insync_replicas
        if acks == ACKS_ALL and leader.is_below_minimum(min_in_sync):
            repeated = self.producers.repetition(header)
            if repeated is None:
                raise self.refuse(header, leader.not_enough_in_sync(min_in_sync))
            return _appended_before(repeated)
        append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME_FLAG else -1
        if header.producer_id >= 0:
            repeated = self._check_producer(header, guard)
            if repeated is not None:
                return _appended_before(repeated)
            if header.attributes & TRANSACTIONAL_FLAG:
                self._check_transaction(header, guard)
        base_offset = self.log.log_end_offset
        try:
            self.log.append(batch, header, base_offset, leader.epoch, now_ms)
        except OSError:
            self.refuse(header, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
            raise
        if header.producer_id >= 0:
            self.producers.appended(header, base_offset)
            if self._refused_batches:
                self._refused_batches.forget(header.producer_id)
        return new_tuple(Appended, (base_offset, self._tell_appended(leader) - 1, append_time))

    def _tell_appended(self, leader: PartitionLeader) -> int:
        """Notes an append with the leader's role, and wakes requests that wait for it; returns the log's new end."""
        end_offset = self.log.log_end_offset
        if leader.appended(end_offset, self.config.min_insync_replicas) and self._wakers:
            self._advanced()
        if self._append_wakers:
            self._wake_appended()
        return end_offset

    def _check_producer(self, header: BatchHeader, guard: VerificationGuard | None) -> AppendedBatch | None:
        """Returns the batch that this one repeats, or None; raises KafkaError if it must not be appended."""
        try:
            repeated = self.producers.check(header, guard)
        except KafkaError as error:
            if error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                self._check_refused_before(header)
            raise
        if repeated is None and self._refused_batches:
            self._check_refused_before(header)
        return repeated

    def _check_refused_before(self, header: BatchHeader) -> None:
        """Raises KafkaError if a batch was refused that has to come before this one."""
        expected = self.producers.expected_sequence(header.producer_id, header.producer_epoch)
        refused = self._refused_batches.before(header, expected)
        if refused is not None:
            raise error_after(refused, header, self._clock.monotonic())

    def refuse(self, header: BatchHeader, error: KafkaError) -> KafkaError:
        """Remembers that a batch is refused with this error, for batches that were sent after it; returns the error."""
        if error.retriable and header.producer_id >= 0:
            expected = self.producers.expected_sequence(header.producer_id, header.producer_epoch)
            self._refused_batches.note(header, expected, error, self._clock.monotonic())
        return error

    def check_leads(self, header: BatchHeader) -> None:
        """Refuses a batch that this node may not append because it does not lead."""
        if not self.is_leader:
            raise self.refuse(header, self._not_leader())

    def _not_leader(self) -> KafkaError:
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"This node does not lead {self.partition}.")

    def _wake_appended(self) -> None:
        for wake in list(self._append_wakers.values()):
            wake()

    def _check_transaction(self, header: BatchHeader, guard: VerificationGuard | None) -> None:
        producers = self.producers
        if producers.is_open(header.producer_id, header.producer_epoch):
            return
        if not producers.transactions.holds(header.producer_id, guard):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "The record is not part of an open transaction.")

    def append_marker(
        self, producer_id: int, epoch: int, marker: Marker, transaction_version: int, now_ms: int
    ) -> Appended:
        """Ends a producer's transaction in the partition; raises KafkaError, or OSError if the write fails."""
        leader = self.leader
        if self.is_switching:
            raise _switching_error()
        leader.check_acks_all(self.config.min_insync_replicas)
        self.producers.check_marker(producer_id, epoch, marker, transaction_version)
        batch, header = marker_batch(producer_id, epoch, marker, now_ms)
        offset = self.log.log_end_offset
        aborted = self.producers.aborted_by(producer_id, marker, offset)
        self.log.append(memoryview(batch), header, offset, leader.epoch, now_ms, aborted)
        self.producers.ended(header, marker, offset, transaction_version)
        self._tell_appended(leader)
        return Appended(offset, offset, -1)

    def _advanced(self) -> None:
        for wake in list(self._wakers.values()):
            wake()

    # Followers

    def fetched_by(self, replica: int, offset: int, log_start: int, broker_epoch: int, now: float) -> None:
        """Notes a follower's fetch from `offset` on: it has everything before it."""
        leader = self.leader
        is_cut = leader.log_start_of(replica) != log_start
        if leader.fetched(replica, offset, log_start, broker_epoch, self.config.min_insync_replicas, now):
            self._advanced()
        elif is_cut:
            self._advanced()  # DeleteRecords may wait for it

    def in_sync_decided(self, in_sync: tuple[int, ...], partition_epoch: int) -> None:
        before = len(self.leader.in_sync)
        if self.leader.decided(in_sync, partition_epoch, self.config.min_insync_replicas):
            self._advanced()
        if (after := len(self.leader.in_sync)) != before:
            self.metrics.isr_shrinks += after < before
            self.metrics.isr_expands += after > before
        # Requests that wait for acknowledgements must see that the set may be too small now.
        self.wake_all()

    def remove_lagging(self, is_gone: Callable[[int], bool]) -> None:
        """Stops waiting for followers that were about to be in sync, and now lag or are gone."""
        if self.leader.remove_lagging(is_gone, self.config.min_insync_replicas):
            self._advanced()

    def take(self, role: PartitionLeader | PartitionFollower) -> None:
        """Takes another role, or the same in another epoch; waiting requests check again."""
        self.role = role
        self.wake_all()

    def append_fetched(self, records: memoryview, now_ms: int) -> None:
        """Appends the leader's records unchanged, up to a batch that is not whole."""
        log = self.log
        for position, header in headers_in(records):
            batch = records[position : position + header.size]
            begins_inside = self._begins_inside(header)
            if header.base_offset < log.log_end_offset and not begins_inside:
                continue  # the leader sends whole batches: the first may begin before the fetch offset
            if checksum(batch) != header.crc:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"The batch at offset {header.base_offset} arrived with a wrong CRC.",
                )
            if header.leader_epoch > self.role.epoch:
                return  # a batch of a leader that this replica does not know yet (KAFKA-18723)
            start = log.log_end_offset
            if begins_inside:
                log.restart_at(header.base_offset)
                self.after_cut()
            aborted = None
            if header.producer_id >= 0 and header.is_control and (marker := read_marker(bytes(batch))):
                aborted = self.producers.aborted_by(header.producer_id, marker, header.base_offset)
            log.append_replicated(batch, header, now_ms, aborted)
            if header.producer_id >= 0:
                self.producers.replay(header, bytes(batch) if header.is_control else None)
            if begins_inside:
                log.advance_start(start)

    def _begins_inside(self, header: BatchHeader) -> bool:
        """Returns True if the leader's log begins in the middle of this batch, which a new follower appends whole."""
        log = self.log
        end = log.log_end_offset
        return log.log_start_offset == end and header.base_offset < end <= header.last_offset

    def after_cut(self) -> None:
        """Rebuilds the state that depends on the log after it was truncated."""
        log = self.log
        log.rebuild_producers(Producers)
        if self.directory.cut_cleaned_offset(self.partition, log.log_end_offset):
            self.has_unsaved_cut = True
        if self.directory.recovery_points.get(self.partition, 0) > log.recovery_point:
            self.directory.recovery_points[self.partition] = log.recovery_point
            self.has_unsaved_cut = True
        if self.directory.log_starts.get(self.partition, 0) > log.log_start_offset:
            self.directory.log_starts[self.partition] = log.log_start_offset
            self.has_unsaved_cut = True
        assert isinstance(log.producers, Producers)
        self.producers = log.producers
        if isinstance(self.role, PartitionFollower):
            self.role.high_watermark = min(self.role.high_watermark, log.log_end_offset)

    def leader_high_watermark(self, high_watermark: int) -> None:
        role = self.role
        if isinstance(role, PartitionFollower) and role.leader_high_watermark_advanced(
            high_watermark, self.log.log_end_offset
        ):
            self._advanced()

    def switch_log(self, directory: LogDirectory, log: Log) -> None:
        """Switches to a copy of the log in another log directory, which has the same records."""
        assert log.log_end_offset == self.log.log_end_offset, "nothing is appended while it is switched"
        producers = log.producers
        assert isinstance(producers, Producers)
        producers.transactions.take_guards(self.producers.transactions)
        self.directory, self.log, self.producers = directory, log, producers
        self.configure(self.config)
        if isinstance(self.role, PartitionLeader):
            log.epochs.begin(self.role.epoch, self.role.epoch_start)
        self.wake_all()

    # Waiting

    def wake_on_append(self, waiter: object, wake: Callable[[], None]) -> None:
        self._append_wakers[waiter] = wake

    def wake_on_advance(self, waiter: object, wake: Callable[[], None]) -> None:
        self._wakers[waiter] = wake

    def wake_on_both(self, waiter: object, wake: Callable[[], None]) -> None:
        self._append_wakers[waiter] = self._wakers[waiter] = wake

    def forget_waker(self, waiter: object) -> None:
        self._wakers.pop(waiter, None)
        self._append_wakers.pop(waiter, None)

    def wake_all(self) -> None:
        """Wakes all waiting requests, because the replica is removed or its role has changed."""
        for wake in [*self._wakers.values(), *self._append_wakers.values()]:
            wake()

    def delete_records_before(self, offset: int) -> int:
        """Moves the log start; -1 stands for the high watermark. Returns the new log start."""
        target = self.high_watermark if offset == -1 else offset
        if target > self.high_watermark or target < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Records can be deleted up to the high watermark {self.high_watermark}, not to {offset}.",
            )
        self.log.advance_start(target)
        self._wake_appended()  # followers get it at once
        return target
