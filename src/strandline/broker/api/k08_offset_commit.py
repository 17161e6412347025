"""OffsetCommit (key 8), versions 2 to 10: a group's progress, answered once it is written.

Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (10), OFFSET_METADATA_TOO_LARGE, and for all of them
ILLEGAL_GENERATION, GROUP_ID_NOT_FOUND (9 and later), UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, STALE_MEMBER_EPOCH,
REBALANCE_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS. A commit of an older
member epoch is taken where the member has held the partitions ever since (KIP-1251).
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import repeat
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.base.buffers import Buffer
from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.connection import Answer, RequestContext
from strandline.broker.handlers import after
from strandline.broker.later import Later
from strandline.groups.offset_requests import AskedOffset, TopicToCommit
from strandline.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from strandline.wire.codec import decode, encode
from strandline.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from strandline.broker.broker import Broker
    from strandline.broker.group_runtime import ShardRuntime

_TOPIC_IDS_FROM: Final = 10
_FLEXIBLE_FROM: Final = 8
_ID_BYTES: Final = 16
_CACHED_PARTITIONS_MAX: Final = 100
_INT32: Final = Struct(">i")
# A partition without a note, from version 8 on: index, offset, leader epoch, the note's length, no tagged fields.
_WITHOUT_NOTE: Final = Struct(">iqibb")
# Lengths of one byte; 0 is null and what is counted begins at 1.
_LENGTH_MAX: Final = 0x7F
_SHORT_NOTES: Final = frozenset((0, 1))


class _Topic(NamedTuple):
    name: str
    topic_id: bytes
    partitions: list[AskedOffset]


class _Request(NamedTuple):
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    retention_ms: int
    topics: list[_Topic]


# Of an answer: names, ids and partitions.
_Places = tuple[tuple[str, bytes, tuple[int, ...]], ...]


class _Waiting(Later):
    """Takes what became of the records, and has the answer's bytes for the connection."""

    __slots__ = ("_codes", "_topics", "_version", "error_code")

    def __init__(self, version: int, topics: list[_Topic], codes: list[int]) -> None:
        super().__init__()
        self.error_code = 0  # of all of them, if they could not be written
        self._version = version
        self._topics = topics
        self._codes = codes

    def done(self) -> bool:
        return self.given is not None

    def set_result(self, _: object) -> None:
        codes = [self.error_code] * len(self._codes) if self.error_code else self._codes
        self.give((_answer(self._version, self._topics, codes),))


def handle_raw(broker: Broker, context: RequestContext) -> Answer:
    version = context.api_version
    request = walked(bytes(context.body), context.position, version)
    if request is None:
        request = decoded(context.body, context.position, version)
    runtime = broker.groups.loaded(request.group_id)
    if runtime is None:
        load = broker.groups.first_load(request.group_id)
        if load is not None:
            return after(load, lambda: _commit(broker, version, request, None))
    return _commit(broker, version, request, runtime)


def walked(data: bytes, position: int, version: int) -> _Request | None:
    """A request as most of them are: short texts, no notes, no tagged fields. None for any other, or a broken one."""
    if version < _FLEXIBLE_FROM:
        return None
    try:
        group_id, position = _short_text(data, position)
        (generation,) = _INT32.unpack_from(data, position)
        member_id, position = _short_text(data, position + 4)
        instance_id = None
        if data[position]:
            instance_id, position = _short_text(data, position)
        else:
            position += 1
        topic_count = data[position]
        position += 1
        topics = []
        for _ in range(topic_count - 1):
            name, topic_id = "", ZERO_UUID
            if version >= _TOPIC_IDS_FROM:
                topic_id = data[position : position + _ID_BYTES]
                position += _ID_BYTES
            else:
                name, position = _short_text(data, position)
            count = data[position] - 1
            if not 0 <= count < _LENGTH_MAX:
                return None
            partitions, offsets, epochs, note_lengths, tags = _columns(data, position + 1, count)
            position += 1 + count * _WITHOUT_NOTE.size
            if data[position] or any(tags) or not _SHORT_NOTES.issuperset(note_lengths):
                return None
            asked: list[AskedOffset] = list(zip(partitions, offsets, epochs, repeat(None)))
            position += 1
            topics.append(_Topic(name, topic_id, asked))
    except (IndexError, ValueError, struct_error):
        return None
    if not 0 < topic_count <= _LENGTH_MAX or data[position:] != b"\0":
        return None
    return _Request(group_id, generation, member_id, instance_id, -1, topics)


def _columns(data: bytes, position: int, count: int) -> tuple[tuple[int, ...], ...]:
    """Each field of `count` partitions without a note; no call of Python for any of them."""
    fields = _partitions_without_note(count).unpack_from(data, position)
    return fields[0::5], fields[1::5], fields[2::5], fields[3::5], fields[4::5]


@cache
def _partitions_without_note(count: int) -> Struct:
    return Struct(">" + _WITHOUT_NOTE.format[1:] * count)


def _short_text(data: bytes, position: int) -> tuple[str, int]:
    length = data[position]
    end = position + length
    if not 0 < length <= _LENGTH_MAX or end >= len(data):
        raise ValueError("for the codec, which reads all lengths and says what is wrong")
    return data[position + 1 : end].decode(), end


def decoded(data: Buffer, position: int, version: int) -> _Request:
    request = decode(OffsetCommitRequest, version, data, position)
    topics = [
        _Topic(
            topic.name,
            topic.topic_id,
            [
                (
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata,
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return _Request(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        request.retention_time_ms,
        topics,
    )


def _commit(broker: Broker, version: int, request: _Request, runtime: ShardRuntime | None) -> Answer:
    group_id, generation, member_id, instance_id, retention_ms, topics = request
    wanted, codes = _known(broker, version, topics)
    if not wanted:
        return (_answer(version, topics, codes),)  # no group comes to be by it
    try:
        if runtime is None:
            runtime = broker.groups.shard_of(group_id)
        outcome, given = runtime.shard.offset_requests.commit(
            group_id, member_id, instance_id, generation, retention_ms, wanted, version, runtime.now()
        )
    except KafkaError as error:
        codes = [code or int(error.code) for code in codes]
        return (_answer(version, topics, codes),)
    if any(codes):
        following = iter(given)
        codes = [code or next(following) for code in codes]
    else:
        codes = given
    waiting = _Waiting(version, topics, codes)
    runtime.commit(outcome.answer(waiting, waiting))
    return waiting if waiting.given is None else waiting.given


def _known(broker: Broker, version: int, topics: list[_Topic]) -> tuple[list[TopicToCommit], list[int]]:
    """What there is, and for each partition of the request an error code, 0 where it is there."""
    by_id = version >= _TOPIC_IDS_FROM
    wanted = []
    codes: list[int] = []
    for name, topic_id, partitions in topics:
        if by_id:
            name = broker.topic_name(topic_id)
        known = broker.image.topics.get(name)
        if known is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            codes += [int(code)] * len(partitions)
            continue
        there = [each for each in partitions if each[0] in known.partitions]
        if len(there) == len(partitions):
            codes += [0] * len(there)
        else:
            codes += [
                0 if each[0] in known.partitions else int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                for each in partitions
            ]
        if there:
            wanted.append(TopicToCommit(name, known.topic_id, there))
    return wanted, codes


def _answer(version: int, topics: list[_Topic], codes: list[int]) -> bytes:
    places = tuple(
        [(name, topic_id, tuple([each[0] for each in partitions])) for name, topic_id, partitions in topics]
    )
    if len(codes) > _CACHED_PARTITIONS_MAX or any(codes):
        return _encoded(version, places, codes)
    return _all_written(version, places)


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
