"""The one list of APIs that a node serves, a row for each.

The handler of a row is in the module of the same name as its wire class; see `server.dispatch`.
"""

from __future__ import annotations

from typing import Final

from strandline.broker.server.api_row import BOTH, CONTROLLER, row

API_VERSIONS: Final = 18
# Announced only while somebody wants what clients measure (KIP-714).
TELEMETRY: Final = (71, 72)

TABLE: Final = {
    each.key: each
    for each in (
        row(0),  # Produce
        row(1, BOTH),  # Fetch
        row(2),  # ListOffsets
        row(3),  # Metadata
        row(8),  # OffsetCommit
        row(9),  # OffsetFetch
        row(10),  # FindCoordinator
        row(11),  # JoinGroup
        row(12),  # Heartbeat
        row(13),  # LeaveGroup
        row(14),  # SyncGroup
        row(15),  # DescribeGroups
        row(16),  # ListGroups
        row(17, BOTH),  # SaslHandshake
        row(API_VERSIONS, BOTH),
        row(19, BOTH, controller=True, timeout_ms=True),  # CreateTopics
        row(20, BOTH, controller=True, timeout_ms=True),  # DeleteTopics
        row(21),  # DeleteRecords
        row(22, version_max=5),  # InitProducerId; version 6 is two-phase commit (KIP-939)
        row(23),  # OffsetForLeaderEpoch
        row(24),  # AddPartitionsToTxn
        row(25),  # AddOffsetsToTxn
        row(26),  # EndTxn
        row(27),  # WriteTxnMarkers
        row(28),  # TxnOffsetCommit
        row(29, BOTH),  # DescribeAcls
        row(30, BOTH),  # CreateAcls
        row(31, BOTH),  # DeleteAcls
        row(32),  # DescribeConfigs
        row(33, BOTH, controller=True),  # AlterConfigs
        row(34),  # AlterReplicaLogDirs
        row(35),  # DescribeLogDirs
        row(36, BOTH),  # SaslAuthenticate
        row(37, BOTH, controller=True, timeout_ms=True),  # CreatePartitions
        row(38, BOTH, controller=True),  # CreateDelegationToken
        row(39, BOTH, controller=True),  # RenewDelegationToken
        row(40, BOTH, controller=True),  # ExpireDelegationToken
        row(41, BOTH),  # DescribeDelegationToken
        row(42),  # DeleteGroups
        row(43, BOTH, controller=True, timeout_ms=True),  # ElectLeaders
        row(44, BOTH, controller=True),  # IncrementalAlterConfigs
        row(45, BOTH, controller=True, timeout_ms=True),  # AlterPartitionReassignments
        row(46, BOTH, controller=True),  # ListPartitionReassignments
        row(47),  # OffsetDelete
        row(48),  # DescribeClientQuotas
        row(50, BOTH),  # DescribeUserScramCredentials
        row(51, BOTH, controller=True),  # AlterUserScramCredentials
        row(52, CONTROLLER),  # Vote
        row(53, CONTROLLER),  # BeginQuorumEpoch
        row(54, CONTROLLER),  # EndQuorumEpoch
        row(55, BOTH),  # DescribeQuorum
        row(56, CONTROLLER, controller=True),  # AlterPartition
        row(57, BOTH, controller=True),  # UpdateFeatures
        row(58, CONTROLLER),  # Envelope
        row(59, CONTROLLER),  # FetchSnapshot
        row(60, BOTH),  # DescribeCluster
        row(61),  # DescribeProducers
        row(62, CONTROLLER, controller=True),  # BrokerRegistration
        row(63, CONTROLLER, controller=True),  # BrokerHeartbeat
        row(64, BOTH, controller=True),  # UnregisterBroker
        row(65),  # DescribeTransactions
        row(66),  # ListTransactions
        row(67, CONTROLLER, controller=True),  # AllocateProducerIds
        row(68),  # ConsumerGroupHeartbeat
        row(69),  # ConsumerGroupDescribe
        row(70, CONTROLLER, controller=True),  # ControllerRegistration
        row(71),  # GetTelemetrySubscriptions
        row(72),  # PushTelemetry
        row(73, CONTROLLER, controller=True),  # AssignReplicasToDirs
        row(74),  # ListConfigResources
        row(75),  # DescribeTopicPartitions
        row(80, BOTH, controller=True),  # AddRaftVoter
        row(81, BOTH, controller=True),  # RemoveRaftVoter
        row(82, CONTROLLER),  # UpdateRaftVoter
    )
}
