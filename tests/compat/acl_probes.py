"""Requests that show which operations are allowed: at least one for each API key, whose success harms nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from strandline.base.ids import ZERO_UUID
from strandline.wire.api import (
    k00_produce,
    k01_fetch,
    k02_list_offsets,
    k03_metadata,
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
    k15_describe_groups,
    k16_list_groups,
    k19_create_topics,
    k20_delete_topics,
    k21_delete_records,
    k23_offset_for_leader_epoch,
    k37_create_partitions,
    k42_delete_groups,
    k47_offset_delete,
    k61_describe_producers,
    k68_consumer_group_heartbeat,
    k69_consumer_group_describe,
    k75_describe_topic_partitions,
)
from strandline.wire.schema import Request
from tests.batches import batch
from tests.compat.acl_admin_probes import cluster, configs, quorum, transactions, users
from tests.compat.acl_cases import ABSENT_TOPIC, GROUP, OTHER_TOPIC, TOPIC, TRANSACTION


class Probe(NamedTuple):
    name: str
    request: Request
    version: int


def every_probe(topic_id: bytes, now_ms: int) -> Iterator[Probe]:
    """`topic_id` is that of TOPIC on the broker that is asked."""
    for probes in (_data, _topics, _groups, _members, transactions, configs, cluster, quorum, users):
        for name, request, version in probes(topic_id, now_ms):
            yield Probe(f"{name} {request.API_KEY} v{version}", request, version)


_Asked = Iterator[tuple[str, Any, int]]


def _data(topic_id: bytes, now_ms: int) -> _Asked:
    def produce(name: str, records: bytes, transactional_id: str | None = None) -> Request:
        data = k00_produce.PartitionProduceData(index=0, records=records)
        return k00_produce.ProduceRequest(
            transactional_id=transactional_id,
            acks=1,
            timeout_ms=5000,
            topic_data=(k00_produce.TopicProduceData(name=name, partition_data=(data,)),),
        )

    records = batch(timestamp=now_ms)
    for name in (TOPIC, OTHER_TOPIC, ABSENT_TOPIC):
        yield f"Produce {name}", produce(name, records), 9
    yield "Produce with an id", produce(TOPIC, records, TRANSACTION), 9
    by_id = produce("", records)
    by_id.topic_data[0].topic_id = topic_id  # type: ignore[attr-defined]
    yield "Produce by id", by_id, 13
    for version, name, given in ((12, TOPIC, ZERO_UUID), (12, ABSENT_TOPIC, ZERO_UUID), (15, "", topic_id)):
        partition = k01_fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        topics = (k01_fetch.FetchTopic(topic=name, topic_id=given, partitions=(partition,)),)
        fetch = k01_fetch.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=topics)
        yield f"Fetch {name or 'by id'}", fetch, version
    listed = k02_list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-2)
    yield (
        "ListOffsets",
        k02_list_offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=tuple(
                k02_list_offsets.ListOffsetsTopic(name=name, partitions=(listed,))
                for name in (TOPIC, OTHER_TOPIC, ABSENT_TOPIC)
            ),
        ),
        7,
    )
    deleted = k21_delete_records.DeleteRecordsPartition(partition_index=0, offset=0)
    yield (
        "DeleteRecords",
        k21_delete_records.DeleteRecordsRequest(
            topics=tuple(
                k21_delete_records.DeleteRecordsTopic(name=name, partitions=(deleted,))
                for name in (TOPIC, OTHER_TOPIC)
            ),
            timeout_ms=5000,
        ),
        2,
    )
    epoch = k23_offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    yield (
        "OffsetForLeaderEpoch",
        k23_offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            topics=(k23_offset_for_leader_epoch.OffsetForLeaderTopic(topic=TOPIC, partitions=(epoch,)),)
        ),
        4,
    )
    yield (
        "DescribeProducers",
        k61_describe_producers.DescribeProducersRequest(
            topics=(k61_describe_producers.TopicRequest(name=TOPIC, partition_indexes=(0,)),)
        ),
        0,
    )


def _topics(topic_id: bytes, now_ms: int) -> _Asked:
    asked = k03_metadata.MetadataRequestTopic
    for creates in (False, True):
        # The absent topic is never created: its name is not allowed.
        absent = "not/allowed" if creates else ABSENT_TOPIC
        yield (
            f"Metadata {'creating' if creates else ''}",
            k03_metadata.MetadataRequest(
                topics=tuple(asked(name=name) for name in (TOPIC, OTHER_TOPIC, absent)),
                allow_auto_topic_creation=creates,
                include_cluster_authorized_operations=True,
                include_topic_authorized_operations=True,
            ),
            10,
        )
    yield (
        "Metadata of all",
        k03_metadata.MetadataRequest(topics=None, include_topic_authorized_operations=True),
        12,
    )
    yield "Metadata by id", k03_metadata.MetadataRequest(topics=(asked(name=None, topic_id=topic_id),)), 12
    yield (
        "DescribeTopicPartitions",
        k75_describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=tuple(
                k75_describe_topic_partitions.TopicRequest(name=name)
                for name in (TOPIC, OTHER_TOPIC, ABSENT_TOPIC)
            )
        ),
        0,
    )
    yield (
        "DescribeTopicPartitions of all",
        k75_describe_topic_partitions.DescribeTopicPartitionsRequest(topics=()),
        0,
    )
    created = [
        k19_create_topics.CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, assignments=(), configs=()
        )
        for name in (ABSENT_TOPIC, TOPIC, "payments-1-absent")
    ]
    yield (
        "CreateTopics",
        k19_create_topics.CreateTopicsRequest(topics=tuple(created), timeout_ms=5000, validate_only=True),
        7,
    )
    states = [k20_delete_topics.DeleteTopicState(name=name) for name in (ABSENT_TOPIC, "payments-1-absent")]
    states.append(k20_delete_topics.DeleteTopicState(name=None, topic_id=b"\x07" * 16))
    yield "DeleteTopics", k20_delete_topics.DeleteTopicsRequest(topics=tuple(states), timeout_ms=5000), 6
    yield (
        "CreatePartitions",
        k37_create_partitions.CreatePartitionsRequest(
            topics=tuple(
                k37_create_partitions.CreatePartitionsTopic(name=name, count=5, assignments=None)
                for name in (TOPIC, ABSENT_TOPIC)
            ),
            timeout_ms=5000,
            validate_only=True,
        ),
        3,
    )


def _groups(topic_id: bytes, now_ms: int) -> _Asked:
    for version, named in ((9, True), (10, False)):
        committed = k08_offset_commit.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=3, committed_metadata=""
        )
        topics = (
            k08_offset_commit.OffsetCommitRequestTopic(
                name=TOPIC if named else "",
                topic_id=ZERO_UUID if named else topic_id,
                partitions=(committed,),
            ),
        )
        if named:
            topics += (
                k08_offset_commit.OffsetCommitRequestTopic(name=ABSENT_TOPIC, partitions=(committed,)),
            )
        yield (
            "OffsetCommit",
            k08_offset_commit.OffsetCommitRequest(group_id=GROUP, member_id="", topics=topics),
            version,
        )
    fetched = k09_offset_fetch.OffsetFetchRequestTopics
    for name, wanted, version in (
        ("OffsetFetch", (fetched(name=TOPIC, partition_indexes=(0,)),), 9),
        ("OffsetFetch by id", (fetched(topic_id=topic_id, partition_indexes=(0,)),), 10),
        ("OffsetFetch of all", None, 9),
    ):
        groups = tuple(
            k09_offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=wanted)
            for group in (GROUP, "else")
        )
        yield name, k09_offset_fetch.OffsetFetchRequest(groups=groups), version
    old = k09_offset_fetch.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,))
    yield "OffsetFetch", k09_offset_fetch.OffsetFetchRequest(group_id=GROUP, topics=(old,)), 5


def _members(topic_id: bytes, now_ms: int) -> _Asked:
    for kind, keys in ((0, (GROUP, "else")), (1, (TRANSACTION, "else"))):
        find = k10_find_coordinator.FindCoordinatorRequest
        yield "FindCoordinator", find(key_type=kind, coordinator_keys=keys), 4
        yield "FindCoordinator", find(key_type=kind, key=keys[0]), 2
    yield (
        "JoinGroup",
        k11_join_group.JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=(k11_join_group.JoinGroupRequestProtocol(name="range", metadata=b""),),
        ),
        5,
    )
    yield "Heartbeat", k12_heartbeat.HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m"), 4
    member = k13_leave_group.MemberIdentity(member_id="m")
    yield "LeaveGroup", k13_leave_group.LeaveGroupRequest(group_id=GROUP, members=(member,)), 4
    yield (
        "SyncGroup",
        k14_sync_group.SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="m", assignments=()),
        4,
    )
    yield (
        "DescribeGroups",
        k15_describe_groups.DescribeGroupsRequest(groups=(GROUP, "else"), include_authorized_operations=True),
        5,
    )
    yield "ListGroups", k16_list_groups.ListGroupsRequest(), 4
    yield "DeleteGroups", k42_delete_groups.DeleteGroupsRequest(groups_names=("group-1-absent", "else")), 2
    partition = k47_offset_delete.OffsetDeleteRequestPartition(partition_index=9)
    yield (
        "OffsetDelete",
        k47_offset_delete.OffsetDeleteRequest(
            group_id=GROUP,
            topics=(k47_offset_delete.OffsetDeleteRequestTopic(name=TOPIC, partitions=(partition,)),),
        ),
        0,
    )
    for name in (TOPIC, OTHER_TOPIC):
        yield (
            "ConsumerGroupHeartbeat",
            k68_consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                group_id=GROUP, member_id="m", member_epoch=7, subscribed_topic_names=(name,)
            ),
            0,
        )
    yield (
        "ConsumerGroupDescribe",
        k69_consumer_group_describe.ConsumerGroupDescribeRequest(
            group_ids=(GROUP, "else"), include_authorized_operations=True
        ),
        0,
    )
