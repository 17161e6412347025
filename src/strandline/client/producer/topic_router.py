"""The queues of each topic's partitions, and the choice of one for a record."""

from __future__ import annotations

from typing import Any

from strandline.client.config.config import ClientConfig
from strandline.client.errors import ConfigError, KafkaError, UnknownTopicError
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.metadata import TopicInfo
from strandline.client.producer.batch import PartitionQueue
from strandline.client.producer.partitioners import (
    Partitioner,
    RoundRobin,
    partition_for_key,
    weighted_choice,
)


class TopicQueues:
    """One topic's queues, by partition. `sticky` takes records without a key, unless a partitioner decides for all."""

    def __init__(
        self,
        router: TopicRouter,
        info: TopicInfo,
        *,
        partitioner: Partitioner | None,
        ignores_keys: bool,
        is_adaptive: bool,
        batch_bytes: int,
    ) -> None:
        self.name = info.name
        self.queues: list[PartitionQueue] = []
        self._router = router
        self._partitioner = partitioner
        self._ignores_keys = ignores_keys
        self._is_adaptive = is_adaptive
        self._batch_bytes = batch_bytes
        self.sticky: PartitionQueue | None = None
        self.grow(len(info.partitions))
        if partitioner is None:
            self.sticky = self._choose_sticky()

    def grow(self, count: int) -> None:
        """Adds queues until there are so many partitions."""
        while len(self.queues) < count:
            self.queues.append(PartitionQueue(self.name, len(self.queues)))

    def choose(self, partition: int | None, key: bytes | None, value: bytes | None) -> PartitionQueue | None:
        """Returns the queue for a record, or None if the partition is not known."""
        queues = self.queues
        if partition is not None:
            return queues[partition] if 0 <= partition < len(queues) else None
        if self._partitioner is not None:
            return self._call_partitioner(key, value)
        if key is not None and not self._ignores_keys:
            return queues[partition_for_key(key, len(queues))]
        return self.sticky

    def may_go_anywhere(self, key: bytes | None) -> bool:
        """Returns True if a record with this key may go to any partition."""
        return self.sticky is not None and (key is None or self._ignores_keys)

    def next_sticky(self) -> PartitionQueue:
        """Returns the queue that takes records without a key now. It changes when a batch's worth of bytes went to the
        last one."""
        assert self.sticky is not None
        if self.sticky.sticky_bytes >= self._batch_bytes // 2 and self.sticky.open is None:
            self.sticky.sticky_bytes = 0
            self.sticky = self._choose_sticky()
        return self.sticky

    def _choose_sticky(self) -> PartitionQueue:
        queues = self.queues
        if len(queues) == 1:
            return queues[0]
        candidates = self._router.available(self.name) or tuple(range(len(queues)))
        candidates = tuple(number for number in candidates if number < len(queues))
        below = self._router.below
        if not self._is_adaptive:
            return queues[candidates[below(len(candidates))]]
        lengths = [len(queues[number].waiting) for number in candidates]
        return queues[weighted_choice(lengths, candidates, below)]

    def _call_partitioner(self, key: bytes | None, value: bytes | None) -> PartitionQueue:
        assert self._partitioner is not None
        chosen: Any = self._partitioner(self.name, key, value, len(self.queues))
        if not isinstance(chosen, int) or not 0 <= chosen < len(self.queues):
            raise KafkaError(
                None,
                f"the partitioner chose {chosen!r} for topic {self.name}, which has {len(self.queues)} partitions",
                advice="correct partitioner.class",
            )
        return self.queues[chosen]


class TopicRouter:
    """The queues of every topic that records were sent to."""

    def __init__(self, cluster: ClusterClient, config: ClientConfig) -> None:
        self._cluster = cluster
        self._config = config
        self._partitioner = _partitioner(config.value("partitioner.class"))
        self.topics: dict[str, TopicQueues] = {}
        self.below = cluster.world.random.below
        cluster.on_change(self._metadata_changed)

    def available(self, topic: str) -> tuple[int, ...]:
        """Returns the partitions of a topic that have a leader."""
        info = self._cluster.metadata.topic(topic)
        return () if info is None else info.available

    async def load(self, topic: str, partition: int | None, deadline: float) -> TopicQueues:
        """Returns the queues of a topic. Waits for its metadata, and once more if that lacks the partition."""
        info = await self._cluster.topic(topic, deadline)
        if partition is not None and not 0 <= partition < len(info.partitions):
            if partition >= 0:
                await self._cluster.refresh(deadline)
                info = await self._cluster.topic(topic, deadline)
            if not 0 <= partition < len(info.partitions):
                raise UnknownTopicError(
                    None, f"partition {partition} of topic {topic}, which has {len(info.partitions)}"
                )
        queues = self.topics.get(topic)
        if queues is None:
            queues = self.topics[topic] = TopicQueues(
                self,
                info,
                partitioner=self._partitioner,
                ignores_keys=self._config.flag("partitioner.ignore.keys"),
                is_adaptive=self._config.flag("partitioner.adaptive.partitioning.enable"),
                batch_bytes=self._config.int("batch.size"),
            )
        return queues

    def _metadata_changed(self) -> None:
        for name, topic in list(self.topics.items()):
            info = self._cluster.metadata.topic(name)
            if info is not None:
                topic.grow(len(info.partitions))
            elif all(queue.is_empty for queue in topic.queues):
                del self.topics[name]  # gone, or idle: the next send loads it again


def _partitioner(setting: Any) -> Partitioner | None:
    if setting is None:
        return None
    if isinstance(setting, str):
        # Java's class names mean the same: org.apache.kafka.clients.producer.RoundRobinPartitioner.
        name = setting.rpartition(".")[2].lower().replace("_", "").removesuffix("partitioner")
        if name == "roundrobin":
            return RoundRobin()
        raise ConfigError(
            f"partitioner.class={setting!r}: leave it unset, or use round_robin or a function",
            key="partitioner.class",
        )
    if not callable(setting):
        raise ConfigError("partitioner.class must be callable", key="partitioner.class")
    partitioner: Partitioner = setting
    return partitioner
