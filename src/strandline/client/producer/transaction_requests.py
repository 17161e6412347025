"""The requests of a transaction, built from plain values, and the errors in their responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from strandline.base.errors import ErrorCode, is_retriable
from strandline.base.ids import ProducerIdAndEpoch, TopicPartition
from strandline.client.net.partitions import by_topic
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest
from strandline.wire.api.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from strandline.wire.api.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from strandline.wire.api.k26_end_txn import EndTxnRequest
from strandline.wire.api.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)


def init_request(
    transactional_id: str, timeout_ms: int, previous: ProducerIdAndEpoch
) -> InitProducerIdRequest:
    """Returns the InitProducerId request. `previous` is the id and epoch that the producer had, so that only it, and no
    older one, gets the next epoch (KIP-360)."""
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=previous.producer_id,
        producer_epoch=previous.epoch,
    )


def add_partitions_request(
    transactional_id: str, id_and_epoch: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
) -> AddPartitionsToTxnRequest:
    """Returns the AddPartitionsToTxn request for these partitions."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=id_and_epoch.producer_id,
        v3_and_below_producer_epoch=id_and_epoch.epoch,
        v3_and_below_topics=tuple(
            AddPartitionsToTxnTopic(name=name, partitions=numbers)
            for name, numbers in by_topic(partitions).items()
        ),
    )


def partition_errors(response: AddPartitionsToTxnResponse) -> list[int]:
    """Returns the error codes of all partitions."""
    return [
        each.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]


def add_offsets_request(
    transactional_id: str, id_and_epoch: ProducerIdAndEpoch, group_id: str
) -> AddOffsetsToTxnRequest:
    """Returns the AddOffsetsToTxn request for a group."""
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=id_and_epoch.producer_id,
        producer_epoch=id_and_epoch.epoch,
        group_id=group_id,
    )


def txn_offset_commit_request(
    transactional_id: str,
    id_and_epoch: ProducerIdAndEpoch,
    group_id: str,
    group: Any,
    offsets: Mapping[Any, Any],
) -> TxnOffsetCommitRequest:
    """Returns the TxnOffsetCommit request for a group. `group` may be an object with generation_id, member_id and
    group_instance_id, by which the coordinator refuses a former member; an id alone refuses nobody."""
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for (topic, partition), where in offsets.items():
        epoch = getattr(where, "leader_epoch", None)
        topics.setdefault(topic, []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=where if isinstance(where, int) else where.offset,
                committed_leader_epoch=-1 if epoch is None else epoch,
                committed_metadata=getattr(where, "metadata", ""),
            )
        )
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_id,
        producer_id=id_and_epoch.producer_id,
        producer_epoch=id_and_epoch.epoch,
        generation_id=getattr(group, "generation_id", -1),
        member_id=getattr(group, "member_id", ""),
        group_instance_id=getattr(group, "group_instance_id", None),
        topics=tuple(
            TxnOffsetCommitRequestTopic(name=name, partitions=tuple(partitions))
            for name, partitions in topics.items()
        ),
    )


def end_request(transactional_id: str, id_and_epoch: ProducerIdAndEpoch, is_commit: bool) -> EndTxnRequest:
    """Returns the EndTxn request that commits or aborts."""
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=id_and_epoch.producer_id,
        producer_epoch=id_and_epoch.epoch,
        committed=is_commit,
    )


def first_error(codes: list[int]) -> int:
    """Returns the error that matters most of several: one that a retry does not help before one that it does, and the
    cause before the items that were not attempted because of it."""
    wrong = [code for code in codes if code != ErrorCode.NONE]
    return min(wrong, key=_severity, default=ErrorCode.NONE)


def _severity(code: int) -> int:
    if code == ErrorCode.OPERATION_NOT_ATTEMPTED:
        return 2
    return 1 if is_retriable(code) else 0
