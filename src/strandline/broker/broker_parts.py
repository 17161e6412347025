"""The parts of a node, made on its ports in the order in which they depend on each other.

`Broker` starts and stops them. Each part gets its collaborators here, by name.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from strandline.broker.api.k18_api_versions import respond_to_unknown_version
from strandline.broker.api.services import Services
from strandline.broker.api.table import API_VERSIONS, TABLE
from strandline.broker.authorization.node_authorizer import NodeAuthorizer
from strandline.broker.coordinator.auto_topic_creation import AutoTopicCreation
from strandline.broker.coordinator.group_service import GroupCoordinator
from strandline.broker.coordinator.producer_ids import ProducerIds
from strandline.broker.coordinator.txn_markers import TxnMarkers
from strandline.broker.coordinator.txn_service import TransactionCoordinator
from strandline.broker.disks.checkpoints import CheckpointWriter
from strandline.broker.logs.cleaner import Cleaner
from strandline.broker.logs.maintenance import LogMaintenance
from strandline.broker.logs.removal import DelayedRemoval
from strandline.broker.logs.retention import LogRetention
from strandline.broker.logs.scrubber import Scrubber
from strandline.broker.metadata.broker_lifecycle import BrokerLifecycle
from strandline.broker.metadata.controller_channel import ControllerChannel
from strandline.broker.metadata.controller_jobs import ControllerJobs
from strandline.broker.metadata.publisher import MetadataDelta, MetadataPublisher
from strandline.broker.metadata.raft_bootstrap import (
    controller_runtime_of,
    raft_node_of,
)
from strandline.broker.node_context import NodeContext
from strandline.broker.periodic_tasks import PeriodicTasks
from strandline.broker.quotas.client_quotas import ClientQuotas
from strandline.broker.quotas.mutation_quota import MutationQuota
from strandline.broker.replication.corrupt_replicas import CorruptReplicas
from strandline.broker.replication.directory_assignments import DirectoryAssignments
from strandline.broker.replication.fetch_policy import FetchPolicy
from strandline.broker.replication.fetch_sessions import FetchSessions
from strandline.broker.replication.flusher import LogFlusher
from strandline.broker.replication.follower_log_opener import FollowerLogOpener
from strandline.broker.replication.isr import IsrUpdater
from strandline.broker.replication.log_dir_mover import LogDirMover
from strandline.broker.replication.replica_fetcher import FetcherParts, ReplicaFetcher
from strandline.broker.replication.replicas import Replicas
from strandline.broker.replication.replication_quota import FOLLOWER, LEADER, ReplicationQuota
from strandline.broker.replication.suspected_brokers import SuspectedBrokers
from strandline.broker.security.listener_security import ListenerSecurity
from strandline.broker.security.node_networks import NodeNetworks
from strandline.broker.security.token_keys import TokenKeys
from strandline.broker.server.connection_limits import ConnectionLimits, RequestMemory
from strandline.broker.server.dispatch import Dispatch
from strandline.broker.server.request_batching import RequestBatcher
from strandline.broker.server.response_cache import ResponseCache
from strandline.broker.server.server_context import ServerContext
from strandline.broker.tasks import TaskScope
from strandline.broker.telemetry.clients.instances import ClientTelemetry
from strandline.broker.telemetry.health import NodeHealth
from strandline.broker.telemetry.page import MetricsPage
from strandline.config import BrokerConfig, DynamicConfigs
from strandline.controller.image import ClusterImage
from strandline.ports.clock import Clock
from strandline.ports.disk import Disk
from strandline.ports.network import Network
from strandline.ports.process import Process
from strandline.ports.random import Random
from strandline.ports.tls import TlsError
from strandline.ports.web import Web
from strandline.ports.workers import Workers
from strandline.storage.directory import LogDirectory
from strandline.storage.files import FileTable
from strandline.telemetry import loggers
from strandline.telemetry.counters import Counters
from strandline.telemetry.events import Events
from strandline.telemetry.request_metrics import RequestMetrics
from strandline.telemetry.topic_metrics import AllTopicsMetrics

if TYPE_CHECKING:
    from strandline.broker.telemetry.burrow import BurrowApi
    from strandline.broker.telemetry.lag import LagMonitor


class Ports(NamedTuple):
    """The world that a broker lives in."""

    disk: Disk
    clock: Clock
    random: Random
    workers: Workers
    network: Network
    process: Process
    open_files_max: int
    replica_network: Network | None = None  # for followers' fetches, if their sockets differ
    web: Web | None = None  # for the keys of tokens, which are fetched over HTTP


class BrokerParts(ABC):
    """Holds the parts. They do not exist before `_build`, which `start` calls once the log directories are taken."""

    def __init__(self, ports: Ports, config: BrokerConfig, events: Events) -> None:
        self.config = config
        self._ports = ports
        self.tasks = TaskScope(self._failed)
        loggers.make_loggers(events)
        self.image = ClusterImage()
        self.configs = DynamicConfigs(config)
        self.node_networks = NodeNetworks(ports.network, self.configs, ports.random)
        self.node = NodeContext(
            node_id=config.node_id,
            config=config,
            configs=self.configs,
            image=self.image,
            clock=ports.clock,
            random=ports.random,
            events=events,
            counters=Counters(),
            requests=RequestMetrics({row.key: row.name for row in TABLE.values()}),
            topics=AllTopicsMetrics(),
            tasks=self.tasks,
            workers=ports.workers,
            disk=ports.disk,
            network=ports.network,
            network_to_brokers=self.node_networks.to_brokers,
            network_to_controllers=self.node_networks.to_controllers,
            web=ports.web,
        )
        self.token_keys = TokenKeys(self.node)
        requirements = {row.key: row.authorization for row in TABLE.values()}
        has_authorizer = bool(config.text("authorizer.class.name"))
        self.authorizer = NodeAuthorizer(self.node, requirements) if has_authorizer else None
        self.client_quotas = ClientQuotas(self.node, requirements)
        self.client_telemetry = ClientTelemetry(self.node)
        self.node_id = config.node_id
        self.cluster_id = ""
        self.files = FileTable(ports.disk, ports.open_files_max)
        protected = config.inter_broker_listener_name if len(config.broker_listeners) > 1 else None
        self.connections = ConnectionLimits(self.node, protected)
        queued_max = config.int("queued.max.request.bytes")
        self.request_memory = RequestMemory(
            queued_max if queued_max > 0 else config.int("strandline.incomplete.requests.max.bytes"),
            config.int("strandline.request.receive.timeout.ms") / 1000,
        )
        self._directories: list[LogDirectory] = []
        self.secured: list[ListenerSecurity] = []  # the security of open listeners
        self._lag_monitor: LagMonitor | None = None
        self.is_built = False

    @abstractmethod
    def _image_changed(self, delta: MetadataDelta) -> None:
        """Follows a change of the image, which is consistent again."""

    @abstractmethod
    def _controller_changed(self) -> None:
        """Follows a change of the quorum's leader."""

    def _failed(self, error: BaseException) -> None:
        """Handles an unexpected error of a task, after which the node's state cannot be trusted."""
        self._ports.process.halt("".join(traceback.format_exception(error)))

    def _broker_epoch(self) -> int:
        """Returns the epoch of the registration; -1 on a controller, and before the registration."""
        return self.lifecycle.epoch

    async def reload_certificates(self) -> None:
        """Reads certificates again whose files have changed; existing connections keep theirs."""
        for security in self.secured:
            security.reload_files()
        try:
            self.node_networks.reload_files()
        except TlsError as error:
            self.node.events.error("certificates not replaced", error=error)

    def _build(self) -> None:
        """Makes the parts, each after those that it depends on."""
        node = self.node
        self.checkpoints = CheckpointWriter(node.disk, node.workers)
        self.replicas = Replicas(
            node_id=node.node_id,
            image=node.image,
            configs=node.configs,
            directories=self._directories,
            disk=node.disk,
            files=self.files,
            workers=node.workers,
            checkpoints=self.checkpoints,
            clock=node.clock,
            random=node.random,
            events=node.events,
            metrics=node.topics,
        )
        self._build_metadata()
        self._build_replication()
        self._build_coordinators()
        self._build_logs()
        self._build_server()
        self.health = NodeHealth(node, self.quorum, self.lifecycle, self.replicas)
        self.is_built = True

    def _build_metadata(self) -> None:
        node = self.node
        self.controller_runtime = controller_runtime_of(node, self.cluster_id)
        publisher = MetadataPublisher(
            node.image, node.configs, self.controller_runtime, self._image_changed, self._controller_changed
        )
        self.quorum = raft_node_of(
            node,
            files=self.files,
            process=self._ports.process,
            cluster_id=self.cluster_id,
            directories=self._directories,
            publisher=publisher,
        )
        if self.controller_runtime is not None:
            self.controller_runtime.quorum = self.quorum
            self.controller_runtime.authorizer = self.authorizer
            self.controller_runtime.mutation_quota = MutationQuota(node)
        self.channel = ControllerChannel(node, self.quorum, self.controller_runtime)
        self.lifecycle = BrokerLifecycle(
            node, self.channel, self.quorum, self.cluster_id, self.replicas.directories
        )
        self.controller_jobs = ControllerJobs(node, self.quorum, self.controller_runtime)

    def _build_replication(self) -> None:
        node, epoch = self.node, self._broker_epoch
        self.flusher = LogFlusher(node, self.replicas, self.checkpoints)
        self.directory_assignments = DirectoryAssignments(node, self.channel, epoch)
        self.replicas.on_placed = self.directory_assignments.placed
        self.replicas.on_offline = self.lifecycle.heartbeat_soon
        self.suspected_brokers = SuspectedBrokers(node)
        self.isr = IsrUpdater(node, self.replicas, self.channel, epoch)
        self.fetch_policy = FetchPolicy(node)
        self.corrupt_replicas = CorruptReplicas(node, self.replicas, self.flusher, self.directory_assignments)
        self.replica_fetcher = ReplicaFetcher(
            FetcherParts(
                node=node,
                replicas=self.replicas,
                flusher=self.flusher,
                quota=ReplicationQuota(node, FOLLOWER),
                corrupt_replicas=self.corrupt_replicas,
                suspected_brokers=self.suspected_brokers,
                broker_epoch=epoch,
                network=self._replica_network(),
            )
        )
        self.follower_log_opener = FollowerLogOpener(node, self.replicas, self.replica_fetcher)

    def _replica_network(self) -> Network:
        own = self._ports.replica_network
        return self.node.network_to_brokers if own is None else self.node_networks.with_sockets_of(own)

    def _build_coordinators(self) -> None:
        node, replicas, corrupt = self.node, self.replicas, self.corrupt_replicas
        self.batcher = RequestBatcher(node.clock)
        self.topic_creation = AutoTopicCreation(node, self.channel)
        self.producer_ids = ProducerIds(node, self.channel, self._broker_epoch)
        self.groups = GroupCoordinator(node, replicas, corrupt, self.topic_creation, self.batcher)
        markers = TxnMarkers(node, replicas, self.groups)
        self.transactions = TransactionCoordinator(
            node, replicas, corrupt, self.topic_creation, self.producer_ids, markers
        )

    def _build_logs(self) -> None:
        node, replicas = self.node, self.replicas
        self.removal = DelayedRemoval(node, replicas, self.files)
        self.cleaner = Cleaner(
            node, replicas, self.flusher, self.checkpoints, self.corrupt_replicas, self.removal
        )
        self.log_dir_mover = LogDirMover(node, replicas, self.files, self.checkpoints, self.cleaner.under_way)
        self.log_dir_mover.follow = self.replica_fetcher.follow
        self.log_dir_mover.unfollow = self.replica_fetcher.unfollow
        self.scrubber = Scrubber(node, replicas, self.checkpoints, self.corrupt_replicas)
        self.retention = LogRetention(node, replicas, self.removal, self.cleaner.under_way)
        self.maintenance = LogMaintenance(node, replicas, self.flusher, self.checkpoints)

    def _build_server(self) -> None:
        node = self.node
        self.services = Services(
            node=node,
            image=node.image,
            configs=node.configs,
            clock=node.clock,
            authorizer=self.authorizer,
            quotas=self.client_quotas,
            cluster_id=self.cluster_id,
            replicas=self.replicas,
            flusher=self.flusher,
            fetch_sessions=FetchSessions(
                node.config.int("max.incremental.fetch.session.cache.slots"), node.random
            ),
            fetch_policy=self.fetch_policy,
            isr=self.isr,
            leader_quota=ReplicationQuota(node, LEADER),
            log_dir_mover=self.log_dir_mover,
            corrupt_replicas=self.corrupt_replicas,
            suspected_brokers=self.suspected_brokers,
            metadata_cache=ResponseCache(),
            groups=self.groups,
            transactions=self.transactions,
            producer_ids=self.producer_ids,
            topic_creation=self.topic_creation,
            quorum=self.quorum,
            channel=self.channel,
            client_telemetry=self.client_telemetry,
            controller=self.controller_runtime,
        )
        self.dispatch = Dispatch(
            TABLE,
            "strandline.broker.api",
            self.services,
            {API_VERSIONS: respond_to_unknown_version},
            self.authorizer,
        )
        self._server = ServerContext(
            node=node,
            clock=node.clock,
            events=node.events,
            connection_events=node.events.named(loggers.CONNECTIONS),
            request_events=node.events.named(loggers.REQUESTS),
            tasks=node.tasks,
            requests=node.requests,
            dispatch=self.dispatch,
            quotas=self.client_quotas,
            batcher=self.batcher,
            memory=self.request_memory,
            limits=self.connections,
            request_bytes_max=node.config.int("socket.request.max.bytes"),
        )

    def lag_monitor(self) -> LagMonitor:
        """Returns the monitor of the lag of groups that this broker coordinates. The first call has it take samples."""
        from strandline.broker.telemetry.lag import LagMonitor

        if self._lag_monitor is None:
            self._lag_monitor = LagMonitor(self.node, self.groups, self.replicas)
            jobs = PeriodicTasks(self.node)
            jobs.start_by_key("strandline.lag.sample.interval.ms", self._lag_monitor.sample, first_ms_max=100)
        return self._lag_monitor

    def burrow_api(self) -> BurrowApi:
        """Returns the lag of groups in the format of Burrow's API. It exists on a broker once `start` has begun."""
        from strandline.broker.telemetry.burrow import BurrowApi

        return BurrowApi(self.node, self.groups, self.replicas, self.lag_monitor(), self.cluster_id)

    def metrics_page(self) -> MetricsPage:
        """Returns the page with the node's metrics, of parts that exist once `start` has begun."""
        # These are imported here, so that a start without metrics does not wait for them.
        from strandline.broker.telemetry.access import AccessCollector
        from strandline.broker.telemetry.clients.collector import ClientMetricsCollector
        from strandline.broker.telemetry.groups import GroupCollector
        from strandline.broker.telemetry.logs import LogCollector
        from strandline.broker.telemetry.metadata import MetadataCollector
        from strandline.broker.telemetry.replication import ReplicationCollector
        from strandline.broker.telemetry.requests import RequestCollector

        node = self.node
        page = MetricsPage(node.clock, node.config.int("strandline.metrics.series.max"))
        metadata = MetadataCollector(node, self.quorum, self.controller_runtime)
        requests = RequestCollector(node, self.connections, self.request_memory)
        mutations = None if self.controller_runtime is None else self.controller_runtime.mutation_quota
        access = AccessCollector(node, self.authorizer, self.client_quotas, mutations, self.connections.rates)
        page.add(requests.node_families, access.node_families, metadata.node_families)
        if node.config.is_broker:
            replication = ReplicationCollector(node, self.replicas, self.replica_fetcher)
            page.add(replication.node_families, replication.topic_families, replication.partition_families)
            groups = GroupCollector(node, self.groups, self.lag_monitor(), self.cluster_id)
            logs = LogCollector(node, self.replicas, self.cleaner, self.transactions, self.health)
            clients = ClientMetricsCollector(node, self.client_telemetry)
            page.add(groups.node_families, groups.lag_families, logs.node_families)
            page.add(clients.node_families, clients.client_families)
        page.add(metadata.partition_families)
        return page
