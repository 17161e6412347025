"""OffsetCommit (key 8), versions 2 to 10: commits a group's offsets; the response comes once they are committed.

Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (10), OFFSET_METADATA_TOO_LARGE, and for all
partitions ILLEGAL_GENERATION, GROUP_ID_NOT_FOUND (9 and later), UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
STALE_MEMBER_EPOCH, REBALANCE_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS. A
commit of an older member epoch is accepted if the member has held the partitions ever since (KIP-1251).
"""

from __future__ import annotations

from itertools import repeat
from typing import Final, NamedTuple

from strandline.base.acls import AclOperation
from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.moment import Moment
from strandline.broker.api.offset_commit_template import CommitRequest, CommitTemplate
from strandline.broker.api.services import Services
from strandline.broker.api.topic_access import access_of
from strandline.broker.authorization.access import RequestAccess
from strandline.broker.coordinator.group_runtime import GroupRuntime
from strandline.broker.server.dispatch import after
from strandline.broker.server.pending_response import Handled, PendingResponse
from strandline.broker.server.request_context import RequestContext
from strandline.groups.committed_offset import OffsetChanges
from strandline.wire.api.k08_offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition
from strandline.wire.codec import decode

_TOPIC_IDS_FROM: Final = 10
_Topic = tuple[str, bytes, list[OffsetCommitRequestPartition]]


class CommitState(NamedTuple):
    """The state of a connection's commits: the shape of the last one, and the template if two were alike."""

    shape: tuple[object, ...]
    template: CommitTemplate | None


class _PendingCommit(PendingResponse):
    """A pending response that is completed once the records are written, or could not be; it encodes the response."""

    __slots__ = ("_codes", "_commit", "error_code")

    def __init__(self, commit: CommitRequest, codes: list[int] | None) -> None:
        """`codes` has an error code for each partition; None if there is no error so far."""
        self.body = self.request = None  # the initial state of a `PendingResponse`, without a call
        self.error_code = 0  # the error of all partitions, if the records could not be written
        self._commit = commit
        self._codes = codes

    def respond(self, _: object) -> None:
        if self.body is not None:
            return
        if self.error_code:
            body = self._commit.response(repeat(self.error_code))
        elif self._codes is None:
            body = self._commit.all_written()
        else:
            body = self._commit.response(self._codes)
        self.complete((body,))


def handle_raw(services: Services, context: RequestContext) -> Handled:
    version, body, position = context.api_version, context.body, context.position
    state: CommitState | None = context.connection.handler_state.get(OffsetCommitRequest.API_KEY)
    if state is not None and (template := state.template) is not None:
        runtime = template.runtime
        now = runtime.now()
        changes = template.read(version, body, position, services.image.version, now.wall_ms)
        if changes is not None:
            commit = template.request
            try:
                runtime.shard.offset_requests.check_commit(*commit.committer, changes, version)
            except KafkaError as error:
                return _refused(commit, None, error)
            runtime.shard.offset_requests.commit_accepted(commit.group_id, commit.committer[1], now)
            return _write(commit, changes, None, runtime, now)
    request = decode(OffsetCommitRequest, version, body, position)
    load = services.groups.first_load(request.group_id)
    if load is not None:
        return after(load, lambda: _handle(services, context, request))
    return _handle(services, context, request)


def _handle(services: Services, context: RequestContext, request: OffsetCommitRequest) -> Handled:
    commit = CommitRequest(context.api_version, request, context.times)
    access = access_of(services, context)
    if access is not None and not access.allows_on_group(AclOperation.READ, commit.group_id):
        return _refused(commit, None, KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    known, codes = _known(services, commit, access)
    if not known:
        return (commit.response(codes),)  # this creates no group
    group_id = commit.group_id
    try:
        runtime = services.groups.loaded(group_id) or services.groups.shard_of(group_id)
        now = runtime.now()
        changes = [OffsetChanges.of(group_id, *topic, now.wall_ms) for topic in known]
        runtime.shard.offset_requests.check_commit(*commit.committer, changes, commit.version)
    except KafkaError as error:
        return _refused(commit, codes, error)
    runtime.shard.offset_requests.commit_accepted(group_id, commit.committer[1], now)
    changes, refused = runtime.shard.offset_requests.with_allowed_notes(changes)
    if refused is not None:
        following = iter(refused)
        codes = [code or next(following) for code in codes]
    if any(codes):
        return _write(commit, changes, codes, runtime, now)
    if CommitTemplate.fits(commit, changes):
        _remember(services, context, commit, request, changes, runtime)
    return _write(commit, changes, None, runtime, now)


def _remember(
    services: Services,
    context: RequestContext,
    commit: CommitRequest,
    request: OffsetCommitRequest,
    changes: list[OffsetChanges],
    runtime: GroupRuntime,
) -> None:
    """Makes a template from the second of two requests with the same shape."""
    states, key = context.connection.handler_state, OffsetCommitRequest.API_KEY
    shape = commit.shape(changes)
    earlier: CommitState | None = states.get(key)
    template = None if earlier is None else earlier.template
    if earlier is not None and earlier.shape == shape:
        template = CommitTemplate(commit, request, changes, runtime, services.image.version)
    states[key] = CommitState(shape, template)


def _known(
    services: Services, commit: CommitRequest, access: RequestAccess | None
) -> tuple[list[_Topic], list[int]]:
    """Returns the partitions that exist, and an error code for each partition of the request, 0 if it exists."""
    by_id = commit.version >= _TOPIC_IDS_FROM
    found: list[_Topic] = []
    codes: list[int] = []
    for topic in commit.topics:
        name = services.node.topic_name(topic.topic_id) if by_id else topic.name
        known = services.image.topics.get(name)
        is_denied = access is not None and bool(name) and not access.allows_on_topic(AclOperation.READ, name)
        if is_denied:
            codes += [int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)] * len(topic.partitions)
            continue
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


def _write(
    commit: CommitRequest,
    changes: list[OffsetChanges],
    codes: list[int] | None,
    runtime: GroupRuntime,
    now: Moment,
) -> Handled:
    """Writes a commit. `codes` has an error code for each partition, 0 for those in `changes`; None if those are
    all."""
    pending = _PendingCommit(commit, codes)
    if commit.retention_ms < 0:
        runtime.commit(changes, pending, pending)
    else:
        expire_ms = now.wall_ms + commit.retention_ms
        result = runtime.shard.offset_requests.expiring(changes, expire_ms)
        runtime.run(result.respond_to(pending, pending))
    return pending if pending.body is None else pending.body


def _refused(commit: CommitRequest, codes: list[int] | None, error: KafkaError) -> Handled:
    code = int(error.code)
    return (commit.response(repeat(code) if codes is None else [each or code for each in codes]),)
