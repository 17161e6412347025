"""TxnOffsetCommit (key 28), versions 0 to 5: a group's progress as a part of a transaction.

Answered once it is written; it counts when the transaction commits. From version 3 on the member says who it is, and is
fenced like in OffsetCommit (KIP-447). Version 5 adds the group to the transaction by itself (KIP-890). Errors by
partition: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE, and for all of them ILLEGAL_GENERATION,
UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING, INVALID_TXN_STATE,
TRANSACTION_ABORTABLE (4 and later), CONCURRENT_TRANSACTIONS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
COORDINATOR_LOAD_IN_PROGRESS.
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
    wanted: list[_Topic] = []
    response, places = _prepare(services, request, wanted)
    try:
        if wanted:
            return await _commit(services, context.api_version, request, wanted, response, places)
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
    services: Services, request: TxnOffsetCommitRequest, wanted: list[_Topic]
) -> tuple[TxnOffsetCommitResponse, list[TxnOffsetCommitResponsePartition]]:
    """The answer with what is wrong already; the rest goes to `wanted`, its places in the answer in the same order."""
    topics = []
    places: list[TxnOffsetCommitResponsePartition] = []
    for topic in request.topics:
        known = services.image.topics.get(topic.name)
        partitions, there = [], []
        for asked in topic.partitions:
            place = TxnOffsetCommitResponsePartition(
                partition_index=asked.partition_index, error_code=ErrorCode.NONE
            )
            partitions.append(place)
            if known is None or asked.partition_index not in known.partitions:
                place.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            places.append(place)
            there.append(asked)
        if known is not None and there:
            wanted.append((topic.name, known.topic_id, there))
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=tuple(partitions)))
    return TxnOffsetCommitResponse(throttle_time_ms=0, topics=tuple(topics)), places


async def _commit(
    services: Services,
    version: int,
    request: TxnOffsetCommitRequest,
    wanted: list[_Topic],
    response: TxnOffsetCommitResponse,
    places: list[TxnOffsetCommitResponsePartition],
) -> TxnOffsetCommitResponse:
    runtime = services.groups.shard_of_named(request.group_id)
    guard = await _guard(services, version, request, runtime)
    # It may have been loaded anew while the coordinator of the transaction was asked.
    runtime = services.groups.shard_of(request.group_id)
    now = runtime.now()
    asked = [OffsetChanges.of(request.group_id, *topic, now.wall_ms) for topic in wanted]
    requests = runtime.shard.offset_requests
    requests.check_commit_in_transaction(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        asked,
    )
    requests.create_group_if_absent(request.group_id, now)
    changes, codes = requests.with_allowed_notes(asked)
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
    asked = [(runtime.replica, _NO_SEQUENCE)]
    (guard,) = await guards_for(
        services.node, services.transactions, request.transactional_id, identity, support, asked
    )
    if isinstance(guard, KafkaError):
        raise KafkaError(coordinator_error(guard.code), guard.message)
    return guard
