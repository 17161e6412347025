"""A node, put together on its ports: the composition root. Nothing else in `broker` knows this class.

`__init__` takes the world, `start` builds the parts in the order in which they depend on each other and returns when
clients can be served, `stop` takes them down again.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import Final, NamedTuple

from strandline.base.ids import TopicPartition
from strandline.broker.api.k18_api_versions import respond_to_unknown_version
from strandline.broker.api.services import Services
from strandline.broker.api.table import API_VERSIONS, TABLE
from strandline.broker.coordinator.auto_topic_creation import AutoTopicCreation
from strandline.broker.coordinator.group_service import GroupCoordinator
from strandline.broker.coordinator.producer_ids import ProducerIds
from strandline.broker.coordinator.txn_markers import TxnMarkers
from strandline.broker.coordinator.txn_service import TransactionCoordinator
from strandline.broker.disks.checkpoints import CheckpointWriter
from strandline.broker.logs.cleaner import Cleaner
from strandline.broker.logs.maintenance import LogMaintenance
from strandline.broker.logs.recovery import close_logs, start_recovery
from strandline.broker.logs.removal import DelayedRemoval
from strandline.broker.logs.retention import LogRetention
from strandline.broker.metadata.broker_lifecycle import BrokerLifecycle
from strandline.broker.metadata.controller_channel import ControllerChannel
from strandline.broker.metadata.controller_jobs import ControllerJobs
from strandline.broker.metadata.controller_registration import SECURITY_PROTOCOLS, register_controller
from strandline.broker.metadata.publisher import MetadataDelta, MetadataPublisher
from strandline.broker.metadata.raft_bootstrap import (
    controller_runtime_of,
    has_others,
    raft_node_of,
    take_directories,
)
from strandline.broker.node_context import NodeContext
from strandline.broker.periodic_tasks import PeriodicTasks
from strandline.broker.replication.corrupt_replicas import CorruptReplicas
from strandline.broker.replication.directory_assignments import DirectoryAssignments
from strandline.broker.replication.fetch_policy import FetchPolicy
from strandline.broker.replication.fetch_sessions import FetchSessions
from strandline.broker.replication.flusher import LogFlusher
from strandline.broker.replication.follower_log_opener import FollowerLogOpener
from strandline.broker.replication.isr import IsrUpdater
from strandline.broker.replication.replica_fetcher import FetcherParts, ReplicaFetcher
from strandline.broker.replication.replicas import Replicas
from strandline.broker.replication.replication_quota import FOLLOWER, LEADER, ReplicationQuota
from strandline.broker.replication.suspected_brokers import SuspectedBrokers
from strandline.broker.server.connection import ClientConnection, ServerContext
from strandline.broker.server.connection_limits import ConnectionLimits, RequestMemory
from strandline.broker.server.dispatch import Dispatch
from strandline.broker.server.request_batching import RequestBatcher
from strandline.broker.server.response_cache import ResponseCache
from strandline.broker.tasks import TaskScope
from strandline.config import BrokerConfig, DynamicConfigs, Listener
from strandline.controller.image import ClusterImage
from strandline.ports.clock import Clock
from strandline.ports.disk import Disk
from strandline.ports.network import Listener as OpenListener
from strandline.ports.network import Network
from strandline.ports.process import Process
from strandline.ports.random import Random
from strandline.ports.workers import Workers
from strandline.storage.directory import LogDirectory
from strandline.storage.files import FileTable
from strandline.telemetry.counters import Counters
from strandline.telemetry.events import Events
from strandline.wire.records.metadata import BrokerEndpoint

_REMOVAL_MS: Final = 1000
_FLUSH_CHECK_MS: Final = 1000
_SNAPSHOT_CHECK_MS: Final = 1000
_LAG_CHECK_MS_MIN: Final = 100
_OVERDUE_CHECK_MS: Final = 1000


class Ports(NamedTuple):
    """The world that a broker lives in."""

    disk: Disk
    clock: Clock
    random: Random
    workers: Workers
    network: Network
    process: Process
    open_files_max: int
    replica_network: Network | None = None  # for followers' fetches, where their sockets differ


class Broker:
    def __init__(self, ports: Ports, config: BrokerConfig, events: Events) -> None:
        self.config = config
        self._ports = ports
        self.tasks = TaskScope(self._failed)
        self.image = ClusterImage()
        self.configs = DynamicConfigs(config)
        self.node = NodeContext(
            node_id=config.node_id,
            config=config,
            configs=self.configs,
            image=self.image,
            clock=ports.clock,
            random=ports.random,
            events=events,
            counters=Counters(),
            tasks=self.tasks,
            workers=ports.workers,
            disk=ports.disk,
            network=ports.network,
        )
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
        self._listeners: list[OpenListener] = []
        self._is_built = False
        self._is_following = False  # replicas follow the image
        self._is_abandoned = False

    # Starting

    async def start(self) -> None:
        """Returns when clients can be served. A start that fails gives back what it took."""
        try:
            await self._start()
        except (Exception, asyncio.CancelledError):
            await self.abandon()
            raise

    async def _start(self) -> None:
        take_directories(self.node, self._directories)
        online = [directory for directory in self._directories if directory.offline_because is None]
        self.cluster_id = online[0].cluster_id
        self._build()
        self.connections.hold_all()
        endpoints = await self._listen()
        self.quorum.start()
        self._start_jobs_of_every_node()
        if self.config.is_controller:
            self.tasks.start(register_controller(self.node, self.channel))
        if not self.config.is_broker:
            return
        epochs = {directory.clean_epoch for directory in online}
        previous = epochs.pop() if len(epochs) == 1 else None
        await self.lifecycle.register(endpoints, -1 if previous is None else previous)
        await self.lifecycle.caught_up()
        self.replicas.load()
        self._follow_image()
        await self.lifecycle.unfenced()
        self.tasks.start(self.lifecycle.run())
        self.tasks.start(self.directory_assignments.run())
        self.groups.load_what_is_there()
        self.transactions.load_what_is_there()
        self._start_jobs_of_brokers()
        self.cleaner.start()
        start_recovery(self.node, self.replicas)
        self.connections.serve_all()

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
        )
        self._build_metadata()
        self._build_replication()
        self._build_coordinators()
        self._build_logs()
        self._build_server()
        self._is_built = True

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
                network=self._ports.replica_network or self._ports.network,
            )
        )
        self.follower_log_opener = FollowerLogOpener(node, self.replicas, self.replica_fetcher)

    def _build_coordinators(self) -> None:
        node, replicas, corrupt = self.node, self.replicas, self.corrupt_replicas
        self.batcher = RequestBatcher()
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
        self.retention = LogRetention(node, replicas, self.removal, self.cleaner.under_way)
        self.maintenance = LogMaintenance(node, replicas, self.flusher, self.checkpoints)

    def _build_server(self) -> None:
        node = self.node
        self.services = Services(
            node=node,
            image=node.image,
            configs=node.configs,
            clock=node.clock,
            cluster_id=self.cluster_id,
            replicas=self.replicas,
            flusher=self.flusher,
            fetch_sessions=FetchSessions(
                node.config.int("max.incremental.fetch.session.cache.slots"), node.random
            ),
            fetch_policy=self.fetch_policy,
            isr=self.isr,
            leader_quota=ReplicationQuota(node, LEADER),
            corrupt_replicas=self.corrupt_replicas,
            suspected_brokers=self.suspected_brokers,
            metadata_cache=ResponseCache(),
            groups=self.groups,
            transactions=self.transactions,
            producer_ids=self.producer_ids,
            topic_creation=self.topic_creation,
            quorum=self.quorum,
            channel=self.channel,
            controller=self.controller_runtime,
        )
        dispatch = Dispatch(
            TABLE, "strandline.broker.api", self.services, {API_VERSIONS: respond_to_unknown_version}
        )
        self._server = ServerContext(
            clock=node.clock,
            events=node.events,
            tasks=node.tasks,
            counters=node.counters,
            dispatch=dispatch,
            batcher=self.batcher,
            memory=self.request_memory,
            limits=self.connections,
            request_bytes_max=node.config.int("socket.request.max.bytes"),
        )

    # Jobs

    def _start_jobs_of_every_node(self) -> None:
        """Those that a controller has too."""
        jobs = PeriodicTasks(self.node)
        jobs.start(lambda: _SNAPSHOT_CHECK_MS, self.controller_jobs.snapshot_metadata)
        seconds = self.config.int("leader.imbalance.check.interval.seconds")
        jobs.start(lambda: seconds * 1000, self.controller_jobs.return_leaders)
        jobs.start_by_key("unclean.leader.election.interval.ms", self.controller_jobs.elect_uncleanly)
        jobs.start(self.connections.idle_check_ms, self.connections.close_idle)
        jobs.start(lambda: _OVERDUE_CHECK_MS, self._end_overdue_requests)

    def _start_jobs_of_brokers(self) -> None:
        jobs = PeriodicTasks(self.node)
        # A node that is started often would otherwise never come to these.
        soon_ms = self.config.int("log.initial.task.delay.ms")
        for key, job in (
            ("log.retention.check.interval.ms", self.retention.apply),
            ("log.flush.offset.checkpoint.interval.ms", self.maintenance.checkpoint_recovery_points),
            ("log.flush.start.offset.checkpoint.interval.ms", self.maintenance.checkpoint_log_starts),
        ):
            jobs.start_by_key(key, job, first_ms_max=soon_ms)
        for key, job in (
            ("replica.high.watermark.checkpoint.interval.ms", self.maintenance.checkpoint_high_watermarks),
            ("producer.id.expiration.check.interval.ms", self.maintenance.expire_producers),
            ("offsets.retention.check.interval.ms", self.groups.expire_offsets),
            (
                "transaction.abort.timed.out.transaction.cleanup.interval.ms",
                self.transactions.abort_timed_out,
            ),
            (
                "transaction.remove.expired.transaction.cleanup.interval.ms",
                self.transactions.forget_expired,
            ),
        ):
            jobs.start_by_key(key, job)
        jobs.start(lambda: _FLUSH_CHECK_MS, self.maintenance.flush_by_time)
        jobs.start(self._lag_check_ms, self.isr.check_lag)
        jobs.start(lambda: _REMOVAL_MS, self.removal.remove_due)

    async def _end_overdue_requests(self) -> None:
        self.request_memory.end_overdue(self.node.clock.monotonic())

    def _lag_check_ms(self) -> int:
        return max(self.node.int_config("replica.lag.time.max.ms") // 2, _LAG_CHECK_MS_MIN)

    # Listening

    async def _listen(self) -> tuple[BrokerEndpoint, ...]:
        """Opens the listeners and returns what to advertise, with the real port where 0 was asked for."""
        ports = {}
        network = self.node.network
        for listener in self.config.broker_listeners:
            opened = await network.listen(listener.host, listener.port, self._acceptor(listener))
            self._listeners.append(opened)
            ports[listener.name] = opened.port
        if has_others(self.config) or not self.config.is_broker:
            for listener in self.config.controller_listeners:
                acceptor = self._acceptor(listener, is_controller=True)
                self._listeners.append(await network.listen(listener.host, listener.port, acceptor))
        return tuple(
            BrokerEndpoint(
                name=listener.name,
                host=listener.host or "localhost",
                port=listener.port or ports[listener.name],
                security_protocol=SECURITY_PROTOCOLS[listener.protocol],
            )
            for listener in self.config.advertised_listeners
        )

    def _acceptor(self, listener: Listener, *, is_controller: bool = False) -> _Acceptor:
        return _Acceptor(self._server, listener.name, is_controller)

    @property
    def endpoints(self) -> tuple[BrokerEndpoint, ...]:
        return self.image.brokers[self.node_id].endpoints

    # Stopping

    async def stop(self) -> None:
        """A clean shutdown: what is written is synced, and the next start needs to check nothing."""
        if self.config.is_broker:
            await self.lifecycle.shut_down()
        await self._stop_working()
        clean = await close_logs(self.node, self.replicas, self.flusher)
        await self.maintenance.checkpoint_recovery_points()
        await self.maintenance.checkpoint_high_watermarks()
        await self.maintenance.checkpoint_log_starts()
        clean = await self._close_metadata() and clean
        self.files.close()
        marked = 0
        for directory in self._directories:
            if clean and directory.offline_because is None and self.replicas.is_repaired(directory):
                try:
                    directory.mark_clean(self._broker_epoch())
                    marked += 1
                except OSError as error:
                    self.replicas.disk_error(directory, error)
            directory.release()
        self.node.events.info("stopped", node=self.node_id, clean=marked == len(self._directories))

    async def abandon(self) -> None:
        """After a start that failed, or instead of `stop` when the state cannot be trusted: gives back what was taken.

        Nothing is marked as clean, so the next start checks the logs.
        """
        if self._is_abandoned:
            return
        self._is_abandoned = True
        try:
            if self._is_built:
                await self._stop_working()
                await self._close_metadata()
            self.files.close()
        finally:
            for directory in self._directories:
                directory.release()

    async def _stop_working(self) -> None:
        for listener in self._listeners:
            listener.close()
        self.connections.close_all()
        self.groups.stop()
        self.transactions.stop()
        self.replica_fetcher.stop()
        if self.controller_runtime is not None:
            self.controller_runtime.stop()
        await self.tasks.close()
        self.channel.stop()

    async def _close_metadata(self) -> bool:
        try:
            await self.quorum.stop()
        except OSError as error:
            self.node.events.error("closing the metadata log", error=error)
            return False
        return True

    def _failed(self, error: BaseException) -> None:
        """A task ended with an error that nobody expected: the node's state can no longer be trusted."""
        self._ports.process.halt("".join(traceback.format_exception(error)))

    # Following the metadata

    def _broker_epoch(self) -> int:
        """The epoch of the registration; -1 on a controller, and before the registration."""
        return self.lifecycle.epoch

    def _image_changed(self, delta: MetadataDelta) -> None:
        """The image is consistent again: whatever follows it is told."""
        if delta.has_configs:
            self.fetch_policy.configs_changed()
            self.connections.serve_held()  # max.connections may be higher now
        for node_id in delta.fenced:
            self.suspected_brokers.fenced(node_id)
        if not self._is_following:
            return
        for node_id in delta.fenced:
            self.isr.fenced(node_id)
        for topic in delta.removed_topics:
            for index in list(self.replicas.by_topic.get(topic, {})):
                self.replica_fetcher.unfollow(TopicPartition(topic, index))
            self.replicas.topic_removed(topic)
            self.groups.topic_removed(topic)
            self.transactions.topic_removed(topic)
        if delta.has_configs:
            self.replicas.configs_changed()
        for topic, index in delta.partitions:
            self._follow(topic, index)

    def _follow_image(self) -> None:
        """From now on replicas have the roles that the image gives them."""
        self._is_following = True
        for topic, index in self.replicas.partitions_here():
            self._follow(topic, index)

    def _follow(self, topic: str, index: int) -> None:
        replica = self.replicas.partition_changed(topic, index)
        is_sound = replica is not None and (
            replica.directory.offline_because is None and not self.corrupt_replicas.holds(replica)
        )
        if replica is not None and is_sound:
            self.replica_fetcher.follow(replica)
        else:
            self.replica_fetcher.unfollow(TopicPartition(topic, index))
        self.groups.leadership_changed(topic, index)
        self.transactions.leadership_changed(topic, index)
        if replica is None and self.replicas.follows(topic, index):
            self.follower_log_opener.open_soon(TopicPartition(topic, index))

    def _controller_changed(self) -> None:
        if self._is_built:
            self.channel.changed()
            self.lifecycle.heartbeat_soon()


class _Acceptor:
    """Makes the connection object of each client that comes."""

    def __init__(self, server: ServerContext, listener: str, is_controller: bool) -> None:
        self._server = server
        self._listener = listener
        self._is_controller = is_controller

    def __call__(self) -> ClientConnection:
        return ClientConnection(self._server, self._listener, is_controller_listener=self._is_controller)
