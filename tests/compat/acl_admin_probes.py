"""The requests of `acl_probes` about transactions, settings, the cluster and its users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from strandline.wire.api import (
    k22_init_producer_id,
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
    k38_create_delegation_token,
    k39_renew_delegation_token,
    k40_expire_delegation_token,
    k41_describe_delegation_token,
    k43_elect_leaders,
    k44_incremental_alter_configs,
    k45_alter_partition_reassignments,
    k46_list_partition_reassignments,
    k48_describe_client_quotas,
    k49_alter_client_quotas,
    k50_describe_user_scram_credentials,
    k51_alter_user_scram_credentials,
    k55_describe_quorum,
    k57_update_features,
    k60_describe_cluster,
    k64_unregister_broker,
    k65_describe_transactions,
    k66_list_transactions,
    k74_list_config_resources,
    k80_add_raft_voter,
    k81_remove_raft_voter,
)
from tests.compat.acl_cases import ABSENT_TOPIC, GROUP, OTHER_TOPIC, OWNER, TOPIC, TRANSACTION

_Asked = Iterator[tuple[str, Any, int]]


def transactions(topic_id: bytes, now_ms: int) -> _Asked:
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


def configs(topic_id: bytes, now_ms: int) -> _Asked:
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


def cluster(topic_id: bytes, now_ms: int) -> _Asked:
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


def quorum(topic_id: bytes, now_ms: int) -> _Asked:
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


def users(topic_id: bytes, now_ms: int) -> _Asked:
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
