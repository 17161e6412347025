"""Rules whose absence was a bug of a broker or client of this kind, each of which a function switches off."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import Any

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch
from strandline.base.planned import Planned
from strandline.broker.api import k09_offset_fetch
from strandline.broker.server.request_context import RequestContext
from strandline.client.consumer.log_offsets import NO_EPOCH, UNKNOWN_OFFSET, EpochEnd
from strandline.client.consumer.positions import Positions
from strandline.client.net.metadata import Metadata
from strandline.client.producer.transactions import Transactions
from strandline.controller import partitions
from strandline.partition.producers import AppendedBatch, Producers
from strandline.rpc.frames import BadFrame, FrameReader
from strandline.storage.log import Log
from strandline.transactions import ending, shard
from strandline.transactions.planned import TxnResponse
from strandline.transactions.transaction import Transaction
from strandline.wire.api.k03_metadata import MetadataResponseTopic
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.record_batch import BatchHeader

Patch = pytest.MonkeyPatch


# Transactions and epochs


def ends_leave_the_epoch(patch: Patch) -> None:
    """Version 2 ends a transaction as version 1 does."""
    patch.setattr(ending, "EPOCH_PER_TRANSACTION_FROM", 99)


def every_end_raises_the_epoch(patch: Patch) -> None:
    """Version 1 ends a transaction as version 2 does, so that a late request is refused."""

    def plan(transaction: Transaction, identity: ProducerIdAndEpoch, is_commit: bool, now_ms: int) -> Any:
        return ending._plan_version_two(transaction, identity, is_commit, None, now_ms)

    patch.setattr(ending, "_plan_version_one", plan)


def any_epoch_ends_a_transaction(patch: Patch) -> None:
    original = ending.plan_end

    def plan(transaction: Transaction, identity: ProducerIdAndEpoch, *more: Any) -> Planned[TxnResponse]:
        own = ProducerIdAndEpoch(transaction.producer_id, transaction.epoch)
        return original(transaction, own, *more)

    patch.setattr(shard, "plan_end", plan)


def repeated_ends_are_refused(patch: Patch) -> None:
    original = ending.plan_end

    def plan(transaction: Transaction, identity: ProducerIdAndEpoch, *more: Any) -> Planned[TxnResponse]:
        if transaction.epoch == identity.epoch + 1:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        return original(transaction, identity, *more)

    patch.setattr(shard, "plan_end", plan)


def epochs_have_no_end(patch: Patch) -> None:
    patch.setattr(Transaction, "is_exhausted", False)


def aborted_transactions_are_not_told(patch: Patch) -> None:
    patch.setattr(Log, "aborted_in", lambda self, slice_, offset, upper_offset: [])


def repeated_batches_are_told_another_offset(patch: Patch) -> None:
    original = Producers.repetition

    def repetition(self: Producers, header: BatchHeader) -> AppendedBatch | None:
        found = original(self, header)
        return None if found is None else found._replace(first_offset=found.first_offset + 5)

    patch.setattr(Producers, "repetition", repetition)


# Partitions


def replicas_are_removed_at_once(patch: Patch) -> None:
    """A reassignment does not wait until the replicas that it adds have everything."""

    def complete(replicas: Any, removing: Any, adding: Any, in_sync: Any) -> Any:
        staying = tuple(each for each in replicas if each not in removing)
        still_in_sync = tuple(each for each in in_sync if each in staying)
        return staying, (), (), still_in_sync or in_sync

    patch.setattr(partitions, "_complete_reassignment", complete)


# Logs and offsets


def reads_end_with_the_segment(patch: Patch) -> None:
    original = Log.read

    def read(self: Log, offset: int, upper_offset: int, size_max: int, *, whole_first_batch: bool) -> Any:
        segment = self.segments[max(bisect_right(self._bases, offset) - 1, 0)]
        if segment is not self.segments[-1] and segment.find(offset) is None:
            return None
        return original(self, offset, upper_offset, size_max, whole_first_batch=whole_first_batch)

    patch.setattr(Log, "read", read)


def lookups_find_deleted_records(patch: Patch) -> None:
    original = Log.offset_by_time
    patch.setattr(Log, "offset_by_time", lambda self, timestamp, start: original(self, timestamp, 0))


def lookups_before_the_log_find_nothing(patch: Patch) -> None:
    original = Log.offset_by_time

    def offset_by_time(self: Log, timestamp: int, start_offset: int) -> tuple[int, int] | None:
        found = original(self, timestamp, start_offset)
        return None if found is not None and found[1] == start_offset > 0 else found

    patch.setattr(Log, "offset_by_time", offset_by_time)


def uncommitted_offsets_are_zero(patch: Patch) -> None:
    none = k09_offset_fetch._NONE
    patch.setattr(k09_offset_fetch, "_NONE", none._replace(offset=0))


# Clients


def cut_logs_are_not_noticed(patch: Patch) -> None:
    original = Positions._compare_epoch_end

    def compare(self: Positions, pending: Any, end: EpochEnd, leader_epoch: int) -> None:
        unknown = EpochEnd(NO_EPOCH, UNKNOWN_OFFSET)
        original(self, pending, unknown, leader_epoch)

    patch.setattr(Positions, "_compare_epoch_end", compare)


def recreated_topics_keep_their_epochs(patch: Patch) -> None:
    """The client takes a topic of the same name for the same topic."""
    original = Metadata._apply_topic

    def apply(self: Metadata, topic: MetadataResponseTopic) -> None:
        before = self.topics.get(topic.name or "")
        original(self, topic)
        now = self.topics.get(topic.name or "")
        if before is not None and now is not None and now.partitions:
            newest = max(before.partitions + now.partitions, key=lambda each: each.leader_epoch)
            self.topics[now.name] = replace(now, partitions=(newest,))

    patch.setattr(Metadata, "_apply_topic", apply)


def lost_responses_are_forgotten(patch: Patch) -> None:
    """A producer goes on with its epoch after its EndTxn had no response."""
    original = Transactions._end

    async def end(self: Transactions, is_commit: bool, deadline: float) -> None:
        await original(self, is_commit, deadline)
        self._needs_epoch_bump = False

    patch.setattr(Transactions, "_end", end)


# Requests


def every_flexible_response_has_tags(patch: Patch) -> None:
    original = RequestContext.__init__

    def init(self: RequestContext, *arguments: Any) -> None:
        original(self, *arguments)
        if self.api_key == ApiVersionsRequest.API_KEY and self.api_version >= 3:
            self.has_tagged_response_header = True

    patch.setattr(RequestContext, "__init__", init)


def any_size_is_waited_for(patch: Patch) -> None:
    original = FrameReader.next_frame

    def next_frame(self: FrameReader) -> memoryview | None:
        try:
            return original(self)
        except BadFrame:
            return None

    patch.setattr(FrameReader, "next_frame", next_frame)
