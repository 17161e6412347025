"""Admin calls about consumer groups and their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.admin.calls import AdminBase, check, error_from, results_or_raise
from strandline.client.arguments import listed
from strandline.client.errors import GroupError, KafkaError, UnsupportedVersionError, error_for
from strandline.client.net.coordinators import GROUP
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
)
from strandline.wire.api.k15_describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from strandline.wire.api.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from strandline.wire.api.k42_delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from strandline.wire.api.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from strandline.wire.api.k69_consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from strandline.wire.codec import DecodeError, decode
from strandline.wire.records.consumer_protocol import ConsumerProtocolAssignment

# From these versions on topics are named by ids. A group's offsets may outlive those, so older versions are used.
_COMMIT_TOPIC_IDS_SINCE: Final = 10
_FETCH_TOPIC_IDS_SINCE: Final = 10
# From this version on one OffsetFetch is for several groups.
_FETCH_GROUPS_SINCE: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group as the list of groups has it."""

    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """One member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group with its members."""

    group_id: str
    type: str  # "classic" or "consumer"
    state: str
    assignor: str
    members: tuple[MemberDescription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """A committed offset of a group."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class GroupAdmin(AdminBase):
    """The calls about groups."""

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = (), timeout: float | None = None
    ) -> list[GroupListing]:
        """Returns the groups of all brokers: each broker lists the groups that it coordinates."""
        deadline = self._deadline(timeout)
        state_filter, type_filter = tuple(states), tuple(types)
        results: dict[str, GroupListing] = {}

        async def once(node_id: int) -> ListGroupsResponse:
            request = ListGroupsRequest(states_filter=state_filter, types_filter=type_filter)
            response = await self._call_broker(node_id, request, ListGroupsResponse, deadline)
            check(response.error_code, None, f"groups of broker {node_id}")
            return response

        for node_id in self._nodes():
            response = await self._retry_while_known(node_id, partial(once, node_id), deadline)
            for each in () if response is None else response.groups:
                results[each.group_id] = GroupListing(
                    group_id=each.group_id,
                    protocol_type=each.protocol_type,
                    state=each.group_state,
                    type=each.group_type,
                )
        return [results[name] for name in sorted(results)]

    async def describe_groups(
        self, group_ids: Iterable[str], *, timeout: float | None = None
    ) -> dict[str, GroupDescription]:
        """Returns the groups with their members."""
        group_ids = listed(group_ids, "group_ids")
        deadline = self._deadline(timeout)
        results: dict[str, GroupDescription | KafkaError] = {}
        for group_id in group_ids:
            try:
                results[group_id] = await self._retry_with_coordinator(
                    group_id,
                    partial(self._describe_group, group_id, deadline),
                    deadline,
                )
            except KafkaError as error:
                results[group_id] = error
        return results_or_raise(results)

    async def _describe_group(self, group_id: str, deadline: float) -> GroupDescription:
        """Returns the group, described as one of KIP-848 first, and as a classic one if it is not that."""
        try:
            request = ConsumerGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=False)
            response = await self._call_coordinator(
                group_id, request, ConsumerGroupDescribeResponse, deadline
            )
            group = response.groups[0]
            if group.error_code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                check(group.error_code, group.error_message, f"group {group_id}")
                return consumer_group(group)
        except UnsupportedVersionError:
            pass  # an older broker
        classic = await self._call_coordinator(
            group_id, DescribeGroupsRequest(groups=(group_id,)), DescribeGroupsResponse, deadline
        )
        described = classic.groups[0]
        check(described.error_code, described.error_message, f"group {group_id}")
        if described.group_state == "Dead":
            raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id}")
        return classic_group(described)

    async def delete_groups(self, group_ids: Iterable[str], *, timeout: float | None = None) -> None:
        """Deletes groups that have no members."""
        group_ids = listed(group_ids, "group_ids")
        deadline = self._deadline(timeout)
        results: dict[str, bool | KafkaError] = {}

        async def once(group_id: str) -> bool:
            request = DeleteGroupsRequest(groups_names=(group_id,))
            response = await self._call_coordinator(group_id, request, DeleteGroupsResponse, deadline)
            check(response.results[0].error_code, None, f"group {group_id}")
            return True

        for group_id in group_ids:
            try:
                results[group_id] = await self._retry_with_coordinator(
                    group_id,
                    partial(once, group_id),
                    deadline,
                )
            except KafkaError as error:
                results[group_id] = error
        results_or_raise(results)

    async def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, CommittedOffset]:
        """Returns the committed offsets of a group: all, or those of the given partitions that have one."""
        deadline = self._deadline(timeout)
        requested = None if partitions is None else by_topic(partitions)

        async def once() -> dict[TopicPartition, CommittedOffset]:
            connection = await self._cluster.coordinators.connection(GROUP, group_id, deadline)
            version = connection.version(OffsetFetchRequest, at_most=_FETCH_TOPIC_IDS_SINCE - 1)
            request = _fetch_request(group_id, requested, require_stable, version)
            response = await connection.call(request, OffsetFetchResponse, version=version)
            return _fetched_offsets(response, group_id, version)

        return await self._retry_with_coordinator(group_id, once, deadline)

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset | int],
        *,
        timeout: float | None = None,
    ) -> None:
        """Commits offsets for a group that has no members."""
        deadline = self._deadline(timeout)
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            committed = CommittedOffset(offset=offset) if isinstance(offset, int) else offset
            topics.setdefault(topic, []).append(
                OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    committed_metadata=committed.metadata,
                )
            )
        request = OffsetCommitRequest(
            group_id=group_id,
            member_id="",
            topics=tuple(
                OffsetCommitRequestTopic(name=name, partitions=tuple(results))
                for name, results in topics.items()
            ),
        )

        async def once() -> None:
            connection = await self._cluster.coordinators.connection(GROUP, group_id, deadline)
            version = connection.version(OffsetCommitRequest, at_most=_COMMIT_TOPIC_IDS_SINCE - 1)
            response = await connection.call(request, OffsetCommitResponse, version=version)
            results_or_raise(
                {
                    TopicPartition(topic.name, each.partition_index): _group_in_use(each.error_code, group_id)
                    or error_from(
                        each.error_code,
                        None,
                        f"offset of {topic.name}-{each.partition_index} for group {group_id}",
                    )
                    or True
                    for topic in response.topics
                    for each in topic.partitions
                }
            )

        await self._retry_with_coordinator(group_id, once, deadline)

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> None:
        """Deletes a group's offsets of these partitions."""
        deadline = self._deadline(timeout)
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=tuple(
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=tuple(
                        OffsetDeleteRequestPartition(partition_index=number) for number in numbers
                    ),
                )
                for topic, numbers in by_topic(partitions).items()
            ),
        )

        async def once() -> None:
            response = await self._call_coordinator(group_id, request, OffsetDeleteResponse, deadline)
            check(response.error_code, None, f"group {group_id}")
            results_or_raise(
                {
                    TopicPartition(topic.name, each.partition_index): error_from(
                        each.error_code, None, f"offset of {topic.name}-{each.partition_index}"
                    )
                    or True
                    for topic in response.topics
                    for each in topic.partitions
                }
            )

        await self._retry_with_coordinator(group_id, once, deadline)


def consumer_group(group: Any) -> GroupDescription:
    """Returns a group of KIP-848 from the response of ConsumerGroupDescribe."""
    return GroupDescription(
        group_id=group.group_id,
        type="consumer",
        state=group.group_state,
        assignor=group.assignor_name,
        members=tuple(
            MemberDescription(
                member_id=each.member_id,
                instance_id=each.instance_id,
                client_id=each.client_id,
                host=each.client_host,
                assignment=tuple(
                    TopicPartition(topic.topic_name, number)
                    for topic in each.assignment.topic_partitions
                    for number in topic.partitions
                ),
            )
            for each in group.members
        ),
    )


def classic_group(group: Any) -> GroupDescription:
    """Returns a classic group from the response of DescribeGroups."""
    return GroupDescription(
        group_id=group.group_id,
        type="classic",
        state=group.group_state,
        assignor=group.protocol_data,
        members=tuple(
            MemberDescription(
                member_id=each.member_id,
                instance_id=each.group_instance_id,
                client_id=each.client_id,
                host=each.client_host,
                assignment=_assignment(bytes(each.member_assignment)),
            )
            for each in group.members
        ),
    )


def _assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Returns the partitions of a classic member if it is a consumer. Other kinds of groups have bytes of their own
    there."""
    if len(data) < 2:
        return ()
    version = min(int.from_bytes(data[:2], "big"), ConsumerProtocolAssignment.VERSIONS.high)
    try:
        results = decode(ConsumerProtocolAssignment, version, data, 2)
    except DecodeError:
        return ()
    return tuple(
        TopicPartition(topic.topic, number)
        for topic in results.assigned_partitions
        for number in topic.partitions
    )


def _fetch_request(
    group_id: str, topics: dict[str, tuple[int, ...]] | None, require_stable: bool, version: int
) -> OffsetFetchRequest:
    if version >= _FETCH_GROUPS_SINCE:
        requested = None
        if topics is not None:
            requested = tuple(
                OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
                for name, numbers in topics.items()
            )
        return OffsetFetchRequest(
            groups=(OffsetFetchRequestGroup(group_id=group_id, topics=requested),),
            require_stable=require_stable,
        )
    old = None
    if topics is not None:
        old = tuple(
            OffsetFetchRequestTopic(name=name, partition_indexes=numbers) for name, numbers in topics.items()
        )
    return OffsetFetchRequest(group_id=group_id, topics=old, require_stable=require_stable)


def _fetched_offsets(
    response: OffsetFetchResponse, group_id: str, version: int
) -> dict[TopicPartition, CommittedOffset]:
    results: dict[TopicPartition, CommittedOffset | KafkaError] = {}
    source: Any = response.groups[0] if version >= _FETCH_GROUPS_SINCE else response
    check(source.error_code, None, f"group {group_id}")
    for topic in source.topics:
        for each in topic.partitions:
            error = error_from(each.error_code, None, f"{topic.name}-{each.partition_index}")
            if error is not None or each.committed_offset >= 0:
                results[TopicPartition(topic.name, each.partition_index)] = error or CommittedOffset(
                    offset=each.committed_offset,
                    leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata or "",
                )
    return results_or_raise(results)


def _group_in_use(code: int, group_id: str) -> KafkaError | None:
    """Returns the error of an admin's commit for a group that has members. Kafka's own text for it addresses a
    member."""
    if code != ErrorCode.UNKNOWN_MEMBER_ID:
        return None
    return GroupError(
        code,
        f"group {group_id} has members",
        advice="stop its consumers first: their commits would overwrite these",
    )
