"""The lag of the groups that this broker coordinates.

Committed offsets are those in the coordinator's memory. The end of a partition, and the time of the oldest record that
a group has not read, come from this broker's own copy of the log. Without a copy, the leader is asked for the end, with
one request for all partitions of a leader, and the time is estimated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, NamedTuple

from strandline.base.errors import KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.coordinator.group_runtime import GroupRuntime
from strandline.broker.coordinator.group_service import GroupCoordinator
from strandline.broker.node_context import NodeContext
from strandline.broker.nodes import BrokerClients
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.broker.telemetry.members import GroupMember, owners_of
from strandline.groups.committed_offset import GroupOffset
from strandline.rpc.channel import ChannelClosed
from strandline.storage.segment import DamagedSegment
from strandline.telemetry.lag import EndOffsets, LagRules, PartitionLag, group_status
from strandline.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

# Other work may run after so many partitions.
_ROWS_AT_ONCE: Final = 100
# The number of record times that are remembered: a lagging partition has one while its offset stays, and each needs a
# read.
_RECORD_TIMES_MAX: Final = 100_000
_LATEST: Final = -1
_LIST_OFFSETS_VERSION: Final = 9
_REQUEST_S: Final = 5.0


class PartitionRow(NamedTuple):
    """The present state of one partition of a group."""

    topic: str
    partition: int
    seen: PartitionLag
    lag_s: float | None  # None if it is not known
    member: GroupMember | None


class GroupRow(NamedTuple):
    group_id: str
    state: str
    member_count: int
    partitions: list[PartitionRow]

    @property
    def total_lag(self) -> int:
        return sum(row.seen.lag for row in self.partitions)

    def status(self, now_ms: int, rules: LagRules) -> str:
        return group_status(
            self.total_lag, (row.seen.status(now_ms, rules) for row in self.partitions), rules
        )


class LagMonitor:
    def __init__(self, node: NodeContext, groups: GroupCoordinator, replicas: Replicas) -> None:
        self._node = node
        self._groups = groups
        self._replicas = replicas
        self._clients = BrokerClients(node, "lag")
        self._seen: dict[str, dict[TopicPartition, PartitionLag]] = {}
        # Of partitions without a copy here: earlier end offsets, and the last one.
        self._remote_history: dict[TopicPartition, EndOffsets] = {}
        self._remote_end: dict[TopicPartition, int] = {}
        # The time of the record that a group reads next, by its offset.
        self._record_times: dict[tuple[TopicPartition, int], int] = {}
        config = node.config
        self.rules = LagRules(
            warning=config.int("strandline.lag.warning"),
            critical=config.int("strandline.lag.critical"),
            rising_s=config.int("strandline.lag.rising.ms") / 1000,
            stop_s=config.int("strandline.lag.stop.ms") / 1000,
        )

    # Sampling

    async def sample(self) -> None:
        """Takes a sample of every group, as a periodic job. Groups that are gone or have another coordinator are
        forgotten."""
        await self._find_ends()
        names: set[str] = set()
        for number, row in enumerate(self.rows()):
            if row is not None:
                names.add(row.group_id)
            if number % 10 == 0:
                await asyncio.sleep(0)
        for group_id in [each for each in self._seen if each not in names]:
            del self._seen[group_id]
        if len(self._record_times) > _RECORD_TIMES_MAX:
            self._record_times.clear()  # those in use will be read again

    async def _find_ends(self) -> None:
        """Opens logs to read their ends, and asks leaders for the ends of logs without a copy here."""
        tracked: dict[TopicPartition, None] = {}
        for runtime in self._groups.shards():
            for group_id in list(runtime.shard.groups):
                for topic, partitions in runtime.committed().of_group(group_id).items():
                    tracked |= {TopicPartition(topic, index): None for index in partitions}
            await asyncio.sleep(0)
        elsewhere: dict[int, list[TopicPartition]] = {}
        for number, partition in enumerate(tracked):
            if number % _ROWS_AT_ONCE == 0:
                await asyncio.sleep(0)
            known = self._node.image.topics.get(partition.topic)
            state = None if known is None else known.partitions.get(partition.partition)
            if state is None or self._replicas.get(*partition) is not None:
                continue
            if self._node.node_id not in state.replicas:
                elsewhere.setdefault(state.leader, []).append(partition)
            elif self._replicas.has_data(*partition):
                try:
                    await self._replicas.open(*partition)
                except KafkaError:
                    continue  # the log is offline or was just deleted
        for partition in [each for each in self._remote_end if each not in tracked]:
            del self._remote_end[partition]
            self._remote_history.pop(partition, None)
        for leader, remote in sorted(elsewhere.items()):
            if leader >= 0:
                await self._ask(leader, remote)

    async def _ask(self, leader: int, partitions: list[TopicPartition]) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, index in partitions:
            by_topic.setdefault(topic, []).append(index)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=tuple(
                ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(
                        ListOffsetsPartition(partition_index=index, timestamp=_LATEST) for index in indexes
                    ),
                )
                for topic, indexes in by_topic.items()
            ),
        )
        try:
            response = await self._clients.call(leader, request, _LIST_OFFSETS_VERSION, _REQUEST_S)
        except (ChannelClosed, OSError, TimeoutError):
            return  # the last known ends stay until the leader can be reached
        now_ms = self._node.clock.wall_ms()
        for topic in response.topics:
            for each in topic.partitions:
                if each.error_code == 0:
                    partition = TopicPartition(topic.name, each.partition_index)
                    self._remote_end[partition] = each.offset
                    self._remote_history.setdefault(partition, EndOffsets()).see(each.offset, now_ms)

    # Reading

    def rows(self) -> Iterator[GroupRow | None]:
        """Yields every group that this broker coordinates; None now and then, where other work may run."""
        count = 0
        for runtime in self._groups.shards():
            for group_id in list(runtime.shard.groups):
                row = self._row(runtime, group_id)
                if row is not None:
                    count += len(row.partitions) + 1
                    yield row
                if count >= _ROWS_AT_ONCE:
                    count = 0
                    yield None

    def row(self, group_id: str) -> GroupRow | None:
        """Returns one group; None if this broker does not coordinate it."""
        runtime = self._groups.loaded(group_id)
        return None if runtime is None else self._row(runtime, group_id)

    def _row(self, runtime: GroupRuntime, group_id: str) -> GroupRow | None:
        group = runtime.shard.groups.get(group_id)
        if group is None:
            return None
        owners = owners_of(group, self._node.topic_name)
        mine = self._seen.setdefault(group_id, {})
        now_ms = self._node.clock.wall_ms()
        rows: list[PartitionRow] = []
        committed = runtime.committed().of_group(group_id)
        for topic in sorted(committed):
            for index in sorted(committed[topic]):
                partition = TopicPartition(topic, index)
                seen = mine.get(partition)
                if seen is None:
                    seen = mine[partition] = PartitionLag()
                offset = committed[topic][index]
                end = self._end_of(partition)
                if end is not None:
                    seen.see(offset.offset, end, offset.commit_ms, now_ms, self.rules)
                lag_s = self._lag_s(partition, offset, seen.lag, now_ms)
                rows.append(PartitionRow(topic, index, seen, lag_s, owners.get(partition)))
        return GroupRow(group_id, group.state, len(group.members), rows)

    def _end_of(self, partition: TopicPartition) -> int | None:
        replica = self._replicas.get(*partition)
        if replica is not None:
            return replica.high_watermark
        return self._remote_end.get(partition)

    def _lag_s(self, partition: TopicPartition, offset: GroupOffset, lag: int, now_ms: int) -> float | None:
        if not lag:
            return 0.0
        replica = self._replicas.get(*partition)
        if replica is None:
            known = self._remote_history.get(partition)
            return None if known is None else known.lag_s(offset.offset, now_ms)
        written_ms = self._record_time(replica, offset.offset)
        return None if written_ms is None else max(now_ms - written_ms, 0) / 1000

    def _record_time(self, replica: Replica, offset: int) -> int | None:
        """Returns the time of the batch that holds an offset, or of the next existing batch."""
        place = (replica.partition, offset)
        if place not in self._record_times:
            try:
                found = next(replica.log.places(max(offset, replica.log.log_start_offset)), None)
                if found is None:
                    return None
                self._record_times[place] = found[0].max_timestamp_at(found[1])
            except (OSError, DamagedSegment):
                return None  # a reader of the log gets the reason
        return self._record_times[place]

    def close(self) -> None:
        self._clients.close()
