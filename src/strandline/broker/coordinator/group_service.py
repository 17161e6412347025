"""The coordinator of groups: the partitions of `__consumer_offsets` that this broker leads, and the groups in them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.moment import Moment
from strandline.broker.coordinator.auto_topic_creation import AutoTopicCreation
from strandline.broker.coordinator.group_runtime import GroupRuntime
from strandline.broker.coordinator.shards import CoordinatorShards
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.corrupt_replicas import CorruptReplicas
from strandline.broker.replication.delayed_produce import PendingAppend
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.broker.server.request_batching import RequestBatcher
from strandline.controller.image import ClusterImage
from strandline.groups.settings import ConsumerTimes, GroupSettings
from strandline.groups.shard import GroupShard
from strandline.wire import compression
from strandline.wire.record_batch import NO_PRODUCER_ID, read_header, records_in
from strandline.wire.records.markers import Marker, read_marker
from strandline.wire.records.offsets_framing import decode_entry

OFFSETS_TOPIC: Final = "__consumer_offsets"
_RECORDS_PER_ITERATION: Final = 1000


class ImageTopics:
    """The topics of the broker's image, in the form that groups need."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image

    @property
    def version(self) -> int:
        return self._image.version

    def names(self) -> Iterable[str]:
        return self._image.topics

    def topic_id(self, name: str) -> bytes | None:
        topic = self._image.topics.get(name)
        return None if topic is None else topic.topic_id

    def name(self, topic_id: bytes) -> str:
        topic = self._image.topics_by_id.get(topic_id)
        return "" if topic is None else topic.name

    def partition_count(self, name: str) -> int:
        topic = self._image.topics.get(name)
        return 0 if topic is None else len(topic.partitions)


class GroupCoordinator(CoordinatorShards[GroupRuntime]):
    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        corrupt_replicas: CorruptReplicas,
        topic_creation: AutoTopicCreation,
        batcher: RequestBatcher,
    ) -> None:
        super().__init__(node, replicas, corrupt_replicas, topic_creation, OFFSETS_TOPIC)
        self._batcher = batcher
        config = node.config
        self.settings = GroupSettings(
            session_timeout_min_ms=config.int("group.min.session.timeout.ms"),
            session_timeout_max_ms=config.int("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
            group_size_max=config.int("group.max.size"),
            new_member_join_timeout_ms=300_000,
            offset_metadata_size_max=config.int("offset.metadata.max.bytes"),
            offsets_retention_ms=config.int("offsets.retention.minutes") * 60_000,
            consumer_times=self._consumer_times,
            consumer_group_size_max=config.int("group.consumer.max.size"),
            consumer_assignors=config.strings("group.consumer.assignors"),
            migration_policy=config.text("group.consumer.migration.policy").lower(),
        )

    def _consumer_times(self, group: str) -> ConsumerTimes:
        value = self._node.configs.group_value
        session_ms, heartbeat_ms = (
            value(group, "consumer.session.timeout.ms"),
            value(group, "consumer.heartbeat.interval.ms"),
        )
        assert isinstance(session_ms, int)
        assert isinstance(heartbeat_ms, int)
        return ConsumerTimes(session_ms, heartbeat_ms)

    def check_is_named(self, group_id: str) -> None:
        """Raises INVALID_GROUP_ID for an empty name, with which, as in Kafka, offsets can only be committed and
        read."""
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)

    def shard_of(self, key: str) -> GroupRuntime:
        runtime = super().shard_of(key)
        runtime.write_queued()
        return runtime

    def shard_of_named(self, group_id: str) -> GroupRuntime:
        """Returns the shard for a member's request, which is refused for good if the group has no name."""
        self.check_is_named(group_id)
        return self.shard_of(group_id)

    async def _load_runtime(self, replica: Replica) -> GroupRuntime:
        topics = ImageTopics(self._node.image)
        shard = GroupShard(self.settings, topics, self._node.random, self._node.counters)
        await self._replay(replica, shard)
        codec = int(self._node.config.int("offsets.topic.compression.codec"))
        runtime = GroupRuntime(
            self._node,
            self._replicas,
            self._batcher,
            replica,
            shard,
            codec if codec <= compression.ZSTD else 0,
        )
        shard.loaded(runtime.now())
        return runtime

    def _started(self, runtime: GroupRuntime) -> None:
        runtime.forget_former_topics()

    async def _replay(self, replica: Replica, shard: GroupShard) -> None:
        now = Moment(self._node.clock.monotonic(), self._node.clock.wall_ms())
        since_pause = 0
        for segment, place in replica.log.places(replica.log.log_start_offset):
            batch = segment.read_batch(place)
            header = read_header(batch)
            if header.is_control:
                marker = read_marker(batch)
                if marker is not None:
                    shard.end_transaction(header.producer_id, marker.is_commit, now)
            else:
                producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
                for record in records_in(batch):
                    entry = decode_entry(record.key or b"\xff\xff", record.value)
                    if entry is not None:
                        shard.replay(*entry, producer_id)
            since_pause += max(header.record_count, 1)  # compaction leaves batches without records
            if since_pause >= _RECORDS_PER_ITERATION:
                since_pause = 0
                await asyncio.sleep(0)

    def _topic_settings(self) -> tuple[int, int, Mapping[str, str]]:
        config = self._node.config
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.int("offsets.topic.segment.bytes")),
        }
        return (
            config.int("offsets.topic.num.partitions"),
            config.int("offsets.topic.replication.factor"),
            settings,
        )

    def end_transaction(
        self, partition: int, producer_id: int, epoch: int, marker: Marker, transaction_version: int
    ) -> PendingAppend:
        """Ends a transaction in a partition; raises NOT_LEADER_OR_FOLLOWER while it is not loaded here: the marker
        comes again."""
        runtime = self.shard_at(partition)
        if runtime is None:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic}-{partition} is not loaded here."
            )
        return runtime.end_transaction(producer_id, epoch, marker, transaction_version)

    def topic_removed(self, topic: str) -> None:
        """Removes the offsets of a deleted topic, so that a later topic with the same name does not get them."""
        super().topic_removed(topic)
        for runtime in self.shards():
            runtime.topic_gone(topic)

    async def expire_offsets(self) -> None:
        for runtime in self.shards():
            runtime.forget_former_topics()
            runtime.expire_offsets()
