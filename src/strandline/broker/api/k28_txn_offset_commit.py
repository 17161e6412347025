"""TxnOffsetCommit (key 28), versions 0 to 5: commits a group's offsets as a part of a transaction.

The response comes once the offsets are written; they are valid when the transaction commits. From version 3 on the
member names itself, and is fenced as in OffsetCommit (KIP-447). Version 5 adds the group to the transaction by itself
(KIP-890). Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE, and for all partitions
ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING,
INVALID_TXN_STATE, TRANSACTION_ABORTABLE (4 and later), CONCURRENT_TRANSACTIONS, NOT_COORDINATOR,
COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch
from strandline.broker.api.services import Services
from strandline.broker.coordinator.group_runtime import GroupRuntime
from strandline.broker.coordinator.runtime import coordinator_error
from strandline.broker.coordinator.txn_verification import TxnClientSupport, guards_for
from strandline.broker.server.pending_response import AwaitedMessage
from strandline.broker.server.request_context import RequestContext
from strandline.groups.committed_offset import OffsetChanges
from strandline.groups.result import CoordinatorResult
from strandline.partition.open_transactions import VerificationGuard
from strandline.wire.api.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

REQUEST = TxnOffsetCommitRequest
_KNOWS_LOADING_FROM: Final = 2
_ABORTABLE_ERROR_FROM: Final = 4
_VERSION_2_FROM: Final = 5
_NO_SEQUENCE: Final = -1
_Topic = tuple[str, bytes, list[TxnOffsetCommitRequestPartition]]


def first_load(services: Services, request: TxnOffsetCommitRequest) -> asyncio.Task[None] | None:
    return services.groups.first_load(request.group_id)


async def handle(
    services: Services, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    existing: list[_Topic] = []
    response, places = _prepare(services, request, existing)
    try:
        if existing:
            return await _commit(services, context.api_version, request, existing, response, places)
    except KafkaError as error:
        code = error.code
        if code == ErrorCode.NETWORK_EXCEPTION:
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.api_version < _KNOWS_LOADING_FROM:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        for place in places:
            place.error_code = code
    return response


def _prepare(
    services: Services, request: TxnOffsetCommitRequest, existing: list[_Topic]
) -> tuple[TxnOffsetCommitResponse, list[TxnOffsetCommitResponsePartition]]:
    """Returns the response with the errors that are known, and the places in it of the other partitions, which go to
    `existing` in the same order."""
    topics = []
    places: list[TxnOffsetCommitResponsePartition] = []
    for topic in request.topics:
        known = services.image.topics.get(topic.name)
        partitions, there = [], []
        for partition in topic.partitions:
            place = TxnOffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=ErrorCode.NONE
            )
            partitions.append(place)
            if known is None or partition.partition_index not in known.partitions:
                place.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            places.append(place)
            there.append(partition)
        if known is not None and there:
            existing.append((topic.name, known.topic_id, there))
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=tuple(partitions)))
    return TxnOffsetCommitResponse(throttle_time_ms=0, topics=tuple(topics)), places


async def _commit(
    services: Services,
    version: int,
    request: TxnOffsetCommitRequest,
    existing: list[_Topic],
    response: TxnOffsetCommitResponse,
    places: list[TxnOffsetCommitResponsePartition],
) -> TxnOffsetCommitResponse:
    runtime = services.groups.shard_of_named(request.group_id)
    guard = await _guard(services, version, request, runtime)
    # The shard may have been loaded again while the coordinator of the transaction verified the partition.
    runtime = services.groups.shard_of(request.group_id)
    now = runtime.now()
    requested = [OffsetChanges.of(request.group_id, *topic, now.wall_ms) for topic in existing]
    requests = runtime.shard.offset_requests
    requests.check_commit_in_transaction(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        requested,
    )
    requests.create_group_if_absent(request.group_id, now)
    changes, codes = requests.with_allowed_notes(requested)
    if codes is not None:
        for place, code in zip(places, codes, strict=True):
            place.error_code = code
    if not changes:
        return response
    pending = AwaitedMessage()
    result = CoordinatorResult(responses=[(pending, response)], commits=changes)
    runtime.commit_in_transaction(result, request.producer_id, request.producer_epoch, guard)
    written: TxnOffsetCommitResponse = await pending
    return written


async def _guard(
    services: Services, version: int, request: TxnOffsetCommitRequest, runtime: GroupRuntime
) -> VerificationGuard | None:
    support = TxnClientSupport.OLD
    if version >= _ABORTABLE_ERROR_FROM:
        is_version_2 = version >= _VERSION_2_FROM
        support = TxnClientSupport.TRANSACTION_VERSION_2 if is_version_2 else TxnClientSupport.ABORTABLE_ERROR
    identity = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    to_verify = [(runtime.replica, _NO_SEQUENCE)]
    (guard,) = await guards_for(
        services.node, services.transactions, request.transactional_id, identity, support, to_verify
    )
    if isinstance(guard, KafkaError):
        raise KafkaError(coordinator_error(guard.code), guard.message)
    return guard
