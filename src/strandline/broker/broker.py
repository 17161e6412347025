"""A broker: everything one node consists of, put together on its ports."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any, Final, NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.api.table import Handlers
from strandline.broker.coordinator.auto_topic_creation import TopicCreation
from strandline.broker.coordinator.group_service import GroupCoordinator
from strandline.broker.coordinator.producer_ids import ProducerIds
from strandline.broker.coordinator.txn_service import TransactionCoordinator
from strandline.broker.logs.checkpoints import Checkpoints
from strandline.broker.logs.cleaner import Cleaner
from strandline.broker.logs.recovery import Recovery, close_logs
from strandline.broker.metadata.broker_lifecycle import Lifecycle
from strandline.broker.metadata.controller_apis import decide
from strandline.broker.metadata.controller_channel import Controllers
from strandline.broker.metadata.controller_registration import SECURITY_PROTOCOLS, register_controller
from strandline.broker.metadata.controller_runtime import ControllerRuntime
from strandline.broker.metadata.publisher import Changes
from strandline.broker.metadata.raft_bootstrap import (
    controller_runtime_of,
    has_others,
    quorum_of,
    take_directories,
)
from strandline.broker.metadata.raft_node import QuorumNode
from strandline.broker.periodic_tasks import Background
from strandline.broker.replication.corrupt_replicas import DamagedLogs
from strandline.broker.replication.directory_assignments import DirectoryReports
from strandline.broker.replication.fetch_sessions import FetchSessions
from strandline.broker.replication.follower_log_opener import Openings
from strandline.broker.replication.isr import InSync
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replica_fetcher import Replication
from strandline.broker.replication.replicas import Replicas
from strandline.broker.replication.replication_quota import FOLLOWER, LEADER, Throttle
from strandline.broker.replication.suspected_brokers import Absences
from strandline.broker.server.connection import ClientConnection, RequestContext
from strandline.broker.server.connection_limits import Connections, RequestMemory
from strandline.broker.server.request_batching import Turns
from strandline.broker.server.response_cache import KeptAnswers
from strandline.broker.tasks import TaskScope
from strandline.config import BrokerConfig, DynamicConfigs, Listener
from strandline.controller.features import KRAFT_VERSION_FEATURE
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
from strandline.wire.schema import Request

# Between two tries of what a full disk refuses.
_AGAIN_S: Final = 0.5


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
        self.events = events
        self.disk = ports.disk
        self.clock = ports.clock
        self.workers = ports.workers
        self.network = ports.network
        self.replica_network = ports.replica_network or ports.network
        self.random = ports.random
        self.process = ports.process
        self.files = FileTable(ports.disk, ports.open_files_max)
        self.node_id = config.node_id
        self.counters = Counters()
        self.tasks = TaskScope(self.failed)
        self.image = ClusterImage()
        self.configs = DynamicConfigs(config)
        self.handlers = Handlers(self)
        self.turns = Turns()
        self.memory = RequestMemory(config.int("queued.max.request.bytes"))
        protected = config.inter_broker_listener_name if len(config.broker_listeners) > 1 else None
        self.connections = Connections(self._connections_max, self._connections_per_address_max, protected)
        self.kept_metadata = KeptAnswers()
        self.fetch_sessions = FetchSessions(
            config.int("max.incremental.fetch.session.cache.slots"), ports.random
        )
        self.fetch_bytes_max = config.int("fetch.max.bytes")
        selector = config.optional_text("replica.selector.class") or ""
        self.selects_by_rack = selector.endswith("RackAwareReplicaSelector")
        if selector and not selector.endswith(("RackAwareReplicaSelector", "LeaderSelector")):
            events.warn("no such replica selector: consumers read from leaders", selector=selector)
        self.partitions_per_answer_max = config.int("max.request.partition.size.limit")
        self.producer_ids = ProducerIds(self)
        self.groups = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self)
        self.controllers = Controllers(self)
        self.absences = Absences(self)
        self.topic_creation = TopicCreation(self)
        self.leader_throttle = Throttle(self, LEADER)
        self.follower_throttle = Throttle(self, FOLLOWER)
        self.replication = Replication(self)
        self.openings = Openings(self)
        self.in_sync = InSync(self)
        self.directory_reports = DirectoryReports(self)
        self.damaged_logs = DamagedLogs(self)
        self.checkpoints = Checkpoints(ports.disk, ports.workers)
        self.background = Background(self)
        self.cleaner = Cleaner(self)
        self._directories: list[LogDirectory] = []
        self._listeners: list[OpenListener] = []
        self._waiter_key = 0
        self.cluster_id = ""
        self.controller_runtime: ControllerRuntime | None = None
        self.quorum: QuorumNode
        self.replicas: Replicas
        self.lifecycle: Lifecycle
        self._is_following = False  # replicas follow the image
        self._is_abandoned = False

    # Starting and stopping

    async def start(self) -> None:
        """Returns when clients can be served. A start that fails gives back what it took."""
        try:
            await self._start()
        except (Exception, asyncio.CancelledError):
            await self.abandon()
            raise

    async def _start(self) -> None:
        directories = self._directories
        take_directories(self, directories)
        online = [directory for directory in directories if directory.offline_because is None]
        self.cluster_id = online[0].cluster_id
        self.replicas = Replicas(
            node_id=self.node_id,
            image=self.image,
            configs=self.configs,
            directories=directories,
            disk=self.disk,
            files=self.files,
            workers=self.workers,
            checkpoints=self.checkpoints,
            clock=self.clock,
            random=self.random,
            events=self.events,
        )
        self.replicas.on_placed = self.directory_reports.placed
        self.replicas.on_offline = self._directory_failed
        self.controller_runtime = controller_runtime_of(self)
        self.quorum = quorum_of(self, directories)
        self.connections.hold_all()
        endpoints = await self._listen()
        self.quorum.start()
        self.background.start_on_every_node()
        if self.config.is_controller:
            self.tasks.start(register_controller(self))
        if not self.config.is_broker:
            return
        epochs = {directory.clean_epoch for directory in online}
        previous = epochs.pop() if len(epochs) == 1 else None
        self.lifecycle = Lifecycle(self, endpoints, -1 if previous is None else previous)
        await self.lifecycle.register()
        await self.lifecycle.caught_up()
        self.replicas.load()
        self._follow_image()
        await self.lifecycle.unfenced()
        self.tasks.start(self.lifecycle.run())
        self.tasks.start(self.directory_reports.run())
        self.groups.load_what_is_there()
        self.transactions.load_what_is_there()
        self.background.start()
        self.cleaner.start()
        Recovery(self).start()
        self.connections.serve_all()

    @property
    def broker_epoch(self) -> int:
        """-1 where there is none: on a controller, and before the registration."""
        return self.lifecycle.epoch if self.config.is_broker else -1

    async def _listen(self) -> tuple[BrokerEndpoint, ...]:
        """Opens the listeners and gives what to advertise, with the real port where 0 was asked for."""
        ports = {}
        for listener in self.config.broker_listeners:
            opened = await self.network.listen(listener.host, listener.port, self._acceptor(listener))
            self._listeners.append(opened)
            ports[listener.name] = opened.port
        if has_others(self.config) or not self.config.is_broker:
            for listener in self.config.controller_listeners:
                acceptor = self._acceptor(listener, is_controller=True)
                self._listeners.append(await self.network.listen(listener.host, listener.port, acceptor))
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
        return _Acceptor(self, listener.name, self.config.int("socket.request.max.bytes"), is_controller)

    @property
    def endpoints(self) -> tuple[BrokerEndpoint, ...]:
        return self.image.brokers[self.node_id].endpoints

    async def stop(self) -> None:
        """A clean shutdown: what is written is synced, and the next start needs to check nothing."""
        if self.config.is_broker:
            await self.lifecycle.shut_down()
        await self._stop_working()
        clean = await close_logs(self)
        await self.background.checkpoint_recovery_points()
        await self.background.checkpoint_high_watermarks()
        await self.background.checkpoint_log_starts()
        clean = await self._close_metadata() and clean
        self.files.close()
        marked = 0
        for directory in self._directories:
            if clean and directory.offline_because is None and self.replicas.is_repaired(directory):
                try:
                    directory.mark_clean(self.broker_epoch)
                    marked += 1
                except OSError as error:
                    self.replicas.disk_error(directory, error)
            directory.release()
        self.events.info("stopped", node=self.node_id, clean=marked == len(self._directories))

    async def abandon(self) -> None:
        """After a start that failed, or instead of `stop` when the state cannot be trusted: gives back what was taken.

        Nothing is marked as clean, so the next start checks the logs.
        """
        if self._is_abandoned:
            return
        self._is_abandoned = True
        try:
            await self._stop_working()
            if hasattr(self, "quorum"):
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
        self.replication.stop()
        if self.controller_runtime is not None:
            self.controller_runtime.stop()
        await self.tasks.close()
        self.controllers.stop()

    async def _close_metadata(self) -> bool:
        try:
            await self.quorum.stop()
        except OSError as error:
            self.events.error("closing the metadata log", error=error)
            return False
        return True

    def failed(self, error: BaseException) -> None:
        """A task ended with an error that nobody expected: the node's state can no longer be trusted."""
        self.process.halt("".join(traceback.format_exception(error)))

    def image_changed(self, changes: Changes) -> None:
        """The image is consistent again: let what follows it follow."""
        if changes.has_configs:
            self.fetch_bytes_max = self._number("fetch.max.bytes")
            self.connections.serve_held()  # max.connections may be higher now
        for node_id in changes.fenced:
            self.absences.fenced(node_id)
        if not self._is_following:
            return
        for node_id in changes.fenced:
            self.in_sync.fenced(node_id)
        for topic in changes.removed_topics:
            for index in list(self.replicas.by_topic.get(topic, {})):
                self.replication.forget(TopicPartition(topic, index))
            self.replicas.topic_removed(topic)
            self.groups.topic_removed(topic)
            self.transactions.topic_removed(topic)
        if changes.has_configs:
            self.replicas.configs_changed()
        for topic, index in changes.partitions:
            self._follow(topic, index)

    def _follow_image(self) -> None:
        """From now on replicas have the roles that the image gives them."""
        self._is_following = True
        for topic, index in self.replicas.partitions_here():
            self._follow(topic, index)

    def _follow(self, topic: str, index: int) -> None:
        replica = self.replicas.partition_changed(topic, index)
        if replica is not None:
            if replica.directory.offline_because is None and not self.damaged_logs.holds(replica):
                self.replication.place(replica)
            else:
                self.replication.forget(TopicPartition(topic, index))
        else:
            self.replication.forget(TopicPartition(topic, index))
        self.groups.leadership_changed(topic, index)
        self.transactions.leadership_changed(topic, index)
        if replica is None and self.replicas.follows(topic, index):
            self.openings.want(TopicPartition(topic, index))

    def _directory_failed(self) -> None:
        """Others should lead what was in it: the controller hears of it with a heartbeat at once."""
        if self.config.is_broker and hasattr(self, "lifecycle"):
            self.lifecycle.beat_soon()

    def controller_changed(self) -> None:
        self.controllers.changed()
        if self.config.is_broker and hasattr(self, "lifecycle"):
            self.lifecycle.beat_soon()

    # Requests for the controller

    async def decide(self, context: RequestContext, request: Request) -> Any:
        """The controller's response: of this node itself on the controllers' listener, otherwise wherever it is."""
        if context.connection.is_controller_listener:
            return await self.decide_here(request, context.api_version)
        return await self.controllers.forward(request, context.api_version)

    async def decide_here(self, request: Request, version: int) -> Any:
        if self.controller_runtime is None or not self.controller_runtime.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This node is not the active controller.")
        return await decide(self.controller_runtime, request, version)

    def watch_broker(self, context: RequestContext, broker_id: int, error_code: int) -> None:
        """A broker speaks on this connection: when it breaks, the broker may be gone."""
        connection = context.connection
        if (
            error_code == ErrorCode.NONE
            and connection.watched_broker is None
            and self.controller_runtime is not None
        ):
            connection.watched_broker = broker_id
            self.controller_runtime.connection_opened(broker_id)

    def watched_broker_lost(self, broker_id: int) -> None:
        if self.controller_runtime is not None:
            self.controller_runtime.connection_lost(broker_id)

    # The image

    def topic_name(self, topic_id: bytes) -> str:
        """Empty if there is no such topic."""
        topic = self.image.topics_by_id.get(topic_id)
        return "" if topic is None else topic.name

    def any_live_broker_id(self) -> int:
        """What answers call the controller: clients send it requests that any broker forwards."""
        live = self.image.live_brokers()
        return live[0].node_id if live else -1

    def finalized_features(self) -> dict[str, int]:
        """Levels that the whole cluster uses; that of kraft.version is told once it is more than 0, as in Kafka."""
        level = self.quorum.kraft_version
        return self.image.features | ({KRAFT_VERSION_FEATURE: level} if level else {})

    def metadata_offset(self) -> int:
        return self.quorum.applied_offset - 1

    @property
    def auto_creates_topics(self) -> bool:
        return bool(self.configs.broker_value("auto.create.topics.enable"))

    # What handlers ask for

    def next_waiter_key(self) -> int:
        self._waiter_key += 1
        return self._waiter_key

    async def flush(self, replica: Replica) -> None:
        """Syncs what the log has now. If that fails the directory goes offline: a sync is never tried again.

        A log has one sync at a time, and those that come meanwhile share the next. The operating system tells of a
        failure once: a second sync beside the one that is told would succeed, and vouch for what is lost.
        """
        if replica.flushing is not None:
            await asyncio.shield(replica.flushing)  # it began before what is to be synced now was written
            replica.check_online()
        if replica.flushing is None:
            replica.flushing = asyncio.get_running_loop().create_task(self._sync(replica))
        failure = await asyncio.shield(replica.flushing)
        if failure is not None:
            raise KafkaError(failure.code, failure.message)

    async def _sync(self, replica: Replica) -> KafkaError | None:
        log, cuts = replica.log, replica.log.cuts
        work = log.flush_work()
        replica.last_flush_ms = self.clock.wall_ms()
        try:
            await self.replicas.sync(replica.directory, work.run, self.disk)
        except OSError as error:
            if self.replicas.get(*replica.partition) is not replica:
                # Its directory was renamed under the sync; the disk is sound.
                deleted = f"{replica.partition} has been deleted."
                return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, deleted)
            return self.replicas.sync_failed(replica.directory, error)
        finally:
            replica.flushing = None
        if log.cuts == cuts:  # otherwise what is there now may be younger than the sync
            log.flushed(work.end_offset)
        return None

    async def save_cut(self, replica: Replica) -> None:
        """Checkpoints where a log that was cut is synced, begins and is compacted. Before that nothing may be fetched
        behind the cut: it would be taken for what was there before, and synced, deleted or free of older values."""
        directory = replica.directory
        while replica.has_unsaved_cut and directory.offline_because is None:
            try:
                await self.checkpoints.write(directory.render_recovery_points)
                await self.checkpoints.write(directory.render_log_starts)
                await self.checkpoints.write(directory.render_cleaned_offsets)
                replica.has_unsaved_cut = False
            except OSError as error:
                self.replicas.disk_error(directory, error)
                await asyncio.sleep(_AGAIN_S)

    async def checkpoint_log_start(self, replica: Replica) -> None:
        replica.directory.log_starts[replica.partition] = replica.log.log_start_offset
        try:
            await self.checkpoints.write(replica.directory.render_log_starts)
        except OSError as error:
            raise self.replicas.disk_error(replica.directory, error) from error

    def _connections_max(self) -> int:
        return self._number("max.connections")

    def _connections_per_address_max(self, address: str) -> int:
        overrides = self.configs.broker_value("max.connections.per.ip.overrides")
        for entry in str(overrides or "").split(","):
            host, _, count = entry.strip().rpartition(":")
            if host == address and count.isdigit():
                return int(count)
        return self._number("max.connections.per.ip")

    def _number(self, key: str) -> int:
        value = self.configs.broker_value(key)
        assert isinstance(value, int)
        return value


class _Acceptor:
    """Makes the connection object of each client that comes."""

    def __init__(self, broker: Broker, listener: str, request_bytes_max: int, is_controller: bool) -> None:
        self._broker = broker
        self._listener = listener
        self._request_bytes_max = request_bytes_max
        self._is_controller = is_controller

    def __call__(self) -> ClientConnection:
        return ClientConnection(
            self._broker, self._listener, self._request_bytes_max, is_controller_listener=self._is_controller
        )
