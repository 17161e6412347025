"""OffsetCommit (key 8), versions 2 to 10: a group's progress, answered once it is written.

Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (10), OFFSET_METADATA_TOO_LARGE, and for all of them
ILLEGAL_GENERATION, GROUP_ID_NOT_FOUND (9 and later), UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, STALE_MEMBER_EPOCH,
REBALANCE_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS. A commit of an older
member epoch is taken where the member has held the partitions ever since (KIP-1251).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.connection import Answer, Body, RequestContext
from strandline.broker.handlers import after
from strandline.groups.offset_requests import TopicToCommit
from strandline.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from strandline.wire.codec import decode, encode

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

_TOPIC_IDS_FROM: Final = 10
_CACHED_PARTITIONS_MAX: Final = 100

# Of an answer: names, ids and partitions.
_Places = tuple[tuple[str, bytes, tuple[int, ...]], ...]


class _Waiting:
    """Takes what became of the records, and has the answer's bytes for the connection.

    It is no plain future of a response: that would cost a future, a turn of the loop and a response each time.
    """

    __slots__ = ("_codes", "_topics", "_version", "body", "error_code")

    def __init__(self, version: int, topics: Sequence[OffsetCommitRequestTopic], codes: list[int]) -> None:
        self.body: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
        self.error_code = 0  # of all of them, if they could not be written
        self._version = version
        self._topics = topics
        self._codes = codes

    def done(self) -> bool:
        return self.body.done()

    def set_result(self, _: object) -> None:
        codes = [self.error_code] * len(self._codes) if self.error_code else self._codes
        self.body.set_result((_answer(self._version, self._topics, codes),))


def handle_raw(broker: Broker, context: RequestContext) -> Answer:
    version = context.api_version
    request = decode(OffsetCommitRequest, version, context.body, context.position)
    load = broker.groups.first_load(request.group_id)
    if load is not None:
        return after(load, lambda: _commit(broker, version, request))
    return _commit(broker, version, request)


def _commit(broker: Broker, version: int, request: OffsetCommitRequest) -> Answer:
    wanted, codes = _known(broker, version, request.topics)
    if not wanted:
        return (_answer(version, request.topics, codes),)  # no group comes to be by it
    try:
        runtime = broker.groups.shard_of(request.group_id)
        outcome, given = runtime.shard.offset_requests.commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            request.retention_time_ms,
            wanted,
            version,
            runtime.now(),
        )
    except KafkaError as error:
        codes = [code or int(error.code) for code in codes]
        return (_answer(version, request.topics, codes),)
    if any(codes):
        following = iter(given)
        codes = [code or next(following) for code in codes]
    else:
        codes = given
    waiting = _Waiting(version, request.topics, codes)
    runtime.commit(outcome.answer(waiting, waiting))
    return waiting.body


def _known(
    broker: Broker, version: int, topics: Sequence[OffsetCommitRequestTopic]
) -> tuple[list[TopicToCommit], list[int]]:
    """What there is, and for each partition of the request an error code, 0 where it is there."""
    by_id = version >= _TOPIC_IDS_FROM
    wanted = []
    codes: list[int] = []
    for topic in topics:
        name = broker.topic_name(topic.topic_id) if by_id else topic.name
        known = broker.image.topics.get(name)
        if known is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            codes += [int(code)] * len(topic.partitions)
            continue
        there = [each for each in topic.partitions if each.partition_index in known.partitions]
        if len(there) == len(topic.partitions):
            codes += [0] * len(there)
        else:
            codes += [
                0 if each.partition_index in known.partitions else int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                for each in topic.partitions
            ]
        if there:
            wanted.append(TopicToCommit(name, known.topic_id, there))
    return wanted, codes


def _answer(version: int, topics: Sequence[OffsetCommitRequestTopic], codes: list[int]) -> bytes:
    if len(codes) > _CACHED_PARTITIONS_MAX or any(codes):
        return _encoded(version, _places(topics), codes)
    return _all_written(version, _places(topics))


def _places(topics: Sequence[OffsetCommitRequestTopic]) -> _Places:
    return tuple(
        [
            (topic.name, topic.topic_id, tuple([p.partition_index for p in topic.partitions]))
            for topic in topics
        ]
    )


@lru_cache(maxsize=256)
def _all_written(version: int, places: _Places) -> bytes:
    """A consumer commits the same partitions again and again."""
    return _encoded(version, places, [0] * sum(len(partitions) for _, _, partitions in places))


def _encoded(version: int, places: _Places, codes: list[int]) -> bytes:
    following = iter(codes)
    topics = tuple(
        OffsetCommitResponseTopic(
            name=name,
            topic_id=topic_id,
            partitions=tuple(
                OffsetCommitResponsePartition(partition_index=partition, error_code=next(following))
                for partition in partitions
            ),
        )
        for name, topic_id, partitions in places
    )
    return bytes(encode(OffsetCommitResponse(topics=topics), version))
