"""The replicas of this node, and their logs, which are opened on first use.

The image decides: a partition that it assigns to this node gets a replica on its first use. If the image no longer has
the partition, the replica is removed, and its directory is renamed and deleted later.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import METADATA_TOPIC, TopicPartition
from strandline.broker.disks.checkpoints import CheckpointWriter
from strandline.broker.disks.disk_retry import shortage
from strandline.broker.replication.replica import Replica
from strandline.config import DynamicConfigs
from strandline.controller.image import UNASSIGNED, ClusterImage, PartitionState
from strandline.controller.observers import named_observers, observers_of
from strandline.partition.follower import PartitionFollower
from strandline.partition.leader import PartitionLeader
from strandline.partition.producers import Producers
from strandline.ports.clock import Clock
from strandline.ports.disk import Disk, is_full, lacks_files, passes
from strandline.ports.random import Random
from strandline.ports.workers import Workers
from strandline.storage.directory import LogDirectory
from strandline.storage.files import FileTable
from strandline.storage.log import Log
from strandline.storage.log_loader import EVERYWHERE, LoadedLog, LoadRequest, load_log
from strandline.telemetry.events import Events
from strandline.telemetry.topic_metrics import AllTopicsMetrics

# Every write to a full disk gets an error; the node's log has one line about it in this many seconds.
_SAY_PASSING_S: Final = 10.0
_FILES_S: Final = 0.1


class Replicas:
    def __init__(
        self,
        *,
        node_id: int,
        image: ClusterImage,
        configs: DynamicConfigs,
        directories: list[LogDirectory],
        disk: Disk,
        files: FileTable,
        workers: Workers,
        checkpoints: CheckpointWriter,
        clock: Clock,
        random: Random,
        events: Events,
        metrics: AllTopicsMetrics,
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._configs = configs
        self.directories = directories
        self._disk = disk
        self._files = files
        self._workers = workers
        self._checkpoints = checkpoints
        self._clock = clock
        self._random = random
        self._events = events
        self._metrics = metrics
        # Open replicas by topic name and partition, for the hot path.
        self.by_topic: dict[str, dict[int, Replica]] = {}
        self._on_disk: dict[TopicPartition, tuple[LogDirectory, str]] = {}
        self._counts = dict.fromkeys(directories, 0)  # the number of partitions in each directory
        self._opening: dict[TopicPartition, asyncio.Future[None]] = {}
        self._say_passing_at: dict[LogDirectory, float] = {}
        self.doomed_directories: list[tuple[int, str]] = []  # time of removal, path
        # The requested directories of partitions without a replica here (AlterReplicaLogDirs).
        self.preferred_directories: dict[TopicPartition, LogDirectory] = {}
        self.on_placed: Callable[[TopicPartition, LogDirectory], None] = lambda partition, directory: None
        self.on_offline: Callable[[], None] = lambda: None

    def load(self) -> None:
        """Finds the directories of partitions; sets aside those of partitions that are not in the image."""
        for directory in self.directories:
            if directory.offline_because is not None:
                continue
            for partition, path in directory.partitions().items():
                if partition.topic != METADATA_TOPIC:
                    self._load_partition(directory, partition, path)
            for path in (*directory.deleted_directories(), *directory.future_directories()):
                self.doomed_directories.append((self._clock.wall_ms(), path))
        self._place_missing()

    def _place_missing(self) -> None:
        """Notes the replicas that are missing in the directory that the controller knows: it is unreadable or lost.

        A partition's directory is created on its first use, so an unused one is not missing. A replica without a known
        directory may be in the one that cannot be read: beginning it again could lose its records.
        """
        online = {d.directory_id for d in self.directories if d.offline_because is None}
        unreadable = next((d for d in self.directories if d.offline_because is not None), None)
        for partition in self.partitions_here():
            topic = self._image.topics[partition.topic]
            known = topic.partitions[partition.partition].directory_of(self._node_id)
            if partition in self._on_disk or known in online:
                continue
            if unreadable is not None:
                self._is_in(partition, unreadable, unreadable.path_of(partition))
            elif known != UNASSIGNED:
                self._place(partition, topic.topic_id)

    def _load_partition(self, directory: LogDirectory, partition: TopicPartition, path: str) -> None:
        topic = self._image.topics.get(partition.topic)
        topic_id = directory.topic_id_of(path)
        if topic is not None and partition.partition in topic.partitions:
            if topic_id is None:
                # The directory's name says which partition it is; a damaged text file must not cost its records.
                directory.create_partition(partition, topic.topic_id)
                self._events.warn("repaired", what=f"{path}: its partition.metadata could not be read")
                topic_id = topic.topic_id
            if topic.topic_id == topic_id:
                self._found(directory, partition, path)
                return
        self._set_stray(directory, partition, path, "it belongs to no topic; remove it by hand")

    def _found(self, directory: LogDirectory, partition: TopicPartition, path: str) -> None:
        """Notes a found partition. Of two copies the one in the directory that the controller knows is used."""
        other = self._on_disk.get(partition)
        known = (
            self._image.topics[partition.topic].partitions[partition.partition].directory_of(self._node_id)
        )
        if other is None or directory.directory_id == known:
            self._is_in(partition, directory, path)
        stale = (directory, path) if other is not None and directory.directory_id != known else other
        if stale is not None:
            self._set_stray(stale[0], partition, stale[1], "a newer copy is in use; remove it by hand")

    def _set_stray(self, directory: LogDirectory, partition: TopicPartition, path: str, advice: str) -> None:
        stray = directory.set_stray(partition, path, self._random.uuid().hex())
        self._events.warn("stray partition set aside", directory=stray, advice=advice)

    def all_open(self) -> list[Replica]:
        return [replica for partitions in self.by_topic.values() for replica in partitions.values()]

    def get(self, topic: str, index: int) -> Replica | None:
        partitions = self.by_topic.get(topic)
        return None if partitions is None else partitions.get(index)

    def state_here(self, topic: str, index: int) -> PartitionState:
        """Returns the image's state of a partition with a replica on this node; raises KafkaError if there is none."""
        known = self._image.topics.get(topic)
        state = None if known is None else known.partitions.get(index)
        if state is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
        if not self._holds(topic, state):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"This node has no replica of {topic}-{index}."
            )
        return state

    async def open_led(self, topic: str, index: int) -> Replica:
        """Returns the replica, if this node leads it."""
        replica = await self.open(topic, index)
        if not replica.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"This node does not lead {topic}-{index}.")
        return replica

    async def open(self, topic: str, index: int) -> Replica:
        """Returns the replica and opens it if necessary; raises KafkaError if this node has none."""
        found = self.get(topic, index)
        if found is not None:
            return found  # nearly always, and for each append
        partition = TopicPartition(topic, index)
        while True:
            found = self.get(topic, index)
            if found is not None:
                return found
            state = self.state_here(topic, index)
            pending = self._opening.get(partition)
            if pending is None:
                break
            await asyncio.shield(pending)  # a cancelled caller must not cancel it for the others
        done = self._opening[partition] = asyncio.get_running_loop().create_future()
        topic_id = self._image.topics[topic].topic_id
        try:
            directory, path = self._place(partition, topic_id)
            try:
                if partition in directory.forgotten:
                    await self._checkpoints.save_forgotten(directory, partition)
                    self._check_present(partition, path)
                return await self._open(partition, topic_id, state, directory, path)
            except OSError as error:
                self._check_present(partition, path)
                raise self.disk_error(directory, error) from error
        finally:
            del self._opening[partition]
            done.set_result(None)

    def _place(self, partition: TopicPartition, topic_id: bytes) -> tuple[LogDirectory, str]:
        """Returns the partition's directory, and creates it if there is none."""
        if partition not in self._on_disk:
            directory = self._directory_for_new(partition)
            try:
                directory.forget(partition)
                path = directory.create_partition(partition, topic_id)
            except OSError as error:
                raise self.disk_error(directory, error) from error
            self._is_in(partition, directory, path)
        return self._on_disk[partition]

    def _is_in(self, partition: TopicPartition, directory: LogDirectory, path: str) -> None:
        other = self._on_disk.get(partition)
        if other is not None:
            self._counts[other[0]] -= 1
        self._on_disk[partition] = (directory, path)
        self._counts[directory] += 1
        self.on_placed(partition, directory)

    def _check_present(self, partition: TopicPartition, path: str) -> None:
        """Raises KafkaError if the topic was deleted during a wait, and its directory renamed."""
        if self._on_disk.get(partition, (None, ""))[1] != path:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition} has been deleted.")

    async def _open(
        self,
        partition: TopicPartition,
        topic_id: bytes,
        state: PartitionState,
        directory: LogDirectory,
        path: str,
    ) -> Replica:
        if directory.offline_because is not None:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{directory.path} is offline: see the node's log."
            )
        recovery_point = directory.recovery_points.get(partition, 0)
        request = LoadRequest(
            directory=path,
            is_clean=directory.is_clean,
            recovery_point=recovery_point,
            start_offset=directory.log_starts.get(partition, 0),
            index_interval_bytes=self._configs.topic(partition.topic).index_interval_bytes,
            new_producers=Producers,
            gaps_below=self._gaps_below(partition, directory),
        )
        opened: LoadedLog
        if directory.is_clean:
            opened = load_log(self._disk, request)
        else:
            opened = await self._workers.run(load_log, self._disk, request)
            self._check_present(partition, path)
        config = self._configs.topic(partition.topic)
        for note in opened.notes:
            self._events.warn("repaired", what=note)
        now = self._clock.wall_ms()
        log = Log(self._disk, self._files, path, partition, config, opened, recovery_point, now)
        state = self.state_here(*partition)  # the state may have changed while the log was opened
        role = self._role(partition, state, log)
        _begin_epoch(role, log)
        metrics = self._metrics.of(partition.topic)
        replica = Replica(partition, topic_id, config, directory, log, role, self._clock, metrics)
        self.by_topic.setdefault(partition.topic, {})[partition.partition] = replica
        return replica

    def _gaps_below(self, partition: TopicPartition, directory: LogDirectory) -> int:
        """Returns the offset up to which compaction may have left gaps: the recovery point of its start."""
        known = directory.recovery_points.get(partition)
        if known is None and "compact" in self._configs.topic(partition.topic).cleanup_policy:
            return EVERYWHERE  # the checkpoint is lost, so no gap counts as a lost tail
        return max(known or 0, directory.cleaned_offsets.get(partition, 0))

    def _role(
        self, partition: TopicPartition, state: PartitionState, log: Log, known: int = -1
    ) -> PartitionLeader | PartitionFollower:
        """Returns the role of this node in the image; `known` is the high watermark of an earlier role."""
        directory, _ = self._on_disk[partition]
        high_watermark = max(known, directory.high_watermarks.get(partition, 0))
        high_watermark = max(min(high_watermark, log.log_end_offset), log.log_start_offset)
        if state.leader != self._node_id:
            return PartitionFollower(
                node_id=self._node_id,
                leader_id=state.leader,
                epoch=state.leader_epoch,
                high_watermark=high_watermark,
            )
        leader = PartitionLeader(
            node_id=self._node_id,
            epoch=state.leader_epoch,
            replicas=state.replicas,
            in_sync=state.in_sync,
            end_offset=log.log_end_offset,
            high_watermark=high_watermark,
            partition_epoch=state.partition_epoch,
            observers=observers_of(self._image, partition.topic, state),
            now=self._clock.monotonic(),
        )
        leader.appended(log.log_end_offset, log.config.min_insync_replicas)
        return leader

    def _directory_for_new(self, partition: TopicPartition) -> LogDirectory:
        """Returns the requested directory, or else the online one with the fewest partitions."""
        preferred = self.preferred_directories.pop(partition, None)
        if preferred is not None and preferred.offline_because is None:
            return preferred
        online = [directory for directory in self.directories if directory.offline_because is None]
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "All log directories are offline: see the log.")
        return min(online, key=lambda directory: self._counts[directory])

    def disk_error(self, directory: LogDirectory, error: OSError) -> KafkaError:
        """Returns the error of a failed read or write. If the error does not pass, the directory goes offline."""
        if passes(error):
            self._say_passing(directory, error)
            why = "no room is left" if is_full(error) else str(error.strerror)
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{directory.path} cannot be used now: {why}.")
        if directory.offline_because is None:
            directory.offline_because = str(error)
            self._events.error("log directory offline", directory=directory.path, error=error)
            for replica in self.all_open():
                if replica.directory is directory:
                    replica.wake_all()
            self.on_offline()
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {directory.path} is offline: {error}."
        )

    def _say_passing(self, directory: LogDirectory, error: OSError) -> None:
        now = self._clock.monotonic()
        if now < self._say_passing_at.get(directory, 0.0):
            return
        self._say_passing_at[directory] = now + _SAY_PASSING_S
        if is_full(error):
            self._events.error(shortage(error), directory=directory.path)
        else:
            self._events.error(shortage(error), directory=directory.path, error=error)

    async def sync(self, directory: LogDirectory, work: Callable[..., None], *values: object) -> None:
        """Runs a sync that opens the files first. If no file can be opened, nothing was synced, and it is tried again;
        a sync that failed is not."""
        while True:
            try:
                await self._workers.run(work, *values)
                return
            except OSError as error:
                if not lacks_files(error) or directory.offline_because is not None:
                    raise
                self.disk_error(directory, error)
                await asyncio.sleep(_FILES_S)

    def sync_failed(self, directory: LogDirectory, error: OSError) -> KafkaError:
        """Takes the directory of a failed sync offline: data may be lost, also if the reason was a full disk."""
        return self.disk_error(directory, OSError(errno.EIO, f"sync failed: {error}"))

    def is_repaired(self, directory: LogDirectory) -> bool:
        """Returns True if every log in it is whole: after an unclean shutdown, once all have been opened."""
        return directory.is_clean or all(
            self.get(*partition) is not None for partition in self.partitions_in(directory)
        )

    def partitions_in(self, directory: LogDirectory) -> list[TopicPartition]:
        return [partition for partition, (held, _) in self._on_disk.items() if held is directory]

    def directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        """Returns the log directory in which this node has the partition."""
        found = self._on_disk.get(partition)
        return None if found is None else found[0]

    def switched(self, replica: Replica, directory: LogDirectory, path: str) -> None:
        """Notes that the replica's log is in another directory; the old directory is removed after a delay."""
        old_directory, old_path = self._on_disk[replica.partition]
        old_log = replica.log
        # Open files are cached by path, which another log may have next.
        self._files.forget_in(old_path)
        doomed = old_directory.set_aside(replica.partition, old_path, self._random.uuid().hex())
        old_log.moved_to(doomed)
        self.doomed_directories.append((self._clock.wall_ms() + replica.config.file_delete_delay_ms, doomed))
        self._is_in(replica.partition, directory, path)

    def has_data(self, topic: str, index: int) -> bool:
        return TopicPartition(topic, index) in self._on_disk

    # Following the image

    def partition_changed(self, topic: str, index: int) -> Replica | None:
        """Gives an open replica its role in the image; returns the replica, or None if it is not open."""
        replica = self.get(topic, index)
        known = self._image.topics.get(topic)
        state = None if known is None else known.partitions.get(index)
        if state is None:
            return None
        if not self._holds(topic, state):
            if TopicPartition(topic, index) in self._on_disk:
                self._remove(TopicPartition(topic, index))
            return None
        if replica is None:
            return None
        role = replica.role
        if (
            isinstance(role, PartitionLeader)
            and state.leader == self._node_id
            and role.epoch == state.leader_epoch
        ):
            observers = observers_of(self._image, topic, state)
            role.replicas_changed(state.replicas, self._clock.monotonic(), observers)
            replica.in_sync_decided(state.in_sync, state.partition_epoch)
        elif role.epoch != state.leader_epoch or (
            isinstance(role, PartitionFollower) and role.leader_id != state.leader
        ):
            new_role = self._role(replica.partition, state, replica.log, replica.high_watermark)
            _begin_epoch(new_role, replica.log)
            replica.take(new_role)
        return replica

    def partitions_here(self) -> list[TopicPartition]:
        return [
            TopicPartition(topic.name, index)
            for topic in self._image.topics.values()
            for index, state in topic.partitions.items()
            if self._holds(topic.name, state)
        ]

    def _holds(self, topic: str, state: PartitionState) -> bool:
        """Returns True if this node has a replica or an observer's copy. No topic gets the metadata log's directory."""
        if topic == METADATA_TOPIC:
            return False
        return self._node_id in state.replicas or self._node_id in named_observers(self._image, topic)

    def follows(self, topic: str, index: int) -> bool:
        """Returns True if this node has a copy that another node leads."""
        known = self._image.topics.get(topic)
        state = None if known is None else known.partitions.get(index)
        return state is not None and state.leader not in (self._node_id, -1) and self._holds(topic, state)

    def topic_removed(self, topic: str) -> None:
        for index in [tp.partition for tp in self._on_disk if tp.topic == topic]:
            self._remove(TopicPartition(topic, index))
        self.by_topic.pop(topic, None)
        self._metrics.forget(topic)

    def _remove(self, partition: TopicPartition) -> None:
        directory, path = self._on_disk.pop(partition)
        self._counts[directory] -= 1
        replica = self.by_topic.get(partition.topic, {}).pop(partition.partition, None)
        delay_ms = self._configs.topic(partition.topic).file_delete_delay_ms
        if replica is not None:
            # Code that still refers to the replica must not use it as a leader: nothing may be written any more.
            replica.take(
                PartitionFollower(
                    node_id=self._node_id,
                    leader_id=-1,
                    epoch=replica.epoch,
                    high_watermark=replica.high_watermark,
                )
            )
            replica.log.release()
        try:
            doomed = directory.set_aside(partition, path, self._random.uuid().hex())
        except OSError as error:
            self.disk_error(directory, error)
            return
        if replica is not None:
            replica.log.moved_to(doomed)
        self.doomed_directories.append((self._clock.wall_ms() + delay_ms, doomed))

    def configs_changed(self) -> None:
        """Gives each open replica its present configuration; the same object means that nothing has changed."""
        for topic, partitions in self.by_topic.items():
            config = self._configs.topic(topic)
            for replica in partitions.values():
                if replica.config is not config:
                    replica.configure(config)

    def sizes(self) -> dict[LogDirectory, list[tuple[TopicPartition, int]]]:
        """Returns the bytes of each partition, by directory; logs that are not open are measured on the disk."""
        found: dict[LogDirectory, list[tuple[TopicPartition, int]]] = {d: [] for d in self.directories}
        for partition, (directory, path) in self._on_disk.items():
            replica = self.get(*partition)
            if replica is not None:
                size = replica.log.size
            elif directory.offline_because is None:
                size = sum(
                    self._disk.size(f"{path}/{n}") for n in self._disk.names(path) if n.endswith(".log")
                )
            else:
                size = 0
            found[directory].append((partition, size))
        for partition in self.partitions_here():
            if partition not in self._on_disk:
                # Its directory is created on its first use.
                directory = self.preferred_directories.get(partition, self.directories[0])
                found[directory].append((partition, 0))
        return found


def _begin_epoch(role: PartitionLeader | PartitionFollower, log: Log) -> None:
    """Notes the begin of a new leader's epoch, which its first append writes."""
    if isinstance(role, PartitionLeader):
        log.epochs.begin(role.epoch, log.log_end_offset)
