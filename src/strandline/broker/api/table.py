"""The one list of APIs that a node serves, a row for each.

The handler of a row is in the module with the same name as its wire class; see `server.dispatch`.
"""

from __future__ import annotations

from typing import Final

from strandline.base.acls import AclOperation as Op
from strandline.broker.authorization.requirement import IN_HANDLER, by_rule, on_cluster, open_to_all
from strandline.broker.server.api_row import BOTH, CONTROLLER, row

API_VERSIONS: Final = 18
BEFORE_LOGIN: Final = open_to_all("nobody is known before the login")
BY_TOKEN: Final = open_to_all("for the owner of the token and its renewers, whom the plan knows")
# These are announced only while there is a subscription to clients' metrics (KIP-714).
TELEMETRY: Final = (71, 72)
FOR_CLIENTS: Final = open_to_all("clients tell what they measure, of themselves only")

TABLE: Final = {
    each.key: each
    for each in (
        row(0, access=IN_HANDLER),  # Produce
        row(1, BOTH, access=IN_HANDLER),  # Fetch
        row(2, access=by_rule("topic_rules.list_offsets")),  # ListOffsets
        row(3, access=IN_HANDLER),  # Metadata
        row(8, access=IN_HANDLER),  # OffsetCommit
        row(9, access=by_rule("group_rules.offset_fetch")),  # OffsetFetch
        row(10, access=by_rule("group_rules.find_coordinator")),  # FindCoordinator
        row(11, access=by_rule("group_rules.member")),  # JoinGroup
        row(12, access=by_rule("group_rules.member")),  # Heartbeat
        row(13, access=by_rule("group_rules.member")),  # LeaveGroup
        row(14, access=by_rule("group_rules.member")),  # SyncGroup
        row(15, access=by_rule("group_rules.describe_groups")),  # DescribeGroups
        row(16, access=by_rule("group_rules.list_groups")),  # ListGroups
        row(17, BOTH, access=BEFORE_LOGIN),  # SaslHandshake
        row(API_VERSIONS, BOTH, access=BEFORE_LOGIN),
        # CreateTopics
        row(19, BOTH, controller=True, timeout_ms=True, access=by_rule("admin_rules.create_topics")),
        # DeleteTopics
        row(20, BOTH, controller=True, timeout_ms=True, access=by_rule("admin_rules.delete_topics")),
        row(21, access=by_rule("topic_rules.delete_records")),  # DeleteRecords
        # InitProducerId; version 6 is two-phase commit (KIP-939).
        row(22, version_max=5, access=by_rule("transaction_rules.init_producer_id")),
        row(23, access=by_rule("topic_rules.offset_for_leader_epoch")),  # OffsetForLeaderEpoch
        row(24, access=by_rule("transaction_rules.add_partitions_to_txn")),  # AddPartitionsToTxn
        row(25, access=by_rule("transaction_rules.add_offsets_to_txn")),  # AddOffsetsToTxn
        row(26, access=by_rule("transaction_rules.end_txn")),  # EndTxn
        row(27, access=by_rule("transaction_rules.write_txn_markers")),  # WriteTxnMarkers
        row(28, access=by_rule("transaction_rules.txn_offset_commit")),  # TxnOffsetCommit
        row(29, BOTH, access=on_cluster(Op.DESCRIBE)),  # DescribeAcls
        row(30, BOTH, controller=True, access=on_cluster(Op.ALTER)),  # CreateAcls
        row(31, BOTH, controller=True, access=on_cluster(Op.ALTER)),  # DeleteAcls
        row(32, access=IN_HANDLER),  # DescribeConfigs
        row(33, BOTH, controller=True, access=by_rule("admin_rules.alter_configs")),  # AlterConfigs
        row(34, access=on_cluster(Op.ALTER)),  # AlterReplicaLogDirs
        row(35, access=on_cluster(Op.DESCRIBE)),  # DescribeLogDirs
        row(36, BOTH, access=BEFORE_LOGIN),  # SaslAuthenticate
        # CreatePartitions
        row(37, BOTH, controller=True, timeout_ms=True, access=by_rule("admin_rules.create_partitions")),
        # CreateDelegationToken
        row(38, BOTH, controller=True, access=by_rule("admin_rules.create_delegation_token")),
        row(39, BOTH, controller=True, access=BY_TOKEN),  # RenewDelegationToken
        row(40, BOTH, controller=True, access=BY_TOKEN),  # ExpireDelegationToken
        row(41, BOTH, access=IN_HANDLER),  # DescribeDelegationToken
        row(42, access=by_rule("group_rules.delete_groups")),  # DeleteGroups
        row(43, BOTH, controller=True, timeout_ms=True, access=on_cluster(Op.ALTER)),  # ElectLeaders
        # IncrementalAlterConfigs
        row(44, BOTH, controller=True, access=by_rule("admin_rules.alter_configs")),
        # AlterPartitionReassignments
        row(45, BOTH, controller=True, timeout_ms=True, access=on_cluster(Op.ALTER)),
        row(46, BOTH, controller=True, access=on_cluster(Op.DESCRIBE)),  # ListPartitionReassignments
        row(47, access=by_rule("group_rules.offset_delete")),  # OffsetDelete
        row(48, access=on_cluster(Op.DESCRIBE_CONFIGS)),  # DescribeClientQuotas
        row(49, BOTH, controller=True, access=on_cluster(Op.ALTER_CONFIGS)),  # AlterClientQuotas
        row(50, BOTH, access=on_cluster(Op.DESCRIBE)),  # DescribeUserScramCredentials
        row(51, BOTH, controller=True, access=on_cluster(Op.ALTER)),  # AlterUserScramCredentials
        row(52, CONTROLLER, access=on_cluster(Op.CLUSTER_ACTION)),  # Vote
        row(53, CONTROLLER, access=on_cluster(Op.CLUSTER_ACTION)),  # BeginQuorumEpoch
        row(54, CONTROLLER, access=on_cluster(Op.CLUSTER_ACTION)),  # EndQuorumEpoch
        row(55, BOTH, access=on_cluster(Op.DESCRIBE)),  # DescribeQuorum
        row(56, CONTROLLER, controller=True, access=on_cluster(Op.CLUSTER_ACTION)),  # AlterPartition
        row(57, BOTH, controller=True, access=on_cluster(Op.ALTER)),  # UpdateFeatures
        row(58, CONTROLLER, access=on_cluster(Op.CLUSTER_ACTION)),  # Envelope
        row(59, CONTROLLER, access=on_cluster(Op.CLUSTER_ACTION)),  # FetchSnapshot
        row(60, BOTH, access=by_rule("admin_rules.describe_cluster")),  # DescribeCluster
        row(61, access=by_rule("topic_rules.describe_producers")),  # DescribeProducers
        row(62, CONTROLLER, controller=True, access=on_cluster(Op.CLUSTER_ACTION)),  # BrokerRegistration
        row(63, CONTROLLER, controller=True, access=on_cluster(Op.CLUSTER_ACTION)),  # BrokerHeartbeat
        row(64, BOTH, controller=True, access=on_cluster(Op.ALTER)),  # UnregisterBroker
        row(65, access=by_rule("transaction_rules.describe_transactions")),  # DescribeTransactions
        row(66, access=by_rule("transaction_rules.list_transactions")),  # ListTransactions
        row(67, CONTROLLER, controller=True, access=on_cluster(Op.CLUSTER_ACTION)),  # AllocateProducerIds
        row(68, access=by_rule("group_rules.consumer_group_heartbeat")),  # ConsumerGroupHeartbeat
        row(69, access=by_rule("group_rules.consumer_group_describe")),  # ConsumerGroupDescribe
        row(70, CONTROLLER, controller=True, access=on_cluster(Op.CLUSTER_ACTION)),  # ControllerRegistration
        row(71, access=FOR_CLIENTS),  # GetTelemetrySubscriptions
        row(72, access=FOR_CLIENTS),  # PushTelemetry
        row(73, CONTROLLER, controller=True, access=on_cluster(Op.CLUSTER_ACTION)),  # AssignReplicasToDirs
        row(74, access=on_cluster(Op.DESCRIBE_CONFIGS)),  # ListConfigResources
        row(75, access=IN_HANDLER),  # DescribeTopicPartitions
        row(80, BOTH, controller=True, access=on_cluster(Op.ALTER)),  # AddRaftVoter
        row(81, BOTH, controller=True, access=on_cluster(Op.ALTER)),  # RemoveRaftVoter
        row(82, CONTROLLER, access=on_cluster(Op.CLUSTER_ACTION)),  # UpdateRaftVoter
    )
}
