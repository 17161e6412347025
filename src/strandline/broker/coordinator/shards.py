"""The partitions of a coordinator's internal topic that this broker leads, each loaded as a machine.

1. A group or a transactional id belongs to the partition that follows from the hash of its name; this broker
   coordinates it while it leads that partition.
2. A shard is loaded by replaying its partition, before it serves requests; meanwhile the error is
   COORDINATOR_LOAD_IN_PROGRESS. An empty partition is loaded on its first use, and requests wait for that: Kafka loads
   it when the topic is created, and clients do not expect this error from the coordinator of every new group.
3. The topic is created when a client first looks for a coordinator. Its deletion ends all of its shards; after that a
   client finds a new, empty coordinator.
4. A shard whose log cannot be read is not loaded. That is logged, and clients get NOT_COORDINATOR, as from Kafka. It is
   tried again when the partition changes, or after a while at the next request.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Generic, TypeVar

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.coordinator.auto_topic_creation import AutoTopicCreation
from strandline.broker.coordinator.runtime import CoordinatorRuntime
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.corrupt_replicas import CorruptReplicas
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.storage.segment import DamagedSegment
from strandline.wire.api.k19_create_topics import CreatableTopic, CreatableTopicConfig
from strandline.wire.compiler import DecodeError
from strandline.wire.record_batch import CorruptBatch

RETRY_S: Final = 5.0


@lru_cache(maxsize=10_000)
def java_hash(text: str) -> int:
    """Returns Java's String.hashCode, made positive as in Kafka."""
    value = 0
    data = text.encode("utf-16-be")
    for position in range(0, len(data), 2):
        value = (31 * value + (data[position] << 8 | data[position + 1])) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return 0 if signed == -(1 << 31) else abs(signed)


R = TypeVar("R", bound=CoordinatorRuntime)


class CoordinatorShards(ABC, Generic[R]):
    # The error if the topic does not exist yet: Kafka's two coordinators differ.
    ABSENT: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE

    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        corrupt_replicas: CorruptReplicas,
        topic_creation: AutoTopicCreation,
        topic: str,
    ) -> None:
        self._node = node
        self._replicas = replicas
        self._corrupt_replicas = corrupt_replicas
        self._topic_creation = topic_creation
        topic_creation.internal_topics[topic] = self.new_topic
        self.topic = topic
        self._shards: dict[int, R] = {}
        self._loading: dict[int, asyncio.Task[None]] = {}
        self._empty: set[int] = set()  # those of them that are empty
        self._try_again_at: dict[int, float] = {}  # for partitions that could not be loaded

    @abstractmethod
    async def _load_runtime(self, replica: Replica) -> R:
        """Replays the log of one partition into its shard."""

    @abstractmethod
    def _topic_settings(self) -> tuple[int, int, Mapping[str, str]]:
        """Returns partitions, replication factor and configuration of the topic."""

    def _started(self, runtime: R) -> None:
        """Starts the work of a shard that was loaded."""

    # Finding a shard

    def partition_of(self, key: str) -> int:
        topic = self._node.image.topics.get(self.topic)
        if topic is None:
            raise KafkaError(self.ABSENT, f"There is no topic {self.topic} yet.")
        return java_hash(key) % len(topic.partitions)

    def leader_of(self, key: str) -> int:
        """Returns the broker that is the coordinator; -1 if there is none at the moment."""
        partition = self.partition_of(key)
        return self._node.image.topics[self.topic].partitions[partition].leader

    def loaded(self, key: str) -> R | None:
        """Returns the shard if it is loaded here, as for most requests."""
        topic = self._node.image.topics.get(self.topic)
        return None if topic is None else self._shards.get(java_hash(key) % len(topic.partitions))

    def shard_of(self, key: str) -> R:
        """Returns the shard; raises KafkaError unless this broker is the coordinator and has loaded it."""
        partition = self.partition_of(key)
        runtime = self._shards.get(partition)
        if runtime is not None:
            return runtime
        self._check_loadable(partition)
        if partition not in self._loading:
            self._start_loading(partition)
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.topic}-{partition} is being loaded.")

    async def loaded_shard_of(self, key: str) -> R:
        """Returns the same, and waits for a load that this request begins: a short load takes less time than a
        retry."""
        partition = self.partition_of(key)
        if partition not in self._shards and partition not in self._loading:
            self._check_loadable(partition)
            await self._start_loading(partition)
        return self.shard_of(key)

    def shard_at(self, partition: int) -> R | None:
        return self._shards.get(partition)

    def shards(self) -> list[R]:
        return [self._shards[partition] for partition in sorted(self._shards)]

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def _check_leads(self, partition: int) -> None:
        if self._node.image.topics[self.topic].partitions[partition].leader != self._node.node_id:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "Another broker is the coordinator.")

    def _check_loadable(self, partition: int) -> None:
        self._check_leads(partition)
        if self._could_not_be_loaded(partition):
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.topic}-{partition} could not be loaded.")

    def _could_not_be_loaded(self, partition: int) -> bool:
        """Returns True if loading failed within the last RETRY_S seconds."""
        return self._node.clock.monotonic() < self._try_again_at.get(partition, 0.0)

    # Loading

    def first_load(self, key: str) -> asyncio.Task[None] | None:
        """Returns the load of an empty partition, which takes no time, and begins it if necessary."""
        topic = self._node.image.topics.get(self.topic)
        if topic is None:
            return None
        partition = java_hash(key) % len(topic.partitions)
        if partition in self._shards:
            return None
        if partition in self._loading:
            return self._loading[partition] if partition in self._empty else None
        is_led = topic.partitions[partition].leader == self._node.node_id
        if not is_led or not self._is_empty(partition) or self._could_not_be_loaded(partition):
            return None
        return self._start_loading(partition)

    def _has_data(self, partition: int) -> bool:
        return self._replicas.has_data(self.topic, partition)

    def _is_empty(self, partition: int) -> bool:
        """Returns True if the partition is empty, also if its log is open because followers fetch it."""
        replica = self._replicas.get(self.topic, partition)
        return not self._has_data(partition) if replica is None else replica.log.log_end_offset == 0

    def _start_loading(self, partition: int) -> asyncio.Task[None]:
        self._try_again_at.pop(partition, None)
        if self._is_empty(partition):
            self._empty.add(partition)
        task = self._node.tasks.start(self._load(partition))
        self._loading[partition] = task
        return task

    def load_what_is_there(self) -> None:
        """Loads the partitions with records at the start, before the first request for them."""
        topic = self._node.image.topics.get(self.topic)
        for partition in sorted(topic.partitions) if topic is not None else ():
            leads = topic is not None and topic.partitions[partition].leader == self._node.node_id
            if (
                leads
                and self._has_data(partition)
                and partition not in self._loading
                and partition not in self._shards
            ):
                self._start_loading(partition)

    async def _load(self, partition: int) -> None:
        try:
            runtime = self._shards[partition] = await self._loaded(partition)
            self._started(runtime)
        except KafkaError as error:
            self._try_again_at[partition] = self._node.clock.monotonic() + RETRY_S
            self._node.events.warn(
                "coordinator not loaded", topic=self.topic, partition=partition, error=error
            )
        finally:
            self._loading.pop(partition, None)
            self._empty.discard(partition)

    async def _loaded(self, partition: int) -> R:
        replicas = self._replicas
        while True:
            replica = await replicas.open_led(self.topic, partition)
            replica.check_online()
            epoch, segments = replica.epoch, list(replica.log.segments)
            try:
                runtime = await self._load_runtime(replica)
            except (OSError, CorruptBatch, DecodeError) as error:
                is_there = replicas.get(self.topic, partition) is replica
                if is_there and replica.log.segments == segments:
                    raise self._not_loadable(replica, error) from error
                # Compaction has replaced and removed the segment that was being read, or the topic was deleted.
            else:
                is_there = replicas.get(self.topic, partition) is replica
                if is_there and replica.is_leader and replica.epoch == epoch:
                    return runtime

    def _not_loadable(self, replica: Replica, error: Exception) -> KafkaError:
        if isinstance(error, OSError):
            return self._replicas.disk_error(replica.directory, error)
        if isinstance(error, DamagedSegment):
            return self._corrupt_replicas.report(replica, error)
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"{replica.partition} has a record that cannot be read: {error}"
        )

    def leadership_changed(self, topic: str, partition: int) -> None:
        """Unloads the shards that this node no longer leads, and loads those that it leads now."""
        if topic != self.topic:
            return
        replica = self._replicas.get(topic, partition)
        runtime = self._shards.get(partition)
        if runtime is not None and (
            replica is None or not replica.is_leader or replica.epoch != runtime.epoch
        ):
            self._end(partition)
        if (
            replica is not None
            and replica.is_leader
            and partition not in self._shards
            and partition not in self._loading
        ):
            self._start_loading(partition)

    def topic_removed(self, topic: str) -> None:
        if topic == self.topic:
            for partition in sorted(self._shards):
                self._end(partition)

    def _end(self, partition: int) -> None:
        self._shards.pop(partition).stop()

    # The topic

    def new_topic(self) -> CreatableTopic:
        partitions, replication_factor, settings = self._topic_settings()
        return CreatableTopic(
            name=self.topic,
            num_partitions=partitions,
            replication_factor=replication_factor,
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in settings.items()),
        )

    async def ensure_topic(self) -> None:
        if self.topic in self._node.image.topics:
            return
        refused = await self._topic_creation.create_by_name([self.topic], None)
        if self.topic not in self._node.image.topics:
            why = refused[self.topic].message if refused else f"{self.topic} is being created."
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)

    def stop(self) -> None:
        for runtime in self.shards():
            runtime.stop()
