"""Gives the groups' machines their log: finds or loads the shard of a group, appends what it decides, answers.

1. A group belongs to the partition of `__consumer_offsets` that the hash of its name gives; this broker coordinates it
   while it leads that partition.
2. A shard is loaded by replaying its partition, before it answers anything; meanwhile COORDINATOR_LOAD_IN_PROGRESS.
3. Records of one decision are one batch, applied when appended, and answered when the high watermark has passed them.
4. An answer without records of its own may rest on records that are not committed yet: it waits for them too, or a
   failover could take back what a member was told.
5. Whoever waits longer than `offsets.commit.timeout.ms` is told COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.replica import Replica
from strandline.controller.image import ClusterImage
from strandline.groups.committed_view import CommittedView
from strandline.groups.offsets import OffsetChange
from strandline.groups.outcome import After, Outcome
from strandline.groups.settings import GroupSettings, Moment
from strandline.groups.shard import GroupShard
from strandline.partition.leader import ACKS_ALL
from strandline.wire import compression
from strandline.wire.api.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.record_batch import build_small_batch, read_header, records_in
from strandline.wire.records import offset_commits
from strandline.wire.records.offsets_framing import decode_entry, encode_key, encode_value
from strandline.wire.schema import Struct

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

OFFSETS_TOPIC: Final = "__consumer_offsets"
# What a failed append means to a member: whether to find the coordinator again or just to try again.
_APPEND_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
_LOAD_BATCHES_PER_TURN: Final = 200
# A batch must fit into `max.message.bytes`; a commit without a note takes about a hundred bytes.
_COMMITS_PER_BATCH_MAX: Final = 1000


@lru_cache(maxsize=10_000)
def java_hash(text: str) -> int:
    """String.hashCode of Java, made positive as Kafka does it."""
    value = 0
    data = text.encode("utf-16-be")
    for position in range(0, len(data), 2):
        value = (31 * value + (data[position] << 8 | data[position + 1])) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return 0 if signed == -(1 << 31) else abs(signed)


class ImageTopics:
    """The broker's image of topics, as groups look at it."""

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


class ShardRuntime:
    """One loaded shard: what it decides is carried out here."""

    def __init__(self, broker: Broker, replica: Replica, shard: GroupShard, codec: int) -> None:
        self._broker = broker
        self._replica = replica
        self.shard = shard
        self._codec = codec
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: float | None = None
        self.is_stopped = False
        self._uncommitted: dict[int, tuple[Outcome, asyncio.TimerHandle]] = {}
        self._committed = CommittedView(shard.offsets)
        self._queued: list[Outcome] = []
        self._queued_count = 0
        self._end_offset = 0  # of what was appended last
        self._commit_timeout_s = broker.config.int("offsets.commit.timeout.ms") / 1000
        self.epoch = replica.epoch

    def now(self) -> Moment:
        return Moment(self._broker.clock.monotonic(), self._broker.clock.wall_ms())

    def run(self, outcome: Outcome) -> None:
        """Writes what has to be written, then gives the answers."""
        if self._queued and outcome.has_records:
            self._flush()
        while True:
            following = self._write(outcome) if outcome.has_records else None
            if following is None and not outcome.has_records:
                self._give_when_settled(outcome)
            if following is None:
                break
            outcome = following
        self._arm()

    def commit(self, outcome: Outcome) -> None:
        """Commits of this turn of the loop are written together: a batch costs more than what is in it."""
        if outcome.entries or not outcome.commits:
            self.run(outcome)
            return
        if not self._queued:
            asyncio.get_running_loop().call_soon(self._flush)
        self._queued.append(outcome)
        self._queued_count += len(outcome.commits)
        if self._queued_count >= _COMMITS_PER_BATCH_MAX:
            self._flush()

    def _flush(self) -> None:
        if not self._queued:
            return
        together = Outcome()
        for outcome in self._queued:
            together.commits += outcome.commits
            together.answers += outcome.answers
        self._queued.clear()
        self._queued_count = 0
        self.run(together)

    @property
    def is_settled(self) -> bool:
        """Whether all that was appended is committed."""
        return self._replica.high_watermark >= self._end_offset

    def committed(self) -> CommittedView:
        """Offsets that no failover takes back."""
        self._committed.advance(self._replica.high_watermark)
        return self._committed

    def _give_when_settled(self, outcome: Outcome) -> None:
        if self.is_settled or not outcome.answers:
            _give(outcome)
        else:
            self._when_committed(self._end_offset, outcome)

    def _write(self, outcome: Outcome) -> Outcome | None:
        """Appends and applies; gives the answers once committed. What to run next, if that is known already."""
        now = self.now()
        try:
            end_offset = self._append(outcome, now.wall_ms)
        except (KafkaError, OSError) as error:
            return self._not_written(outcome, error, now)
        is_committed = self._replica.high_watermark >= end_offset
        if not is_committed:
            self._committed.advance(self._replica.high_watermark)
            self._committed.will_change(outcome.entries, outcome.commits, end_offset)
        for entry in outcome.entries:
            self.shard.apply(entry.key, entry.value)
        for change in outcome.commits:
            self.shard.offsets.put(change)
        if is_committed:
            return self._written(outcome)
        self._when_committed(end_offset, outcome)
        return None

    def _append(self, outcome: Outcome, now_ms: int) -> int:
        pairs = [
            (encode_key(key), None if value is None else encode_value(value))
            for key, value in outcome.entries
        ]
        pairs += _commit_pairs(outcome.commits)
        batch, header = build_small_batch(pairs, now_ms, self._codec)
        self._replica.check_online()
        appended = self._replica.append(memoryview(batch), header, ACKS_ALL, now_ms)
        self._end_offset = appended.last_offset + 1
        return self._end_offset

    def _when_committed(self, end_offset: int, outcome: Outcome) -> None:
        key = self._broker.next_waiter_key()

        def forget() -> None:
            self._replica.forget_waker(key)
            _, timer = self._uncommitted.pop(key)
            timer.cancel()

        def look() -> None:
            if self.is_stopped or self._replica.high_watermark >= end_offset:
                forget()
            if not self.is_stopped and self._replica.high_watermark >= end_offset:
                self._finish(outcome)

        def give_up() -> None:
            forget()
            following = self._refuse(outcome, ErrorCode.COORDINATOR_NOT_AVAILABLE, self.now())
            if following is not None:
                self.run(following)

        timer = asyncio.get_running_loop().call_later(self._commit_timeout_s, give_up)
        self._uncommitted[key] = (outcome, timer)
        self._replica.wake_on_advance(key, look)

    def _finish(self, outcome: Outcome) -> None:
        following = self._written(outcome)
        if following is not None:
            self.run(following)

    def _written(self, outcome: Outcome) -> Outcome | None:
        _give(outcome)
        return None if outcome.after is None else self.shard.written(outcome.after, self.now())

    def _not_written(self, outcome: Outcome, error: KafkaError | OSError, now: Moment) -> Outcome | None:
        if isinstance(error, OSError):
            error = self._broker.replicas.disk_error(self._replica.directory, error)
        return self._refuse(outcome, _APPEND_ERRORS.get(ErrorCode(error.code), ErrorCode(error.code)), now)

    def _refuse(self, outcome: Outcome, code: ErrorCode, now: Moment) -> Outcome | None:
        for token, response in outcome.answers:
            _fail(response, code)
            _resolve(token, response)
        after: After | None = outcome.after
        return None if after is None else self.shard.write_failed(after, code, now)

    # Time

    def _arm(self) -> None:
        deadline = self.shard.next_deadline()
        if deadline == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = deadline
        if deadline is not None and not self.is_stopped:
            delay = max(deadline - self._broker.clock.monotonic(), 0)
            self._timer = asyncio.get_running_loop().call_later(delay, self._expire)

    def _expire(self) -> None:
        self._timer = self._timer_at = None
        for outcome in self.shard.expire(self.now()):
            self.run(outcome)
        self._arm()

    def stop(self) -> None:
        """Whoever waits for a commit or a rebalance has to find the new coordinator."""
        self.is_stopped = True
        for _, timer in self._uncommitted.values():
            timer.cancel()
        given = [answer for outcome, _ in self._uncommitted.values() for answer in outcome.answers]
        given += [answer for outcome in self._queued for answer in outcome.answers]
        self._queued.clear()
        for token, response in [*given, *self.shard.waiting_members()]:
            _fail(response, ErrorCode.NOT_COORDINATOR)
            _resolve(token, response)
        if self._timer is not None:
            self._timer.cancel()


class GroupCoordinator:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        config = broker.config
        self.settings = GroupSettings(
            session_timeout_min_ms=config.int("group.min.session.timeout.ms"),
            session_timeout_max_ms=config.int("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
            group_size_max=config.int("group.max.size"),
            new_member_join_timeout_ms=300_000,
            offset_metadata_bytes_max=config.int("offset.metadata.max.bytes"),
            offsets_retention_ms=config.int("offsets.retention.minutes") * 60_000,
            consumer_session_timeout_ms=config.int("group.consumer.session.timeout.ms"),
            consumer_heartbeat_interval_ms=config.int("group.consumer.heartbeat.interval.ms"),
            consumer_group_size_max=config.int("group.consumer.max.size"),
            consumer_assignors=config.strings("group.consumer.assignors"),
            migration_policy=config.text("group.consumer.migration.policy").lower(),
        )
        self._shards: dict[int, ShardRuntime] = {}
        self._loading: dict[int, asyncio.Task[None]] = {}

    # Finding a group's shard

    def partition_of(self, group_id: str) -> int:
        topic = self._broker.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"There is no topic {OFFSETS_TOPIC} yet.")
        return java_hash(group_id) % len(topic.partitions)

    def shard_of(self, group_id: str) -> ShardRuntime:
        """Raises KafkaError unless this broker coordinates the group and has loaded it."""
        partition = self.partition_of(group_id)
        runtime = self._shards.get(partition)
        if runtime is not None:
            return runtime
        self._check_leads(partition)
        if partition not in self._loading:
            self._start_loading(partition)
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The group's offsets are being loaded.")

    async def loaded_shard_of(self, group_id: str) -> ShardRuntime:
        """The same, waiting for a load that this request itself begins: a small one takes less than a retry."""
        partition = self.partition_of(group_id)
        if partition not in self._shards and partition not in self._loading:
            self._check_leads(partition)
            await self._start_loading(partition)
        return self.shard_of(group_id)

    def shards(self) -> list[ShardRuntime]:
        return [self._shards[partition] for partition in sorted(self._shards)]

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def _check_leads(self, partition: int) -> None:
        if self._broker.image.topics[OFFSETS_TOPIC].partitions[partition].leader != self._broker.node_id:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "Another broker coordinates this group.")

    async def prepare(self, partition: int) -> None:
        """Loads a partition that nothing was ever written to, which takes no time, before anyone is sent here."""
        if partition in self._shards or self._broker.replicas.has_data(OFFSETS_TOPIC, partition):
            return
        self._check_leads(partition)
        await (self._loading.get(partition) or self._start_loading(partition))

    def _start_loading(self, partition: int) -> asyncio.Task[None]:
        task = self._broker.tasks.start(self._load(partition))
        self._loading[partition] = task
        return task

    def load_what_is_there(self) -> None:
        """At start: groups exist before anyone asks for them."""
        topic = self._broker.image.topics.get(OFFSETS_TOPIC)
        for partition in sorted(topic.partitions) if topic is not None else ():
            leads = topic is not None and topic.partitions[partition].leader == self._broker.node_id
            has_data = self._broker.replicas.has_data(OFFSETS_TOPIC, partition)
            if leads and has_data and partition not in self._loading:
                self._start_loading(partition)

    async def _load(self, partition: int) -> None:
        try:
            replica = await self._broker.replicas.open_led(OFFSETS_TOPIC, partition)
            topics = ImageTopics(self._broker.image)
            shard = GroupShard(self.settings, topics, self._broker.random, self._broker.counters)
            await self._replay(replica, shard)
            codec = int(self._broker.config.int("offsets.topic.compression.codec"))
            runtime = ShardRuntime(self._broker, replica, shard, codec if codec <= compression.ZSTD else 0)
            shard.loaded(runtime.now())
            self._shards[partition] = runtime
            runtime.run(Outcome())
        except KafkaError as error:
            self._broker.events.warn("groups not loaded", partition=partition, error=error)
        finally:
            self._loading.pop(partition, None)

    async def _replay(self, replica: Replica, shard: GroupShard) -> None:
        for count, (segment, place) in enumerate(replica.log.places(replica.log.log_start_offset)):
            batch = segment.read_batch(place)
            if not read_header(batch).is_control:
                for record in records_in(batch):
                    entry = decode_entry(record.key or b"\xff\xff", record.value)
                    if entry is not None:
                        shard.replay(*entry)
            if count % _LOAD_BATCHES_PER_TURN == 0:
                await asyncio.sleep(0)

    # The topic

    async def ensure_topic(self) -> None:
        """Makes `__consumer_offsets` when the first group is looked for."""
        if OFFSETS_TOPIC in self._broker.image.topics:
            return
        config = self._broker.config
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.int("offsets.topic.segment.bytes")),
        }
        request = CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name=OFFSETS_TOPIC,
                    num_partitions=config.int("offsets.topic.num.partitions"),
                    replication_factor=config.int("offsets.topic.replication.factor"),
                    assignments=(),
                    configs=tuple(
                        CreatableTopicConfig(name=name, value=value) for name, value in settings.items()
                    ),
                ),
            )
        )
        response = await self._broker.controllers.forward(request, 7)
        result = response.topics[0]
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            self._broker.events.warn(
                "internal topic not created", topic=OFFSETS_TOPIC, why=result.error_message
            )
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, result.error_message or "")

    def leadership_changed(self, topic: str, partition: int) -> None:
        """What this node no longer leads is coordinated elsewhere; what it leads now is loaded when asked for."""
        if topic != OFFSETS_TOPIC:
            return
        replica = self._broker.replicas.get(topic, partition)
        runtime = self._shards.get(partition)
        if runtime is not None and (
            replica is None or not replica.is_leader or replica.epoch != runtime.epoch
        ):
            del self._shards[partition]
            runtime.stop()
        if (
            replica is not None
            and replica.is_leader
            and partition not in self._shards
            and partition not in self._loading
        ):
            self._start_loading(partition)

    def topic_removed(self, topic: str) -> None:
        """Offsets of a topic that is gone must not be found by one that is made later under the same name."""
        for runtime in self.shards():
            entries = [
                entry
                for group_id in runtime.shard.offsets.groups()
                for entry in runtime.shard.offsets.tombstones(group_id, [topic])
            ]
            if entries:
                runtime.run(Outcome(entries=entries))

    def expire_offsets(self) -> None:
        for runtime in self.shards():
            runtime.run(runtime.shard.expire_offsets(runtime.now()))

    def stop(self) -> None:
        for runtime in self.shards():
            runtime.stop()


def _commit_pairs(commits: list[OffsetChange]) -> Iterator[tuple[bytes, bytes]]:
    place: tuple[str, str] | None = None
    prefix = b""
    for group_id, topic, partition, (offset, leader_epoch, metadata, commit_ms, _) in commits:
        if place != (group_id, topic):
            place = (group_id, topic)
            prefix = offset_commits.key_prefix(group_id, topic)
        value = offset_commits.value(offset, leader_epoch, metadata, commit_ms)
        yield offset_commits.key(prefix, partition), value


def _give(outcome: Outcome) -> None:
    for token, response in outcome.answers:
        _resolve(token, response)


def _resolve(token: Any, response: Struct) -> None:
    """A token is the future that the request's handler returned."""
    if not token.done():
        token.set_result(response)


def _fail(response: Any, code: int) -> None:
    """Turns an answer that was meant to be given into one that says that it could not be written."""
    if hasattr(response, "error_code"):
        response.error_code = code
    for topic in getattr(response, "topics", ()):
        for partition in topic.partitions:
            partition.error_code = code
