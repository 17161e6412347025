"""The lag of groups: one ListGroups and one OffsetFetch for each coordinator, one ListOffsets for each leader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.admin.calls import check
from strandline.client.admin.groups import GroupAdmin, GroupDescription, classic_group, consumer_group
from strandline.client.admin.topics import TopicAdmin
from strandline.client.errors import InvalidTopicError, KafkaError, UnsupportedVersionError
from strandline.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from strandline.wire.api.k15_describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from strandline.wire.api.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from strandline.wire.api.k69_consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

# Several groups in one request; topics by name.
_GROUPS_SINCE: Final = 8
_NAMES_UNTIL: Final = 9
_LATEST: Final = -1
_CONSUMER: Final = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLagDescription:
    """One partition that a group has committed. `end_offset` is -1, and so is `lag`, where no leader told it."""

    topic: str
    partition: int
    committed_offset: int
    end_offset: int
    member_id: str = ""
    client_id: str = ""
    host: str = ""

    @property
    def lag(self) -> int:
        return -1 if self.end_offset < 0 else max(self.end_offset - self.committed_offset, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLagDescription:
    """A group with the partitions that it has committed, whether it has members or not."""

    group_id: str
    state: str
    type: str
    coordinator_id: int
    member_count: int
    partitions: tuple[PartitionLagDescription, ...]

    @property
    def lag(self) -> int:
        return sum(max(each.lag, 0) for each in self.partitions)


class LagAdmin(GroupAdmin, TopicAdmin):
    """The call about lag."""

    async def group_lag(
        self, group_ids: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> dict[str, GroupLagDescription]:
        """Returns the lag of groups, or of all groups that have committed something; those that do not exist are left
        out."""
        deadline = self._deadline(timeout)
        wanted = None if group_ids is None else set(group_ids)
        groups: dict[str, GroupDescription] = {}
        coordinators: dict[str, int] = {}
        committed: dict[str, dict[TopicPartition, int]] = {}
        for node_id in self._nodes():
            found = await self._retry(partial(self._groups_of, node_id, wanted, deadline), deadline)
            if found:
                offsets = partial(self._offsets_of, node_id, list(found), deadline)
                committed |= await self._retry(offsets, deadline)
                groups |= found
                coordinators |= dict.fromkeys(found, node_id)
        ends = await self._ends({each for offsets in committed.values() for each in offsets}, deadline)
        return {
            group_id: _described(groups[group_id], coordinators[group_id], committed.get(group_id, {}), ends)
            for group_id in sorted(groups)
        }

    async def _groups_of(
        self, node_id: int, wanted: set[str] | None, deadline: float
    ) -> dict[str, GroupDescription]:
        """Returns the groups that a broker coordinates, with their members."""
        listed = await self._call_broker(node_id, ListGroupsRequest(), ListGroupsResponse, deadline)
        check(listed.error_code, None, f"groups of broker {node_id}")
        kinds = {
            each.group_id: each.group_type.lower()
            for each in listed.groups
            if (wanted is None or each.group_id in wanted) and each.group_type.lower() != "share"
        }
        found: dict[str, GroupDescription] = {}
        modern = tuple(name for name, kind in kinds.items() if kind == _CONSUMER)
        if modern:
            try:
                request = ConsumerGroupDescribeRequest(group_ids=modern, include_authorized_operations=False)
                response = await self._call_broker(node_id, request, ConsumerGroupDescribeResponse, deadline)
                found |= {
                    each.group_id: consumer_group(each) for each in response.groups if not each.error_code
                }
            except UnsupportedVersionError:
                pass
        others = tuple(name for name in kinds if name not in found)
        if others:
            described = await self._call_broker(
                node_id, DescribeGroupsRequest(groups=others), DescribeGroupsResponse, deadline
            )
            found |= {each.group_id: classic_group(each) for each in described.groups if not each.error_code}
        return {name: found[name] for name in kinds if name in found}

    async def _offsets_of(
        self, node_id: int, group_ids: list[str], deadline: float
    ) -> dict[str, dict[TopicPartition, int]]:
        connection = self._cluster.connection(node_id)
        await connection.open()
        version = connection.version(OffsetFetchRequest, at_most=_NAMES_UNTIL)
        if version < _GROUPS_SINCE:
            found = {}
            for group_id in group_ids:
                offsets = await self.list_group_offsets(
                    group_id, timeout=max(deadline - self._cluster.now(), 0.001)
                )
                found[group_id] = {where: each.offset for where, each in offsets.items()}
            return found
        request = OffsetFetchRequest(
            groups=tuple(OffsetFetchRequestGroup(group_id=each, topics=None) for each in group_ids)
        )
        response = await connection.call(request, OffsetFetchResponse, version=version)
        result: dict[str, dict[TopicPartition, int]] = {}
        for group in response.groups:
            check(group.error_code, None, f"group {group.group_id}")
            result[group.group_id] = {
                TopicPartition(topic.name, each.partition_index): each.committed_offset
                for topic in group.topics
                for each in topic.partitions
                if each.committed_offset >= 0 and not each.error_code
            }
        return result

    async def _ends(self, partitions: set[TopicPartition], deadline: float) -> dict[TopicPartition, int]:
        """Returns the ends of the partitions whose leaders respond. A topic that is gone has none."""
        by_leader: dict[int, dict[str, list[int]]] = {}
        names = sorted({each.topic for each in partitions})
        for topic in names:  # all before the first wait: one request gets the metadata of all
            with suppress(InvalidTopicError):  # raised again below
                self._cluster.add_topic(topic)
        for topic in names:
            try:
                info = await self._cluster.topic(topic, deadline)
            except KafkaError as error:
                if error.code not in (
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                ):
                    raise
                continue
            for each in info.partitions:
                if TopicPartition(topic, each.partition) in partitions and each.leader_id >= 0:
                    by_leader.setdefault(each.leader_id, {}).setdefault(topic, []).append(each.partition)
        ends: dict[TopicPartition, int] = {}
        for node_id, topics in sorted(by_leader.items()):
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=0,
                topics=tuple(
                    ListOffsetsTopic(
                        name=name,
                        partitions=tuple(
                            ListOffsetsPartition(partition_index=index, timestamp=_LATEST)
                            for index in indexes
                        ),
                    )
                    for name, indexes in topics.items()
                ),
            )
            if node_id not in self._cluster.metadata.nodes:
                continue
            response = await self._retry(
                partial(self._call_broker, node_id, request, ListOffsetsResponse, deadline), deadline
            )
            ends |= {
                TopicPartition(topic.name, each.partition_index): each.offset
                for topic in response.topics
                for each in topic.partitions
                if not each.error_code
            }
        return ends


def _described(
    group: GroupDescription,
    coordinator_id: int,
    committed: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> GroupLagDescription:
    owners = {where: member for member in group.members for where in member.assignment}
    return GroupLagDescription(
        group_id=group.group_id,
        state=group.state,
        type=group.type,
        coordinator_id=coordinator_id,
        member_count=len(group.members),
        partitions=tuple(
            PartitionLagDescription(
                topic=where.topic,
                partition=where.partition,
                committed_offset=committed[where],
                end_offset=ends.get(where, -1),
                member_id=owners[where].member_id if where in owners else "",
                client_id=owners[where].client_id if where in owners else "",
                host=owners[where].host if where in owners else "",
            )
            for where in sorted(committed)
        ),
    )
