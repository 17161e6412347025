"""A broker: everything one node consists of, put together on its ports."""

from __future__ import annotations

import asyncio
import traceback
from typing import NamedTuple

from strandline.base.errors import ErrorCode, KafkaError, error_name
from strandline.broker.admission import Connections, RequestMemory
from strandline.broker.background import Background
from strandline.broker.checkpoints import Checkpoints
from strandline.broker.connection import ClientConnection
from strandline.broker.fetch_sessions import FetchSessions
from strandline.broker.group_coordinator import GroupCoordinator
from strandline.broker.handlers import Handlers
from strandline.broker.metadata_log import BOOTSTRAP_FILE, MetadataLog, render_bootstrap
from strandline.broker.producer_ids import ProducerIds
from strandline.broker.replica import Replica
from strandline.broker.replicas import Replicas
from strandline.broker.tasks import TaskScope
from strandline.config import BrokerConfig, DynamicConfigs, Listener, TopicConfig
from strandline.controller.brokers import Registration
from strandline.controller.controller import (
    METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    METADATA_VERSION_MIN,
    Controller,
    apply_to,
)
from strandline.controller.image import ClusterImage
from strandline.controller.producer_ids import ProducerIdBlock
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
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.records.metadata import BrokerEndpoint, BrokerFeature, ConfigRecord, RemoveTopicRecord
from strandline.wire.schema import Message

_SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class Ports(NamedTuple):
    """The world that a broker lives in."""

    disk: Disk
    clock: Clock
    random: Random
    workers: Workers
    network: Network
    process: Process
    open_files_max: int


class Broker:
    def __init__(self, ports: Ports, config: BrokerConfig, events: Events) -> None:
        self.config = config
        self.events = events
        self.disk = ports.disk
        self.clock = ports.clock
        self.workers = ports.workers
        self._network = ports.network
        self.random = ports.random
        self._process = ports.process
        self._files = FileTable(ports.disk, ports.open_files_max)
        self.node_id = config.node_id
        self.counters = Counters()
        self.tasks = TaskScope(self.failed)
        self.image = ClusterImage()
        self.configs = DynamicConfigs(config)
        self.controller = Controller(DynamicConfigs(config), ports.random)
        self.handlers = Handlers(self)
        self.memory = RequestMemory(config.int("queued.max.request.bytes"))
        self.connections = Connections(self._connections_max, self._connections_per_address_max)
        self.fetch_sessions = FetchSessions(
            config.int("max.incremental.fetch.session.cache.slots"), ports.random
        )
        self.fetch_bytes_max = config.int("fetch.max.bytes")
        self.partitions_per_answer_max = config.int("max.request.partition.size.limit")
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self.groups = GroupCoordinator(self)
        self.checkpoints = Checkpoints(ports.disk, ports.workers)
        self.background = Background(self)
        self._listeners: list[OpenListener] = []
        self._waiter_key = 0
        self._configs_changed = False
        self._removed_topics: list[str] = []
        self.broker_epoch = -1
        self.cluster_id = ""
        self.metadata: MetadataLog
        self.replicas: Replicas

    # Starting and stopping

    async def start(self) -> None:
        directories = [LogDirectory(self.disk, path, self.node_id) for path in self.config.log_dirs]
        self.cluster_id = directories[0].cluster_id
        for directory in directories:
            for note in directory.notes:
                self.events.warn("repaired", what=note)
        self.replicas = Replicas(
            node_id=self.node_id,
            image=self.image,
            configs=self.configs,
            directories=directories,
            disk=self.disk,
            files=self._files,
            workers=self.workers,
            clock=self.clock,
            random=self.random,
            events=self.events,
        )
        self._open_metadata(directories[0])
        await self._register(was_clean=all(directory.is_clean for directory in directories))
        self.groups.load_what_is_there()
        self.background.start()
        self.connections.serve_all()

    def _open_metadata(self, directory: LogDirectory) -> None:
        self.metadata = MetadataLog(
            disk=self.disk,
            files=self._files,
            workers=self.workers,
            clock=self.clock,
            process=self._process,
            directory=self.config.optional_text("metadata.log.dir") or directory.path,
            directory_id=directory.directory_id,
            node_id=self.node_id,
            config=self._metadata_log_config(),
            controller=self.controller,
            on_committed=self._committed,
            on_published=self._published,
        )
        for note in self.metadata.notes:
            self.events.warn("repaired", what=note)
        self.metadata.replay()
        self._removed_topics.clear()
        self.replicas.load()

    def _metadata_log_config(self) -> TopicConfig:
        """The metadata log has segments of its own, whatever is set for topics."""
        segments = {
            "segment.bytes": str(self.config.int("metadata.log.segment.bytes")),
            "segment.ms": str(self.config.int("metadata.log.segment.ms")),
            "preallocate": "false",
        }
        return TopicConfig(self.configs.topic_values(segments))

    async def _register(self, *, was_clean: bool) -> None:
        self.metadata.announce_leader()
        if not self.image.features:
            await self.metadata.commit_records(self.controller.bootstrap_records())
        self.connections.hold_all()
        bound = await self._listen()
        registration = Registration(
            broker_id=self.node_id,
            incarnation=self.random.uuid(),
            endpoints=bound,
            features=(
                BrokerFeature(
                    name=METADATA_VERSION_FEATURE,
                    min_supported_version=METADATA_VERSION_MIN,
                    max_supported_version=METADATA_VERSION,
                ),
            ),
            rack=self.config.optional_text("broker.rack"),
            log_dirs=tuple(directory.directory_id for directory in self.replicas.directories),
            was_clean_shutdown=was_clean,
        )
        planned = self.controller.plan_register(registration, self.metadata.next_offset)
        self.broker_epoch = await self.metadata.commit(planned)
        await self.metadata.commit(self.controller.plan_unfence(self.node_id))

    async def _listen(self) -> tuple[BrokerEndpoint, ...]:
        """Opens the listeners and gives what to advertise, with the real port where 0 was asked for."""
        ports = {}
        for listener in self.config.broker_listeners:
            opened = await self._network.listen(listener.host, listener.port, self._acceptor(listener))
            self._listeners.append(opened)
            ports[listener.name] = opened.port
        return tuple(
            BrokerEndpoint(
                name=listener.name,
                host=listener.host or "localhost",
                port=listener.port or ports[listener.name],
                security_protocol=_SECURITY_PROTOCOLS[listener.protocol],
            )
            for listener in self.config.advertised_listeners
        )

    def _acceptor(self, listener: Listener) -> _Acceptor:
        return _Acceptor(self, listener.name, self.config.int("socket.request.max.bytes"))

    @property
    def endpoints(self) -> tuple[BrokerEndpoint, ...]:
        return self.image.brokers[self.node_id].endpoints

    async def stop(self) -> None:
        """A clean shutdown: what is written is synced, and the next start needs to check nothing."""
        for listener in self._listeners:
            listener.close()
        self.connections.close_all()
        self.groups.stop()
        await self.tasks.close()
        clean = True
        for replica in self.replicas.all_open():
            if replica.directory.offline_because is not None:
                continue
            try:
                replica.log.close()
                await self.flush(replica)
            except (OSError, KafkaError) as error:
                self.events.error("closing a log", partition=replica.partition, error=error)
                clean = False
        await self.background.checkpoint_recovery_points()
        await self.background.checkpoint_high_watermarks()
        await self.background.checkpoint_log_starts()
        clean = await self._close_metadata() and clean
        self._files.close()
        marked = 0
        for directory in self.replicas.directories:
            if clean and directory.offline_because is None and self.replicas.is_repaired(directory):
                try:
                    directory.mark_clean(self.broker_epoch)
                    marked += 1
                except OSError as error:
                    self.replicas.disk_error(directory, error)
            directory.release()
        self.events.info("stopped", node=self.node_id, clean=marked == len(self.replicas.directories))

    async def _close_metadata(self) -> bool:
        try:
            await self.metadata.close()
        except OSError as error:
            self.events.error("closing the metadata log", error=error)
            return False
        return True

    def failed(self, error: BaseException) -> None:
        """A task ended with an error that nobody expected: the node's state can no longer be trusted."""
        self._process.halt("".join(traceback.format_exception(error)))

    # The image

    def _committed(self, record: Message) -> None:
        if isinstance(record, RemoveTopicRecord):
            self._removed_topics.append(self.image.topics_by_id[record.topic_id].name)
        elif isinstance(record, ConfigRecord):
            self._configs_changed = True
        apply_to(self.image, self.configs, record)

    def _published(self) -> None:
        """The image is consistent again: let what follows it follow."""
        for topic in self._removed_topics:
            self.replicas.topic_removed(topic)
            self.groups.topic_removed(topic)
        self._removed_topics.clear()
        if self._configs_changed:
            self._configs_changed = False
            self.fetch_bytes_max = self._number("fetch.max.bytes")
            self.replicas.configs_changed()

    def topic_name(self, topic_id: bytes) -> str:
        """Empty if there is no such topic."""
        topic = self.image.topics_by_id.get(topic_id)
        return "" if topic is None else topic.name

    def any_live_broker_id(self) -> int:
        """What answers call the controller: clients send it requests that any broker forwards."""
        live = self.image.live_brokers()
        return live[0].node_id if live else -1

    def metadata_offset(self) -> int:
        return self.metadata.next_offset - 1

    @property
    def auto_creates_topics(self) -> bool:
        return bool(self.configs.broker_value("auto.create.topics.enable"))

    async def create_topics_automatically(self, names: list[str]) -> dict[str, int]:
        """Creates topics with the defaults; the error of each that could not be."""
        request = CreateTopicsRequest(
            topics=tuple(
                CreatableTopic(
                    name=name, num_partitions=-1, replication_factor=-1, assignments=(), configs=()
                )
                for name in names
            )
        )
        try:
            response = await self.metadata.commit(self.controller.plan_create_topics(request))
        except KafkaError as error:
            return dict.fromkeys(names, error.code)
        failed = {}
        for result in response.topics:
            if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                failed[result.name] = result.error_code
                self.events.warn(
                    "automatic topic creation", topic=result.name, error=error_name(result.error_code)
                )
        return failed

    async def _allocate_producer_ids(self) -> ProducerIdBlock:
        return await self.metadata.commit(
            self.controller.plan_allocate_producer_ids(self.node_id, self.broker_epoch)
        )

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
        work = replica.log.flush_work()
        replica.last_flush_ms = self.clock.wall_ms()
        try:
            await self.workers.run(work.run, self.disk)
        except OSError as error:
            if self.replicas.get(*replica.partition) is not replica:
                # Its directory was renamed under the sync; the disk is sound.
                deleted = f"{replica.partition} has been deleted."
                return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, deleted)
            return self.replicas.sync_failed(replica.directory, error)
        finally:
            replica.flushing = None
        replica.log.flushed(work.end_offset)
        return None

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

    def __init__(self, broker: Broker, listener: str, request_bytes_max: int) -> None:
        self._broker = broker
        self._listener = listener
        self._request_bytes_max = request_bytes_max

    def __call__(self) -> ClientConnection:
        return ClientConnection(self._broker, self._listener, self._request_bytes_max)


def bootstrap_file(now_ms: int, random: Random, config: BrokerConfig) -> tuple[str, bytes]:
    """Name and contents of the file with which a new cluster's metadata begins."""
    records = Controller(DynamicConfigs(config), random).bootstrap_records()
    return BOOTSTRAP_FILE, render_bootstrap(records, now_ms)
