"""OffsetCommit (key 8), versions 2 to 10: a group's progress, answered once it is written.

Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (10), OFFSET_METADATA_TOO_LARGE, and for all of them
ILLEGAL_GENERATION, GROUP_ID_NOT_FOUND (9 and later), UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, STALE_MEMBER_EPOCH,
REBALANCE_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS. A commit of an older
member epoch is taken where the member has held the partitions ever since (KIP-1251).
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.moment import Moment
from strandline.broker.api.offset_commit_template import AskedCommit, CommitPattern
from strandline.broker.api.table import after
from strandline.broker.server.connection import Answer, RequestContext
from strandline.broker.server.pending_response import Later
from strandline.groups.offsets import OffsetChanges
from strandline.wire.api.k08_offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition
from strandline.wire.codec import decode

if TYPE_CHECKING:
    from strandline.broker.broker import Broker
    from strandline.broker.coordinator.group_runtime import ShardRuntime

_TOPIC_IDS_FROM: Final = 10
_Topic = tuple[str, bytes, list[OffsetCommitRequestPartition]]


class _Waiting(Later):
    """Takes what became of the records, and has the answer's bytes for the connection."""

    __slots__ = ("_asked", "_codes", "error_code")

    def __init__(self, asked: AskedCommit, codes: list[int] | None) -> None:
        """`codes` has one for each partition; None where nothing is wrong so far."""
        self.given = self.request = None  # as every `Later` begins, without another call
        self.error_code = 0  # of all of them, if they could not be written
        self._asked = asked
        self._codes = codes

    def done(self) -> bool:
        return self.given is not None

    def set_result(self, _: object) -> None:
        if self.error_code:
            body = self._asked.answer(repeat(self.error_code))
        elif self._codes is None:
            body = self._asked.all_written()
        else:
            body = self._asked.answer(self._codes)
        self.give((body,))


def handle_raw(broker: Broker, context: RequestContext) -> Answer:
    version, body, position = context.api_version, context.body, context.position
    pattern = context.connection.commit_pattern
    if pattern is not None:
        runtime = pattern.runtime
        now = runtime.now()
        changes = pattern.read(version, body, position, broker.image.version, now.wall_ms)
        if changes is not None:
            asked = pattern.asked
            try:
                runtime.shard.offset_requests.check_commit(*asked.who, changes, version, now)
            except KafkaError as error:
                return _refused(asked, None, error)
            return _written(asked, changes, None, runtime, now)
    request = decode(OffsetCommitRequest, version, body, position)
    load = broker.groups.first_load(request.group_id)
    if load is not None:
        return after(load, lambda: _decoded(broker, context, request))
    return _decoded(broker, context, request)


def _decoded(broker: Broker, context: RequestContext, request: OffsetCommitRequest) -> Answer:
    asked = AskedCommit(context.api_version, request)
    known, codes = _known(broker, asked)
    if not known:
        return (asked.answer(codes),)  # no group comes to be by it
    group_id = asked.group_id
    try:
        runtime = broker.groups.loaded(group_id) or broker.groups.shard_of(group_id)
        now = runtime.now()
        changes = [OffsetChanges.of(group_id, *topic, now.wall_ms) for topic in known]
        runtime.shard.offset_requests.check_commit(*asked.who, changes, asked.version, now)
    except KafkaError as error:
        return _refused(asked, codes, error)
    changes, given = runtime.shard.offset_requests.with_allowed_notes(changes)
    if given is not None:
        following = iter(given)
        codes = [code or next(following) for code in codes]
    if any(codes):
        return _written(asked, changes, codes, runtime, now)
    if CommitPattern.can_be_of(asked, changes):
        connection = context.connection
        likeness = asked.likeness(changes)
        if likeness == connection.commit_likeness:
            connection.commit_pattern = CommitPattern(asked, request, changes, runtime, broker.image.version)
        connection.commit_likeness = likeness
    return _written(asked, changes, None, runtime, now)


def _known(broker: Broker, asked: AskedCommit) -> tuple[list[_Topic], list[int]]:
    """What there is, and for each partition of the request an error code, 0 where it is there."""
    by_id = asked.version >= _TOPIC_IDS_FROM
    found: list[_Topic] = []
    codes: list[int] = []
    for topic in asked.topics:
        name = broker.topic_name(topic.topic_id) if by_id else topic.name
        known = broker.image.topics.get(name)
        if known is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            codes += [int(code)] * len(topic.partitions)
            continue
        there = [each for each in topic.partitions if each.partition_index in known.partitions]
        codes += [
            0 if each.partition_index in known.partitions else int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            for each in topic.partitions
        ]
        if there:
            found.append((name, known.topic_id, there))
    return found, codes


def _written(
    asked: AskedCommit,
    changes: list[OffsetChanges],
    codes: list[int] | None,
    runtime: ShardRuntime,
    now: Moment,
) -> Answer:
    """`codes` has one for each partition, 0 for those that `changes` are about; None where that is all of them."""
    waiting = _Waiting(asked, codes)
    if asked.retention_ms < 0:
        runtime.commit(changes, waiting, waiting)
    else:
        expire_ms = now.wall_ms + asked.retention_ms
        outcome = runtime.shard.offset_requests.expiring(changes, expire_ms)
        runtime.run(outcome.answer(waiting, waiting))
    return waiting if waiting.given is None else waiting.given


def _refused(asked: AskedCommit, codes: list[int] | None, error: KafkaError) -> Answer:
    code = int(error.code)
    return (asked.answer(repeat(code) if codes is None else [each or code for each in codes]),)
