"""A group's committed offsets: read and written through its coordinator.

Rules:
1. A retriable refusal, or a coordinator that moved, is tried again until the deadline. So is a stale member epoch:
   the coordinator has given the member the next one, and the response to its heartbeat is on the way.
2. A commit by a member carries its generation (or member epoch). A coordinator that has a later one refuses it, and
   the application gets CommitFailedError: others own the partitions now. A consumer that has subscribed and is not
   a member gets the same error without a request.
3. With isolation.level=read_committed only stable offsets are requested: the coordinator has the consumer wait for
   one that a transaction is about to change (KIP-447).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, TopicPartition
from strandline.base.waiting import within
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.errors import (
    CommitFailedError,
    ConnectionFailedError,
    FencedInstanceError,
    KafkaError,
    KafkaTimeoutError,
    error_for,
)
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.connections import NodeConnection
from strandline.client.net.coordinators import COORDINATOR_MOVED, GROUP
from strandline.client.net.partitions import by_topic
from strandline.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from strandline.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)

_TOPIC_IDS_SINCE: Final = 10  # from here on both requests name topics by their ids
_GROUPS_SINCE: Final = 8  # from here on one OffsetFetch is for several groups

_GROUP_MOVED_ON: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    }
)


class CommitIdentity(NamedTuple):
    """The identity under which offsets are committed: that of a member, or by default nobody in particular."""

    generation: int = -1  # or the member's epoch
    member_id: str = ""
    instance_id: str | None = None


class NotAMember(NamedTuple):
    """The state of a consumer that has subscribed and is not a member of the group. It commits nothing: the
    coordinator would not refuse a commit without a member, although others may own the partitions now."""

    is_joining: bool = False


Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class CommittedOffsets:
    """Requests to a group's coordinator about its offsets."""

    def __init__(
        self, cluster: ClusterClient, group_id: str, identity: Callable[[], CommitIdentity | NotAMember]
    ) -> None:
        """`identity` returns the identity to commit under. It is called for each attempt: the generation may change
        meanwhile."""
        self._cluster = cluster
        self._group_id = group_id
        self._identity = identity
        self._require_stable = cluster.config.text("isolation.level") == "read_committed"

    async def commit(self, offsets: Offsets, deadline: float) -> None:
        """Commits these offsets, or raises."""
        if not offsets:
            return
        self._committer()
        await self._with_retries(lambda connection: self._commit(connection, offsets), "commit", deadline)

    async def fetch(
        self, partitions: Iterable[TopicPartition], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the committed offsets; partitions without one are left out."""
        topics = by_topic(partitions)
        if not topics:
            return {}
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}

        async def attempt(connection: NodeConnection) -> None:
            offsets.update(await self._fetch(connection, topics))

        await self._with_retries(attempt, "fetch of committed offsets", deadline)
        return offsets

    async def _with_retries(
        self, attempt: Callable[[NodeConnection], object], what: str, deadline: float
    ) -> None:
        pause = self._cluster.backoff()
        coordinators = self._cluster.coordinators
        while True:
            previous = self._identity()
            try:
                connection = await coordinators.connection(GROUP, self._group_id, deadline)
                left = max(0.001, deadline - self._cluster.now())
                await within(left, attempt(connection))  # type: ignore[arg-type]
                return
            except KafkaError as error:
                failure = error
            except TimeoutError:
                raise KafkaTimeoutError(
                    None, f"the {what} of group {self._group_id} got no response in time"
                ) from None
            if failure.code in COORDINATOR_MOVED or isinstance(failure, ConnectionFailedError):
                coordinators.forget(GROUP, self._group_id)
            is_stale = failure.code == ErrorCode.STALE_MEMBER_EPOCH and self._is_member()
            if is_stale and self._identity() != previous:
                continue  # The epoch has changed since the request was built.
            if not failure.retriable and not is_stale:
                raise failure
            seconds = pause.failed()
            if self._cluster.now() + seconds >= deadline:
                raise KafkaTimeoutError(
                    None, f"the {what} of group {self._group_id} failed for too long: {failure}"
                ) from failure
            await asyncio.sleep(seconds)

    # Commit

    def _is_member(self) -> bool:
        return not isinstance(identity := self._identity(), NotAMember) and identity != CommitIdentity()

    def _committer(self) -> CommitIdentity:
        member = self._identity()
        if not isinstance(member, NotAMember):
            return member
        code = ErrorCode.REBALANCE_IN_PROGRESS if member.is_joining else ErrorCode.UNKNOWN_MEMBER_ID
        raise _commit_error(code, self._group_id)

    async def _commit(self, connection: NodeConnection, offsets: Offsets) -> None:
        member = self._committer()
        names = by_topic(offsets)
        ids = {name: self._topic_id(name) for name in names}
        has_ids = ZERO_UUID not in ids.values()
        version = connection.version(OffsetCommitRequest, at_most=None if has_ids else _TOPIC_IDS_SINCE - 1)
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id if version >= 7 else None,
            topics=tuple(
                OffsetCommitRequestTopic(
                    name=name,
                    topic_id=ids[name],
                    partitions=tuple(
                        _commit_partition(index, offsets[TopicPartition(name, index)]) for index in indexes
                    ),
                )
                for name, indexes in names.items()
            ),
        )
        response = await connection.call(request, OffsetCommitResponse, version=version)
        for topic in response.topics:
            for each in topic.partitions:
                if each.error_code != ErrorCode.NONE:
                    raise _commit_error(each.error_code, self._group_id)

    def _topic_id(self, name: str) -> bytes:
        topic = self._cluster.metadata.topics.get(name)
        return ZERO_UUID if topic is None else topic.topic_id

    # Fetch

    async def _fetch(
        self, connection: NodeConnection, topics: Mapping[str, tuple[int, ...]]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        ids = {name: self._topic_id(name) for name in topics}
        has_ids = ZERO_UUID not in ids.values()
        version = connection.version(OffsetFetchRequest, at_most=None if has_ids else _TOPIC_IDS_SINCE - 1)
        if version >= _GROUPS_SINCE:
            request = self._grouped_request(topics, ids)
        else:
            request = OffsetFetchRequest(
                group_id=self._group_id,
                topics=tuple(
                    OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                    for name, indexes in topics.items()
                ),
                require_stable=self._require_stable and version >= 7,
            )
        response = await connection.call(request, OffsetFetchResponse, version=version)
        if version < _GROUPS_SINCE:
            _check(response.error_code, self._group_id)
            return _fetched_offsets({topic.name: topic.partitions for topic in response.topics})
        group = response.groups[0]
        _check(group.error_code, self._group_id)
        names = {topic_id: name for name, topic_id in ids.items()}
        return _fetched_offsets(
            {topic.name or names.get(topic.topic_id, ""): topic.partitions for topic in group.topics}
        )

    def _grouped_request(
        self, topics: Mapping[str, tuple[int, ...]], ids: Mapping[str, bytes]
    ) -> OffsetFetchRequest:
        identity = self._identity()
        member = CommitIdentity() if isinstance(identity, NotAMember) else identity
        is_new_protocol = bool(member.member_id) and self._cluster.config.text("group.protocol") == "consumer"
        group = OffsetFetchRequestGroup(
            group_id=self._group_id,
            member_id=member.member_id if is_new_protocol else None,
            member_epoch=member.generation if is_new_protocol else -1,
            topics=tuple(
                OffsetFetchRequestTopics(name=name, topic_id=ids[name], partition_indexes=indexes)
                for name, indexes in topics.items()
            ),
        )
        return OffsetFetchRequest(groups=(group,), require_stable=self._require_stable)


def _commit_partition(index: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


def _commit_error(code: int, group_id: str) -> KafkaError:
    if code in _GROUP_MOVED_ON:
        return CommitFailedError(
            code,
            f"group {group_id} has moved on without this member, and others may own its partitions: it was not in "
            "time for a rebalance, or did not poll within max.poll.interval.ms",
        )
    if code == ErrorCode.REBALANCE_IN_PROGRESS:
        return CommitFailedError(code, f"group {group_id} is rebalancing; poll, then commit again")
    if code == ErrorCode.FENCED_INSTANCE_ID:
        return FencedInstanceError(code, f"group {group_id}")
    return error_for(code, f"commit of group {group_id}")


def _check(code: int, group_id: str) -> None:
    if code != ErrorCode.NONE:
        raise error_for(code, f"committed offsets of group {group_id}")


def _fetched_offsets(
    topics: Mapping[
        str, tuple[OffsetFetchResponsePartition, ...] | tuple[OffsetFetchResponsePartitions, ...]
    ],
) -> dict[TopicPartition, OffsetAndMetadata]:
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for name, partitions in topics.items():
        for each in partitions:
            where = TopicPartition(name, each.partition_index)
            if each.error_code != ErrorCode.NONE:
                raise error_for(each.error_code, f"the committed offset of {where}")
            if each.committed_offset >= 0:
                offsets[where] = OffsetAndMetadata(
                    each.committed_offset, each.metadata or "", each.committed_leader_epoch
                )
    return offsets
