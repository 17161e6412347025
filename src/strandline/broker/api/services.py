"""The parts of a node that handlers use."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.broker.authorization.node_authorizer import NodeAuthorizer
from strandline.broker.coordinator.auto_topic_creation import AutoTopicCreation
from strandline.broker.coordinator.group_service import GroupCoordinator
from strandline.broker.coordinator.producer_ids import ProducerIds
from strandline.broker.coordinator.txn_service import TransactionCoordinator
from strandline.broker.metadata.controller_channel import ControllerChannel
from strandline.broker.metadata.controller_runtime import ControllerRuntime
from strandline.broker.metadata.raft_node import RaftNode
from strandline.broker.node_context import NodeContext
from strandline.broker.quotas.client_quotas import ClientQuotas
from strandline.broker.replication.corrupt_replicas import CorruptReplicas
from strandline.broker.replication.fetch_policy import FetchPolicy
from strandline.broker.replication.fetch_sessions import FetchSessions
from strandline.broker.replication.flusher import LogFlusher
from strandline.broker.replication.isr import IsrUpdater
from strandline.broker.replication.log_dir_mover import LogDirMover
from strandline.broker.replication.replicas import Replicas
from strandline.broker.replication.replication_quota import ReplicationQuota
from strandline.broker.replication.suspected_brokers import SuspectedBrokers
from strandline.broker.server.response_cache import ResponseCache
from strandline.broker.telemetry.clients.instances import ClientTelemetry
from strandline.config import DynamicConfigs
from strandline.controller.image import ClusterImage
from strandline.ports.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    node: NodeContext
    # These three are the node's, here for the hot path.
    image: ClusterImage
    configs: DynamicConfigs
    clock: Clock
    authorizer: NodeAuthorizer | None  # None: every user may do everything
    quotas: ClientQuotas
    cluster_id: str
    replicas: Replicas
    flusher: LogFlusher
    fetch_sessions: FetchSessions
    fetch_policy: FetchPolicy
    isr: IsrUpdater
    leader_quota: ReplicationQuota
    log_dir_mover: LogDirMover
    corrupt_replicas: CorruptReplicas
    suspected_brokers: SuspectedBrokers
    metadata_cache: ResponseCache
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    producer_ids: ProducerIds
    topic_creation: AutoTopicCreation
    quorum: RaftNode
    channel: ControllerChannel
    client_telemetry: ClientTelemetry
    controller: ControllerRuntime | None  # on a node that is one
