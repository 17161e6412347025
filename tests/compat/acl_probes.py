"""Requests that somebody sends to see what is allowed: for each API key at least one, whose success harms nothing."""

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
    k22_init_producer_id,
    k23_offset_for_leader_epoch,
    k24_add_partitions_to_txn,
    k25_add_offsets_to_txn,
    k26_end_txn,
    k27_write_txn_markers,
    k28_txn_offset_commit,
    k29_describe_acls,
    k30_create_acls,
    k31_delete_acls,
    k32_describe_configs,
    k33_alter_configs,
    k34_alter_replica_log_dirs,
    k35_describe_log_dirs,
    k37_create_partitions,
    k38_create_delegation_token,
    k39_renew_delegation_token,
    k40_expire_delegation_token,
    k41_describe_delegation_token,
    k42_delete_groups,
    k43_elect_leaders,
    k44_incremental_alter_configs,
    k45_alter_partition_reassignments,
    k46_list_partition_reassignments,
    k47_offset_delete,
    k48_describe_client_quotas,
    k49_alter_client_quotas,
    k50_describe_user_scram_credentials,
    k51_alter_user_scram_credentials,
    k55_describe_quorum,
    k57_update_features,
    k60_describe_cluster,
    k61_describe_producers,
    k64_unregister_broker,
    k65_describe_transactions,
    k66_list_transactions,
    k68_consumer_group_heartbeat,
    k69_consumer_group_describe,
    k74_list_config_resources,
    k75_describe_topic_partitions,
    k80_add_raft_voter,
    k81_remove_raft_voter,
)
from strandline.wire.schema import Request
from tests.batches import batch
from tests.compat.acl_cases import GROUP, OTHER_TOPIC, OWNER, TOPIC, TRANSACTION

ABSENT_TOPIC = "orders-1-absent"
_TRANSACTIONAL = 0x10


class Probe(NamedTuple):
    name: str
    request: Request
    version: int


def every_probe(topic_id: bytes, now_ms: int) -> Iterator[Probe]:
    """`topic_id` is that of TOPIC on the broker that is asked."""
    for probes in (_data, _topics, _groups, _transactions, _configs, _cluster, _users):
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


def _transactions(topic_id: bytes, now_ms: int) -> _Asked:
    init = k22_init_producer_id.InitProducerIdRequest
    yield "InitProducerId", init(transactional_id=None, transaction_timeout_ms=60_000), 4
    yield "InitProducerId", init(transactional_id=TRANSACTION, transaction_timeout_ms=60_000), 4
    topics = tuple(
        k24_add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=(0,))
        for name in (TOPIC, OTHER_TOPIC)
    )
    yield (
        "AddPartitionsToTxn",
        k24_add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TRANSACTION,
            v3_and_below_producer_id=99_999,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=topics,
        ),
        3,
    )
    asked = k24_add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id=TRANSACTION, producer_id=99_999, producer_epoch=0, verify_only=True, topics=topics
    )
    yield (
        "AddPartitionsToTxn of brokers",
        k24_add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=(asked,)),
        4,
    )
    yield (
        "AddOffsetsToTxn",
        k25_add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=TRANSACTION, producer_id=99_999, producer_epoch=0, group_id=GROUP
        ),
        3,
    )
    yield (
        "EndTxn",
        k26_end_txn.EndTxnRequest(
            transactional_id=TRANSACTION, producer_id=99_999, producer_epoch=0, committed=False
        ),
        3,
    )
    marked = k27_write_txn_markers.WritableTxnMarkerTopic(name=ABSENT_TOPIC, partition_indexes=(0,))
    marker = k27_write_txn_markers.WritableTxnMarker(
        producer_id=99_999, producer_epoch=0, transaction_result=False, topics=(marked,), coordinator_epoch=0
    )
    yield "WriteTxnMarkers", k27_write_txn_markers.WriteTxnMarkersRequest(markers=(marker,)), 1
    committed = k28_txn_offset_commit.TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    yield (
        "TxnOffsetCommit",
        k28_txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=TRANSACTION,
            group_id=GROUP,
            producer_id=99_999,
            producer_epoch=0,
            generation_id=5,
            member_id="m",
            topics=tuple(
                k28_txn_offset_commit.TxnOffsetCommitRequestTopic(name=name, partitions=(committed,))
                for name in (TOPIC, ABSENT_TOPIC)
            ),
        ),
        3,
    )
    yield (
        "DescribeTransactions",
        k65_describe_transactions.DescribeTransactionsRequest(transactional_ids=(TRANSACTION, "else")),
        0,
    )
    yield (
        "ListTransactions",
        k66_list_transactions.ListTransactionsRequest(state_filters=(), producer_id_filters=()),
        0,
    )


def _configs(topic_id: bytes, now_ms: int) -> _Asked:
    resources = ((2, TOPIC), (2, OTHER_TOPIC), (4, "1"), (8, "1"), (32, GROUP))
    described = tuple(
        k32_describe_configs.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=("cleanup.policy",)
        )
        for kind, name in resources
    )
    yield "DescribeConfigs", k32_describe_configs.DescribeConfigsRequest(resources=described), 4
    changed = tuple(
        k44_incremental_alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=(
                k44_incremental_alter_configs.AlterableConfig(name=key, config_operation=0, value=value),
            ),
        )
        for (kind, name), (key, value) in zip(
            ((2, TOPIC), (2, OTHER_TOPIC), (4, ""), (32, GROUP)),
            (
                ("retention.ms", "86400000"),
                ("retention.ms", "86400000"),
                ("log.cleaner.threads", "1"),
                ("consumer.session.timeout.ms", "45000"),
            ),
            strict=True,
        )
    )
    yield (
        "IncrementalAlterConfigs",
        k44_incremental_alter_configs.IncrementalAlterConfigsRequest(resources=changed, validate_only=True),
        1,
    )
    replaced = k33_alter_configs.AlterConfigsResource(
        resource_type=2,
        resource_name=TOPIC,
        configs=(k33_alter_configs.AlterableConfig(name="retention.ms", value="86400000"),),
    )
    yield "AlterConfigs", k33_alter_configs.AlterConfigsRequest(resources=(replaced,), validate_only=True), 2
    yield "ListConfigResources", k74_list_config_resources.ListConfigResourcesRequest(), 0


def _cluster(topic_id: bytes, now_ms: int) -> _Asked:
    acl = {"principal_filter": "User:nobody", "host_filter": None, "operation": 1, "permission_type": 1}
    match: dict[str, Any] = {"resource_type_filter": 2, "resource_name_filter": "nothing", **acl}
    yield "DescribeAcls", k29_describe_acls.DescribeAclsRequest(**match), 3
    created = k30_create_acls.AclCreation(
        resource_type=4, resource_name="wrong", principal="User:x", host="*", operation=3, permission_type=3
    )
    yield "CreateAcls", k30_create_acls.CreateAclsRequest(creations=(created,)), 3
    yield (
        "DeleteAcls",
        k31_delete_acls.DeleteAclsRequest(filters=(k31_delete_acls.DeleteAclsFilter(**match),)),
        3,
    )
    moved = k34_alter_replica_log_dirs.AlterReplicaLogDir(
        path="/nowhere/at/all",
        topics=(k34_alter_replica_log_dirs.AlterReplicaLogDirTopic(name=TOPIC, partitions=(0,)),),
    )
    yield "AlterReplicaLogDirs", k34_alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=(moved,)), 2
    yield "DescribeLogDirs", k35_describe_log_dirs.DescribeLogDirsRequest(topics=()), 4
    elected = k43_elect_leaders.TopicPartitions(topic=TOPIC, partitions=(0,))
    yield (
        "ElectLeaders",
        k43_elect_leaders.ElectLeadersRequest(topic_partitions=(elected,), timeout_ms=5000),
        2,
    )
    partition = k45_alter_partition_reassignments.ReassignablePartition(partition_index=0, replicas=None)
    topic = k45_alter_partition_reassignments.ReassignableTopic(name=TOPIC, partitions=(partition,))
    yield (
        "AlterPartitionReassignments",
        k45_alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            timeout_ms=5000, topics=(topic,)
        ),
        0,
    )
    yield (
        "ListPartitionReassignments",
        k46_list_partition_reassignments.ListPartitionReassignmentsRequest(timeout_ms=5000, topics=None),
        0,
    )
    yield (
        "DescribeClientQuotas",
        k48_describe_client_quotas.DescribeClientQuotasRequest(components=(), strict=False),
        1,
    )
    entity = k49_alter_client_quotas.EntityData(entity_type="user", entity_name="x")
    change = k49_alter_client_quotas.OpData(key="producer_byte_rate", value=1e6, remove=False)
    entry = k49_alter_client_quotas.EntryData(entity=(entity,), ops=(change,))
    yield (
        "AlterClientQuotas",
        k49_alter_client_quotas.AlterClientQuotasRequest(entries=(entry,), validate_only=True),
        1,
    )
    asked = k55_describe_quorum.PartitionData(partition_index=0)
    topics = (k55_describe_quorum.TopicData(topic_name="__cluster_metadata", partitions=(asked,)),)
    yield "DescribeQuorum", k55_describe_quorum.DescribeQuorumRequest(topics=topics), 1
    yield (
        "UpdateFeatures",
        k57_update_features.UpdateFeaturesRequest(feature_updates=(), validate_only=True),
        1,
    )
    yield (
        "DescribeCluster",
        k60_describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True),
        1,
    )
    yield "UnregisterBroker", k64_unregister_broker.UnregisterBrokerRequest(broker_id=77), 0
    listener = k80_add_raft_voter.Listener(name="CONTROLLER", host="127.0.0.1", port=1)
    yield (
        "AddRaftVoter",
        k80_add_raft_voter.AddRaftVoterRequest(
            cluster_id="wrong",
            timeout_ms=1000,
            voter_id=9,
            voter_directory_id=b"\x01" * 16,
            listeners=(listener,),
        ),
        0,
    )
    yield (
        "RemoveRaftVoter",
        k81_remove_raft_voter.RemoveRaftVoterRequest(
            cluster_id="wrong", voter_id=9, voter_directory_id=b"\x01" * 16
        ),
        0,
    )


def _users(topic_id: bytes, now_ms: int) -> _Asked:
    yield (
        "DescribeUserScramCredentials",
        k50_describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
            users=(k50_describe_user_scram_credentials.UserName(name="nobody"),)
        ),
        0,
    )
    removed = k51_alter_user_scram_credentials.ScramCredentialDeletion(name="nobody", mechanism=1)
    yield (
        "AlterUserScramCredentials",
        k51_alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=(removed,), upsertions=()
        ),
        0,
    )
    create = k38_create_delegation_token.CreateDelegationTokenRequest
    wrong = k38_create_delegation_token.CreatableRenewers(principal_type="Robot", principal_name="r2")
    yield (
        "CreateDelegationToken",
        create(
            owner_principal_type="User", owner_principal_name=OWNER, renewers=(wrong,), max_lifetime_ms=1000
        ),
        3,
    )
    yield (
        "RenewDelegationToken",
        k39_renew_delegation_token.RenewDelegationTokenRequest(hmac=b"none", renew_period_ms=1000),
        2,
    )
    yield (
        "ExpireDelegationToken",
        k40_expire_delegation_token.ExpireDelegationTokenRequest(hmac=b"none", expiry_time_period_ms=1000),
        2,
    )
    yield (
        "DescribeDelegationToken",
        k41_describe_delegation_token.DescribeDelegationTokenRequest(owners=None),
        3,
    )
