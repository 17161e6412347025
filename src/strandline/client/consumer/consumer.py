"""The consumer: reads topics, alone or as a member of a group, on asyncio.

    async with Consumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            ...

Only a call of the application changes the partitions that it reads: while it polls, partitions are assigned and
revoked, listeners are called and positions are found. Between polls only bytes are fetched and heartbeats sent. So
the records of a poll are the application's until it polls again, and an automatic commit covers those of earlier polls.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Unpack

from strandline.base.ids import TopicPartition
from strandline.base.topics import invalid_topic_name
from strandline.client.columnar_extra import columnar_module
from strandline.client.config.config import ClientConfig
from strandline.client.config.keywords import ConsumerKeywords
from strandline.client.consumer.deserializing import Deserializers
from strandline.client.consumer.engine import ConsumerEngine
from strandline.client.consumer.group.callbacks import RebalanceListener, check_listener
from strandline.client.consumer.group.member import GroupMetadata
from strandline.client.consumer.interceptors import ConsumerInterceptors
from strandline.client.consumer.log_offsets import EARLIEST, LATEST, OffsetAndTimestamp
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.consumer.settings import assignors_of, deserializer_of
from strandline.client.consumer.subscription import OffsetAndMetadata, SubscriptionState, TopicPartitionState
from strandline.client.consumer.unread import UnreadRecords
from strandline.client.errors import (
    ClosedError,
    ConfigError,
    IllegalStateError,
    InvalidTopicError,
    KafkaTimeoutError,
)
from strandline.client.world import ClientWorld, real_world
from strandline.telemetry.counters import Counters

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Consumer", "ConsumerRecord", "OffsetAndMetadata", "OffsetAndTimestamp", "RebalanceListener"]

# The most that one table holds, unless poll_table says otherwise.
TABLE_ROWS_MAX: Final = 1_000_000
TABLE_BYTES_MAX: Final = 64 * 1024 * 1024
# How long a poll without a timeout waits. It waits, because a loop around it must not spin.
POLL_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 30.0
# How long an iteration waits in one poll; it polls again for ever.
_ITERATION_SECONDS: Final = 3600.0


class Consumer:
    """Reads records of the topics that it subscribes to, or of the partitions that are assigned to it."""

    def __init__(
        self,
        settings: Mapping[str, Any] | str | None = None,
        /,
        *topics: str,
        world: ClientWorld | None = None,
        **keywords: Unpack[ConsumerKeywords],
    ) -> None:
        """Takes settings by Kafka's names, as a mapping or as keywords with underscores; nothing is connected yet.
        Topics that are named first, or after the mapping, are subscribed to: `Consumer("orders", group_id="g")`."""
        if isinstance(settings, str):
            topics, settings = (settings, *topics), None
        self.config = ClientConfig.consumer(settings, **keywords)
        self._world = world
        self._group_id = self.config.optional_text("group.id") or None
        self._assignors = assignors_of(self.config)
        self._deserializers = Deserializers(
            deserializer_of(self.config, "key.deserializer"),
            deserializer_of(self.config, "value.deserializer"),
        )
        self._api_seconds = self.config.seconds("default.api.timeout.ms")
        self._records_max = self.config.int("max.poll.records")
        self._counters = Counters()
        self._interceptors = ConsumerInterceptors(self.config.objects("interceptor.classes"), self._counters)
        self._subscription = SubscriptionState()
        self._unread = UnreadRecords()
        self._is_closing = False
        self._is_closed = False
        self._engine: ConsumerEngine | None = None
        if topics:
            self.subscribe(topics)

    # Start and close

    async def start(self) -> None:
        """Finds the cluster; raises if no bootstrap server responds within default.api.timeout.ms."""
        self._check_open()
        if self._engine is not None:
            raise IllegalStateError(None, "the consumer was started already")
        engine = ConsumerEngine(
            self.config,
            self._world or real_world(),
            self._subscription,
            self._assignors,
            self._deserializers,
            self._consumed,
            self._counters,
        )
        await engine.start()
        self._engine = engine

    async def close(self, timeout: float | None = None) -> None:
        """Commits if that is automatic, leaves the group and disconnects; it may be called again."""
        if self._is_closing:
            return
        self._is_closing = True
        try:
            if self._engine is not None:
                seconds = _CLOSE_SECONDS if timeout is None else timeout
                await self._engine.close(self._engine.cluster.now() + seconds)
        finally:
            self._is_closed = True

    async def __aenter__(self) -> Consumer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Subscription

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Subscribes to topics, or to a pattern that must match the beginning of their names, together with the
        group.

        With group.protocol=consumer a pattern given as text is matched by the coordinator, as RE2 and in full.
        """
        self._check_open()
        if (topics is None) == (pattern is None):
            raise IllegalStateError(None, "subscribe to topics or to a pattern")
        check_listener(listener)
        if self._group_id is None:
            raise ConfigError("subscribing needs a group.id; assign() works without", key="group.id")
        if pattern is not None:
            on_server = isinstance(pattern, str) and self.config.text("group.protocol").lower() == "consumer"
            compiled = pattern if on_server or not isinstance(pattern, str) else re.compile(pattern)
            self._subscription.subscribe_pattern(compiled, listener, on_server=on_server)
        else:
            names = [topics] if isinstance(topics, str) else list(topics or ())
            for name in names:
                why = invalid_topic_name(name)
                if why is not None:
                    raise InvalidTopicError(None, why)
            if not names:
                raise IllegalStateError(None, "no topics to subscribe to; unsubscribe() ends a subscription")
            self._subscription.subscribe(names, listener)
        self._changed()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads exactly these partitions, without a group's help."""
        self._check_open()
        assigned = [TopicPartition(*where) for where in partitions]
        self._subscription.assign_from_user(assigned)
        self._unread.keep_only(lambda where: where in self._subscription.partitions)
        self._changed()

    async def unsubscribe(self) -> None:
        """Leaves the group, and reads nothing any more."""
        engine = self._open()
        try:
            if self._subscription.is_in_group and engine.membership is not None:
                await engine.membership.leave(self._deadline(None), "the consumer unsubscribed")
        finally:  # also if the listener raises
            self._subscription.unsubscribe()
            self._unread.keep_only(lambda where: False)
            self._changed()

    def assignment(self) -> set[TopicPartition]:
        """Returns the partitions that are read now."""
        return set(self._subscription.partitions)

    def subscription(self) -> set[str]:
        """Returns the topics that are subscribed to."""
        return set(self._subscription.topics)

    def pause(self, *partitions: TopicPartition) -> None:
        """Keeps polls from returning records of these partitions until they are resumed; they stay assigned."""
        for where in partitions:
            self._subscription.state(TopicPartition(*where)).is_paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        """Has polls return records of these partitions again."""
        for where in partitions:
            self._subscription.state(TopicPartition(*where)).is_paused = False
        self._wake()

    def paused(self) -> set[TopicPartition]:
        """Returns the partitions that are paused."""
        return {where for where, state in self._subscription.partitions.items() if state.is_paused}

    # Positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Moves the position: the next poll reads from here."""
        state = self._subscription.state(TopicPartition(*partition))
        position = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        if position.offset < 0:
            raise IllegalStateError(None, f"offset {position.offset} is negative")
        self._subscription.seek(state, position.offset, position.leader_epoch)
        self._unread.keep_only(lambda where: where != state.topic_partition)
        self._wake()

    def fetch_until(self, partition: TopicPartition, offset: int | None) -> None:
        """Fetches nothing from this offset on, except records that come in one batch with earlier ones; polls return
        those all the same. None takes that back; a partition that is assigned again has no such offset."""
        self._subscription.state(TopicPartition(*partition)).fetch_until = offset
        self._wake()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Moves the position to the log start; of all partitions if none is named."""
        self._seek_to(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Moves the position to the end; of all partitions if none is named."""
        self._seek_to(partitions, LATEST)

    def seek_to_timestamp(self, timestamp_ms: int, *partitions: TopicPartition) -> None:
        """Moves the position to the first record at or after this time, or to the end if there is none."""
        if timestamp_ms < 0:
            raise IllegalStateError(None, f"timestamp {timestamp_ms} is negative")
        self._seek_to(partitions, timestamp_ms)

    def _seek_to(self, partitions: Iterable[TopicPartition], timestamp: int) -> None:
        states = self._states(partitions)
        for state in states:
            self._subscription.request_reset(state, timestamp)
        moved = {state.topic_partition for state in states}
        self._unread.keep_only(lambda where: where not in moved)
        self._wake()

    async def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """Returns the offset that is read next; it is looked up first if necessary."""
        engine = self._started()
        state = self._subscription.state(TopicPartition(*partition))
        deadline = self._deadline(timeout)
        while not state.has_position:
            await engine.await_positions(deadline)
            if not state.has_position and engine.cluster.now() >= deadline:
                failure = engine.positions.failures.get(state.topic_partition)
                why = "" if failure is None else f": {failure}"
                raise KafkaTimeoutError(
                    None, f"the position of {state.topic_partition} was not found in time{why}"
                ) from failure
        return self._unread_position(state)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Returns the group's committed offsets of these partitions, or None where there is none."""
        engine = self._started()
        requested = [TopicPartition(*where) for where in partitions]
        offsets = await engine.commits.fetch(requested, self._deadline(timeout))
        return {where: offsets.get(where) for where in requested}

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Returns the log start offsets of these partitions."""
        return await self._log_offsets(partitions, EARLIEST, timeout)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Returns the high watermarks, or with isolation.level=read_committed the last stable offsets."""
        return await self._log_offsets(partitions, LATEST, timeout)

    async def _log_offsets(
        self, partitions: Iterable[TopicPartition], timestamp: int, timeout: float | None
    ) -> dict[TopicPartition, int]:
        log = self._started().log
        requested = dict.fromkeys((TopicPartition(*where) for where in partitions), timestamp)
        offsets = await log.by_timestamp(requested, self._deadline(timeout))
        return {where: offsets[where].offset for where in requested}

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Returns the first record at or after each time, or None where there is none."""
        log = self._started().log
        requested = {TopicPartition(*where): timestamp for where, timestamp in timestamps.items()}
        if any(timestamp < 0 for timestamp in requested.values()):
            raise IllegalStateError(None, "timestamps must not be negative")
        offsets = await log.by_timestamp(requested, self._deadline(timeout))
        return {where: offsets[where] if offsets[where].offset >= 0 else None for where in requested}

    def lag(self, partition: TopicPartition) -> int | None:
        """Returns the offsets from the position to the readable end at the last fetch; None before the first."""
        state = self._subscription.state(TopicPartition(*partition))
        if state.readable_end < 0 or not state.has_position:
            return None
        return max(0, state.readable_end - self._unread_position(state))

    async def partitions_for(self, topic: str, timeout: float | None = None) -> list[TopicPartition]:
        """Returns the partitions of a topic."""
        info = await self._started().cluster.topic(topic, self._deadline(timeout))
        return [TopicPartition(topic, each.partition) for each in info.partitions]

    # Polling

    async def poll(
        self, timeout: float | None = POLL_SECONDS, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        """Returns the records that are there, or the first that come within `timeout` seconds; at most
        max.poll.records. With None it waits until there are some, with 0 it does not wait."""
        count = self._records_max if max_records is None else max_records
        engine = self._open()
        if self._unread:
            return self._unread.take(count)
        return self._deliver(await engine.poll(timeout, lambda: engine.buffer.take(count)))

    def set_batch_filter(self, is_wanted: Callable[[bytes], bool] | None) -> None:
        """Has polls pass over batches whose uncompressed bytes the function refuses, as if they had been read."""
        self._open().buffer.set_filter(is_wanted)

    async def getmany(
        self, timeout: float | None = POLL_SECONDS, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Returns the records of `poll`, by partition."""
        by_partition: dict[TopicPartition, list[ConsumerRecord]] = {}
        for record in await self.poll(timeout, max_records):
            by_partition.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        return by_partition

    async def getone(self) -> ConsumerRecord:
        """Returns the next record; waits for it without a limit."""
        engine = self._open()
        count = self._records_max
        while not self._unread:
            records = await engine.poll(_ITERATION_SECONDS, partial(engine.buffer.take, count))
            self._unread.put(self._deliver(records))
        return self._unread.take_one()

    def getone_nowait(self) -> ConsumerRecord | None:
        """Returns the next record that `getone` or an iteration has polled already, or None if there is none."""
        return None if self._is_closing or not self._unread else self._unread.take_one()

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Yields records one by one, until the consumer is closed. Commits cover only the records that were given."""
        while True:
            try:
                yield await self.getone()
            except ClosedError:
                return
            while (more := self.getone_nowait()) is not None:
                yield more

    async def poll_table(
        self,
        timeout: float | None = POLL_SECONDS,
        *,
        max_rows: int = TABLE_ROWS_MAX,
        max_bytes: int = TABLE_BYTES_MAX,
        with_timestamp_type: bool = False,
    ) -> pyarrow.RecordBatch:
        """Returns the records of whole batches as a pyarrow RecordBatch: topic, partition, offset, timestamp, key,
        value and headers, and on request the timestamp's type. Rows may be more than `max_rows` by those of the last
        batch. Deserializers do not apply."""
        to_table = columnar_module("strandline.client.consumer.poll_table").to_table
        engine = self._open()
        if self._unread:
            raise IllegalStateError(None, "records of an iteration are not read yet; poll() gives them")
        parts = await engine.poll(timeout, lambda: engine.buffer.take_batches(max_rows, max_bytes))
        undo = engine.buffer.undo_of(parts)
        try:
            table = await to_table(parts, engine.cluster.world, with_timestamp_type)
        except BaseException:
            # Rows that nobody got must not count as read, also where the wait for them was cancelled.
            undo()
            raise
        self._counters.add("records-consumed-total", table.num_rows)
        return table

    def _deliver(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        self._counters.add("records-consumed-total", len(records))
        return self._interceptors.on_consume(records)

    # Committing

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commits these offsets, or those of all records that were given so far, and waits until that is done.

        An offset is the next to be read. Raises CommitFailedError if the group has moved on without this member.
        """
        engine = self._started()
        await engine.commits.commit(self._to_commit(offsets), self._deadline(timeout))

    def commit_async(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None
    ) -> asyncio.Task[None]:
        """Starts a commit. Such commits are carried out in order. The error of one is only in its task."""
        return self._started().commits.commit_async(self._to_commit(offsets))

    def _to_commit(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        if offsets is None:
            return self._consumed()
        return {
            TopicPartition(*where): offset
            if isinstance(offset, OffsetAndMetadata)
            else OffsetAndMetadata(offset)
            for where, offset in offsets.items()
        }

    # The group

    @property
    def group_metadata(self) -> GroupMetadata:
        """The membership that a transactional producer needs for send_offsets_to_transaction."""
        engine = self._started()
        if engine.membership is None:
            raise ConfigError("there is no group: set group.id", key="group.id")
        return GroupMetadata(self.config.text("group.id"), *engine.last_identity)

    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Has a member of a classic group join again; the new protocol leaves that to the coordinator."""
        membership = self._started().membership
        if membership is not None:
            membership.enforce_rebalance(reason)

    def metrics(self) -> dict[str, float]:
        """Counters by Kafka's names, and the lag of each partition."""
        metrics: dict[str, float] = dict(self._counters.values)
        lags = {where: self.lag(where) for where in self._subscription.partitions}
        metrics |= {f"records-lag.{where}": lag for where, lag in lags.items() if lag is not None}
        metrics["records-lag-max"] = max((lag for lag in lags.values() if lag is not None), default=0)
        metrics["assigned-partitions"] = len(self._subscription.partitions)
        if self._engine is not None:
            metrics["buffered-bytes"] = self._engine.buffer.size
        return metrics

    def _consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the positions, without the records that an iteration has not given yet."""
        offsets = self._subscription.positions()
        self._unread.subtract_from(offsets)
        return offsets

    def _unread_position(self, state: TopicPartitionState) -> int:
        unread = self._unread.position(state.topic_partition)
        return state.position if unread is None else unread

    def _states(self, partitions: Iterable[TopicPartition]) -> list[TopicPartitionState]:
        """Returns the states of these partitions, or of all if none is named."""
        named = [TopicPartition(*where) for where in partitions]
        return [self._subscription.state(where) for where in named or self._subscription.partitions]

    def _deadline(self, timeout: float | None) -> float:
        return self._started().cluster.now() + (self._api_seconds if timeout is None else timeout)

    def _open(self) -> ConsumerEngine:
        """Returns the engine, for calls that are refused as soon as the consumer is being closed."""
        self._check_open()
        return self._started()

    def _started(self) -> ConsumerEngine:
        """Returns the engine, also for listeners that run because the consumer is being closed: most of them commit."""
        if self._is_closed:
            raise ClosedError(None, "the consumer is closed")
        if self._engine is None:
            raise IllegalStateError(None, "the consumer is not started: await start(), or use `async with`")
        return self._engine

    def _check_open(self) -> None:
        if self._is_closing:
            raise ClosedError(None, "the consumer is closed")

    def _changed(self) -> None:
        if self._engine is not None:
            self._engine.subscription_changed()

    def _wake(self) -> None:
        if self._engine is not None:
            self._engine.wake()
