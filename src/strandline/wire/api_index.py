"""Every API by its key: name, module, versions. Generated from the classes in `wire/api` by `make docs`.

A node announces all of its APIs to each client; importing all of their classes for that would take longer than the rest
of its start.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class IndexedApi(NamedTuple):
    name: str
    module: str
    version_min: int
    version_max: int
    flexible_from: int


API_INDEX: Final = {
    0: IndexedApi("Produce", "k00_produce", 3, 13, 9),
    1: IndexedApi("Fetch", "k01_fetch", 4, 18, 12),
    2: IndexedApi("ListOffsets", "k02_list_offsets", 1, 11, 6),
    3: IndexedApi("Metadata", "k03_metadata", 0, 13, 9),
    8: IndexedApi("OffsetCommit", "k08_offset_commit", 2, 10, 8),
    9: IndexedApi("OffsetFetch", "k09_offset_fetch", 1, 10, 6),
    10: IndexedApi("FindCoordinator", "k10_find_coordinator", 0, 6, 3),
    11: IndexedApi("JoinGroup", "k11_join_group", 0, 9, 6),
    12: IndexedApi("Heartbeat", "k12_heartbeat", 0, 4, 4),
    13: IndexedApi("LeaveGroup", "k13_leave_group", 0, 5, 4),
    14: IndexedApi("SyncGroup", "k14_sync_group", 0, 5, 4),
    15: IndexedApi("DescribeGroups", "k15_describe_groups", 0, 6, 5),
    16: IndexedApi("ListGroups", "k16_list_groups", 0, 5, 3),
    17: IndexedApi("SaslHandshake", "k17_sasl_handshake", 0, 1, 2),
    18: IndexedApi("ApiVersions", "k18_api_versions", 0, 4, 3),
    19: IndexedApi("CreateTopics", "k19_create_topics", 2, 7, 5),
    20: IndexedApi("DeleteTopics", "k20_delete_topics", 1, 6, 4),
    21: IndexedApi("DeleteRecords", "k21_delete_records", 0, 2, 2),
    22: IndexedApi("InitProducerId", "k22_init_producer_id", 0, 6, 2),
    23: IndexedApi("OffsetForLeaderEpoch", "k23_offset_for_leader_epoch", 2, 4, 4),
    24: IndexedApi("AddPartitionsToTxn", "k24_add_partitions_to_txn", 0, 5, 3),
    25: IndexedApi("AddOffsetsToTxn", "k25_add_offsets_to_txn", 0, 4, 3),
    26: IndexedApi("EndTxn", "k26_end_txn", 0, 5, 3),
    27: IndexedApi("WriteTxnMarkers", "k27_write_txn_markers", 1, 2, 1),
    28: IndexedApi("TxnOffsetCommit", "k28_txn_offset_commit", 0, 5, 3),
    29: IndexedApi("DescribeAcls", "k29_describe_acls", 1, 3, 2),
    30: IndexedApi("CreateAcls", "k30_create_acls", 1, 3, 2),
    31: IndexedApi("DeleteAcls", "k31_delete_acls", 1, 3, 2),
    32: IndexedApi("DescribeConfigs", "k32_describe_configs", 1, 4, 4),
    33: IndexedApi("AlterConfigs", "k33_alter_configs", 0, 2, 2),
    34: IndexedApi("AlterReplicaLogDirs", "k34_alter_replica_log_dirs", 1, 2, 2),
    35: IndexedApi("DescribeLogDirs", "k35_describe_log_dirs", 1, 5, 2),
    36: IndexedApi("SaslAuthenticate", "k36_sasl_authenticate", 0, 2, 2),
    37: IndexedApi("CreatePartitions", "k37_create_partitions", 0, 3, 2),
    38: IndexedApi("CreateDelegationToken", "k38_create_delegation_token", 1, 3, 2),
    39: IndexedApi("RenewDelegationToken", "k39_renew_delegation_token", 1, 2, 2),
    40: IndexedApi("ExpireDelegationToken", "k40_expire_delegation_token", 1, 2, 2),
    41: IndexedApi("DescribeDelegationToken", "k41_describe_delegation_token", 1, 3, 2),
    42: IndexedApi("DeleteGroups", "k42_delete_groups", 0, 2, 2),
    43: IndexedApi("ElectLeaders", "k43_elect_leaders", 0, 2, 2),
    44: IndexedApi("IncrementalAlterConfigs", "k44_incremental_alter_configs", 0, 1, 1),
    45: IndexedApi("AlterPartitionReassignments", "k45_alter_partition_reassignments", 0, 1, 0),
    46: IndexedApi("ListPartitionReassignments", "k46_list_partition_reassignments", 0, 0, 0),
    47: IndexedApi("OffsetDelete", "k47_offset_delete", 0, 0, 1),
    48: IndexedApi("DescribeClientQuotas", "k48_describe_client_quotas", 0, 1, 1),
    49: IndexedApi("AlterClientQuotas", "k49_alter_client_quotas", 0, 1, 1),
    50: IndexedApi("DescribeUserScramCredentials", "k50_describe_user_scram_credentials", 0, 0, 0),
    51: IndexedApi("AlterUserScramCredentials", "k51_alter_user_scram_credentials", 0, 0, 0),
    52: IndexedApi("Vote", "k52_vote", 0, 2, 0),
    53: IndexedApi("BeginQuorumEpoch", "k53_begin_quorum_epoch", 0, 1, 1),
    54: IndexedApi("EndQuorumEpoch", "k54_end_quorum_epoch", 0, 1, 1),
    55: IndexedApi("DescribeQuorum", "k55_describe_quorum", 0, 2, 0),
    56: IndexedApi("AlterPartition", "k56_alter_partition", 2, 3, 0),
    57: IndexedApi("UpdateFeatures", "k57_update_features", 0, 2, 0),
    58: IndexedApi("Envelope", "k58_envelope", 0, 0, 0),
    59: IndexedApi("FetchSnapshot", "k59_fetch_snapshot", 0, 1, 0),
    60: IndexedApi("DescribeCluster", "k60_describe_cluster", 0, 2, 0),
    61: IndexedApi("DescribeProducers", "k61_describe_producers", 0, 0, 0),
    62: IndexedApi("BrokerRegistration", "k62_broker_registration", 0, 4, 0),
    63: IndexedApi("BrokerHeartbeat", "k63_broker_heartbeat", 0, 2, 0),
    64: IndexedApi("UnregisterBroker", "k64_unregister_broker", 0, 0, 0),
    65: IndexedApi("DescribeTransactions", "k65_describe_transactions", 0, 0, 0),
    66: IndexedApi("ListTransactions", "k66_list_transactions", 0, 2, 0),
    67: IndexedApi("AllocateProducerIds", "k67_allocate_producer_ids", 0, 0, 0),
    68: IndexedApi("ConsumerGroupHeartbeat", "k68_consumer_group_heartbeat", 0, 1, 0),
    69: IndexedApi("ConsumerGroupDescribe", "k69_consumer_group_describe", 0, 1, 0),
    70: IndexedApi("ControllerRegistration", "k70_controller_registration", 0, 0, 0),
    71: IndexedApi("GetTelemetrySubscriptions", "k71_get_telemetry_subscriptions", 0, 0, 0),
    72: IndexedApi("PushTelemetry", "k72_push_telemetry", 0, 0, 0),
    73: IndexedApi("AssignReplicasToDirs", "k73_assign_replicas_to_dirs", 0, 0, 0),
    74: IndexedApi("ListConfigResources", "k74_list_config_resources", 0, 1, 0),
    75: IndexedApi("DescribeTopicPartitions", "k75_describe_topic_partitions", 0, 0, 0),
    80: IndexedApi("AddRaftVoter", "k80_add_raft_voter", 0, 1, 0),
    81: IndexedApi("RemoveRaftVoter", "k81_remove_raft_voter", 0, 0, 0),
    82: IndexedApi("UpdateRaftVoter", "k82_update_raft_voter", 0, 0, 0),
}
