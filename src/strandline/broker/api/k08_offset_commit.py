"""OffsetCommit (key 8), versions 2 to 10: a group's progress, answered once it is written.

Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (10), OFFSET_METADATA_TOO_LARGE, and for all of them
ILLEGAL_GENERATION, GROUP_ID_NOT_FOUND (9 and later), UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, STALE_MEMBER_EPOCH,
REBALANCE_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS. A commit of an older
member epoch is taken where the member has held the partitions ever since (KIP-1251).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.connection import Answer, Body, RequestContext
from strandline.groups.offset_requests import OffsetToCommit
from strandline.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from strandline.wire.codec import decode, encode

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

_TOPIC_IDS_FROM: Final = 10


class _Waiting:
    """Takes the response and has its bytes for the connection: one future and one turn of the loop less than usual."""

    __slots__ = ("_version", "body")

    def __init__(self, version: int) -> None:
        self.body: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
        self._version = version

    def done(self) -> bool:
        return self.body.done()

    def set_result(self, response: OffsetCommitResponse) -> None:
        self.body.set_result((encode(response, self._version),))


def handle_raw(broker: Broker, context: RequestContext) -> Answer:
    request = decode(OffsetCommitRequest, context.api_version, context.body, context.position)
    wanted: list[OffsetToCommit] = []
    response = _prepare(broker, context, request, wanted)
    try:
        runtime = broker.groups.shard_of(request.group_id)
        outcome, codes = runtime.shard.offset_requests.commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            request.retention_time_ms,
            wanted,
            context.api_version,
            runtime.now(),
        )
    except KafkaError as error:
        _fill(response, [int(error.code)] * len(wanted))
        return (encode(response, context.api_version),)
    _fill(response, codes)
    waiting = _Waiting(context.api_version)
    runtime.commit(outcome.answer(waiting, response))
    return waiting.body


_PENDING: Final = 1 << 14  # an error code that no one has: the place of one that is not known yet


def _prepare(
    broker: Broker, context: RequestContext, request: OffsetCommitRequest, wanted: list[OffsetToCommit]
) -> OffsetCommitResponse:
    """The answer with what is wrong already; the rest goes to `wanted`, in order."""
    topics = []
    for topic in request.topics:
        by_id = context.api_version >= _TOPIC_IDS_FROM
        name = broker.topic_name(topic.topic_id) if by_id else topic.name
        known = broker.image.topics.get(name)
        partitions = []
        for partition in topic.partitions:
            code: int = _PENDING
            if known is None:
                code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif partition.partition_index not in known.partitions:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                wanted.append(
                    OffsetToCommit(
                        name,
                        known.topic_id,
                        partition.partition_index,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata,
                    )
                )
            partitions.append(
                OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            )
        topics.append(
            OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions))
        )
    return OffsetCommitResponse(topics=tuple(topics))


def _fill(response: OffsetCommitResponse, codes: list[int]) -> None:
    following = iter(codes)
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code == _PENDING:
                partition.error_code = next(following)
