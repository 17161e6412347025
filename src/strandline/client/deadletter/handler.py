"""A handler over a consumer: a record that fails is tried again later, one that cannot succeed becomes a dead
letter.

    async def bill(record):
        ...

    async with DeadLetters(
        ["orders"], bill, bootstrap_servers="localhost:9092", group_id="billing", backoff_ms=(1000, 60_000)
    ) as letters:
        await letters.run()

Rules:
1. Each record has one of three outcomes: handled, sent to a retry topic, or sent to the dead letter topic. A record
   that a deserializer refuses is a dead letter at once, and so is one whose handler raises an error of `fatal`.
   Records whose schema registry is away wait for it.
2. Offsets are committed only after the outcomes before them are durable: acknowledged by all in-sync replicas.
   After a crash in between some records are handled again, and none is lost.
3. With a transactional.id outcomes and offsets are one transaction, so that outputs and letters exist once.
4. A record in a retry topic waits until it is due: its partition is paused, the others go on.
5. The handler sees a retried record under its original topic, partition, offset and timestamp, by which an
   application can notice that it has seen the record before.

Retrying gives up the order of records that share a key; `backoff_ms=()` keeps it and has dead letters only.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.arguments import listed
from strandline.client.config.shared_keys import COMMON_KEYS
from strandline.client.consumer.consumer import Consumer
from strandline.client.consumer.deserializing import ColumnDeserializer, column_deserializer
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.deadletter.letters import REQUEST_BYTES_MAX, Origin, Output, RetryPolicy, origin_of
from strandline.client.deadletter.topics import create_topics
from strandline.client.errors import (
    ConfigError,
    ErrorCode,
    GroupError,
    KafkaError,
    SerializationError,
)
from strandline.client.producer.producer import Producer
from strandline.client.world import ClientWorld, real_world
from strandline.serde.builtin import deserializer_for
from strandline.serde.contract import LOOKUPS_MAX, LookupNeeded, give_ports
from strandline.serde.errors import RegistryUnavailable, SchemaRegistryError
from strandline.telemetry.counters import Counters

__all__ = ["DeadLetters", "Output"]

Outputs = Iterable[Output] | None
Handler = Callable[[ConsumerRecord], Outputs | Awaitable[Outputs]]

DEFAULT_BACKOFF_MS: Final = (1000, 10_000, 60_000)
# How soon `stop` is noticed while there is nothing to read.
_POLL_SECONDS: Final = 0.25
# A partition that waits is not looked at more often, however close together its records are due.
_HOLD_SECONDS_MIN: Final = 0.02
# How long a partition waits before a schema registry that was away is asked again.
_REGISTRY_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


class DeadLetters:
    """Runs a handler over topics, with retry topics and dead letter topics for the records that fail."""

    def __init__(
        self,
        topics: Sequence[str],
        handler: Handler,
        settings: Mapping[str, Any] | None = None,
        /,
        *,
        backoff_ms: Sequence[int] = DEFAULT_BACKOFF_MS,
        fatal: Sequence[type[Exception]] = (),
        transactional_id: str | None = None,
        producer: Mapping[str, Any] | None = None,
        creates_topics: bool = True,
        world: ClientWorld | None = None,
        **keywords: Any,
    ) -> None:
        """Takes the consumer's settings; `producer` has those of the producer that differ. A handler is a coroutine
        function, or a plain one, which runs in a thread. Nothing is connected yet."""
        settings_by_name = {
            **(settings or {}),
            **{name.replace("_", "."): value for name, value in keywords.items()},
        }
        # Letters keep the bytes as they came, so records are deserialized here and not by the consumer.
        self._deserializers = [
            _deserializer(settings_by_name, f"{part}.deserializer") for part in ("key", "value")
        ]
        self._key_deserializer, self._value_deserializer = map(column_deserializer, self._deserializers)
        if transactional_id is not None:
            settings_by_name.setdefault("isolation.level", "read_committed")
        consumer = Consumer(
            {"enable.auto.commit": False, "auto.offset.reset": "earliest", **settings_by_name}, world=world
        )
        if not consumer.config.optional_text("group.id"):
            raise ConfigError("offsets and retry topics belong to a group: set group.id", key="group.id")
        if consumer.config.flag("enable.auto.commit"):
            raise ConfigError(
                "offsets are committed after the outcome: leave enable.auto.commit unset",
                key="enable.auto.commit",
            )
        self.policy = RetryPolicy(
            group=consumer.config.text("group.id"), backoff_ms=tuple(backoff_ms), fatal=tuple(fatal)
        )
        self._topics = listed(topics, "topics")
        self._handler = handler
        self._is_async = _is_coroutine_function(handler)
        self._injected_world = world
        self._creates_topics = creates_topics
        self._consumer = consumer
        common = {key.name: settings_by_name[key.name] for key in COMMON_KEYS if key.name in settings_by_name}
        self._admin_settings = common
        own = {"transactional.id": transactional_id} if transactional_id else {}
        self.producer = Producer(
            {**common, "linger.ms": 0, "max.request.size": REQUEST_BYTES_MAX, **own, **(producer or {})},
            world=world,
        )
        self._is_transactional = transactional_id is not None
        self._work_seconds_max = consumer.config.seconds("max.poll.interval.ms") / 2
        self._held: dict[TopicPartition, float] = {}  # paused until then
        self._uncommitted: dict[TopicPartition, OffsetAndMetadata] = {}
        self._is_stopping = False
        self.counters = Counters()

    # Start and close

    async def start(self) -> None:
        """Creates the retry and dead letter topics that are missing, and joins the group."""
        self._world = self._injected_world or real_world()
        for each in self._deserializers:
            give_ports(each, self._world.web, self._world.clock)
        if self._creates_topics:
            async with Admin(self._admin_settings, world=self._injected_world) as admin:
                await create_topics(admin, self._topics, self.policy)
        await self.producer.start()
        try:
            if self._is_transactional:
                await self.producer.init_transactions()
            await self._consumer.start()
        except BaseException:
            await self.producer.close(0)
            raise
        retried = [name for topic in self._topics for name in self.policy.retry_topics(topic)]
        self._consumer.subscribe([*self._topics, *retried])

    async def close(self) -> None:
        """Leaves the group. Records that were handled and not committed are handled again by the next owner of the
        partition. A handler that still runs in its thread, because `run` was cancelled, is not waited for."""
        self.stop()
        await self._consumer.close()
        await self.producer.close()
        if self._injected_world is None and hasattr(self, "_world"):
            self._world.close()

    async def __aenter__(self) -> DeadLetters:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def stop(self) -> None:
        """Has `run` end after the record that it is at, with everything before it committed."""
        self._is_stopping = True

    def metrics(self) -> dict[str, float]:
        """Returns the numbers of records handled, retried and dead since the start."""
        return dict(self.counters.values)

    # Work

    async def run(self) -> None:
        """Handles records until `stop`. Raises if an outcome cannot be made durable; its record stays uncommitted."""
        while not self._is_stopping:
            records = await self._consumer.poll(self._wait_seconds())
            self._resume_due()
            if records:
                await self._handle_all(records)
            elif self._uncommitted:
                await self._commit()

    async def _handle_all(self, records: list[ConsumerRecord]) -> None:
        """Handles the records of one poll; their outcomes are made durable and committed together."""
        if self._is_transactional:
            self.producer.begin_transaction()
        done: dict[TopicPartition, OffsetAndMetadata] = {}
        counts = {"handled-total": 0, "retried-total": 0, "dead-total": 0}
        try:
            await self._outcomes(records, done, counts)
            if self._is_transactional:
                await self.producer.send_offsets_to_transaction(done, self._consumer.group_metadata)
                await self.producer.commit_transaction()
        except KafkaError as error:
            if not self._is_transactional or not _is_abortable(error):
                raise
            await self.producer.abort_transaction()
            self._put_back(records)
            self.counters.add("aborted-total")
            return
        for name, count in counts.items():
            self.counters.add(name, count)
        if not self._is_transactional:
            self._uncommitted |= done
            await self._commit()

    async def _outcomes(
        self,
        records: list[ConsumerRecord],
        done: dict[TopicPartition, OffsetAndMetadata],
        counts: dict[str, int],
    ) -> None:
        monotonic = self._world.clock.monotonic
        end = monotonic() + self._work_seconds_max
        promises = []
        held: set[TopicPartition] = set()
        for index, record in enumerate(records):
            where = TopicPartition(record.topic, record.partition)
            if where in held:
                continue
            # One poll may be more work than max.poll.interval.ms allows: the rest is read again by the next.
            if self._is_stopping or (done and monotonic() >= end):
                self._put_back(records[index:])
                break
            origin = origin_of(record)
            early_ms = origin.retry_at_ms - self._world.clock.wall_ms()
            if early_ms > 0 and record.topic not in self._topics:
                self._hold(record, early_ms / 1000)
                held.add(where)
                continue
            try:
                kind, outputs = await self._outcome(record, origin)
            except RegistryUnavailable as error:
                # That says nothing about the record: it waits, and so do those after it.
                _log.warning("%s: %s", where, error)
                self._hold(record, _REGISTRY_SECONDS)
                held.add(where)
                continue
            for each in outputs:
                promises.append(
                    await self.producer.send(
                        each.topic, each.value, each.key, each.partition, each.timestamp_ms, each.headers
                    )
                )
            counts[kind] += 1
            done[where] = OffsetAndMetadata(record.offset + 1, "", record.leader_epoch)
        for promise in promises:
            await promise

    async def _outcome(self, record: ConsumerRecord, origin: Origin) -> tuple[str, Iterable[Output]]:
        now_ms = self._world.clock.wall_ms
        # Headers of a redriven or foreign record say nothing about this attempt.
        if record.topic in self._topics:
            origin = origin_of(record._replace(headers=()))
        try:
            shown = await self._deserialized(record, origin)
        except (SchemaRegistryError, asyncio.CancelledError):
            raise
        except Exception as error:
            return "dead-total", [self.policy.outcome(record, origin, error, now_ms=now_ms(), is_fatal=True)]
        try:
            returned: Any
            if self._is_async:
                returned = await self._handler(shown)  # type: ignore[misc]
            else:
                returned = await self._world.workers.run(self._handler, shown)
            outputs = [] if returned is None else list(returned)
            if not all(isinstance(each, Output) for each in outputs):
                raise TypeError("a handler returns None, or Output records to be sent")
        except Exception as error:
            letter = self.policy.outcome(record, origin, error, now_ms=now_ms())
            return "retried-total" if letter.topic.rpartition(".")[2] != "dlq" else "dead-total", [letter]
        return "handled-total", outputs

    async def _deserialized(self, record: ConsumerRecord, origin: Origin) -> ConsumerRecord:
        for _ in range(LOOKUPS_MAX):
            try:
                key = self._part(self._key_deserializer, record.key, record, origin)
                value = self._part(self._value_deserializer, record.value, record, origin)
                break
            except LookupNeeded as needed:
                await needed.look_up()
        else:
            raise SerializationError(None, "the deserializers need look-ups without end")
        return record._replace(
            topic=origin.topic,
            partition=origin.partition,
            offset=origin.offset,
            timestamp=origin.timestamp_ms,
            key=key,
            value=value,
        )

    def _part(
        self, deserialize: ColumnDeserializer | None, data: Any, record: ConsumerRecord, origin: Origin
    ) -> Any:
        if data is None or deserialize is None:
            return data
        return deserialize(origin.topic, (data,), (record.headers,))[0]

    # Offsets and pauses

    async def _commit(self) -> None:
        owned = self._consumer.assignment()
        self._uncommitted = {where: offset for where, offset in self._uncommitted.items() if where in owned}
        if not self._uncommitted:
            return
        try:
            await self._consumer.commit(self._uncommitted)
        except GroupError:
            # The group is rebalancing: partitions that are still ours after the next poll are committed then.
            self.counters.add("commit-failed-total")
            return
        self._uncommitted = {}

    def _put_back(self, records: Iterable[ConsumerRecord]) -> None:
        """Has the next polls return these records again."""
        owned = self._consumer.assignment()
        seen: set[TopicPartition] = set()
        for record in records:
            where = TopicPartition(record.topic, record.partition)
            if where not in seen and where in owned:
                self._consumer.seek(where, OffsetAndMetadata(record.offset))
            seen.add(where)

    def _hold(self, record: ConsumerRecord, seconds: float) -> None:
        where = TopicPartition(record.topic, record.partition)
        self._put_back([record])
        if where in self._consumer.assignment():
            self._consumer.pause(where)
            self._held[where] = self._world.clock.monotonic() + max(seconds, _HOLD_SECONDS_MIN)

    def _resume_due(self) -> None:
        now = self._world.clock.monotonic()
        owned = self._consumer.assignment()
        for where in [where for where, until in self._held.items() if until <= now or where not in owned]:
            del self._held[where]
            if where in owned:
                self._consumer.resume(where)

    def _wait_seconds(self) -> float:
        now = self._world.clock.monotonic()
        return max(0.0, min([_POLL_SECONDS, *(until - now for until in self._held.values())]))


def _deserializer(settings: dict[str, Any], key: str) -> Any:
    try:
        return deserializer_for(settings.pop(key, None), key)
    except ValueError as error:
        raise ConfigError(str(error), key=key) from error


def _is_abortable(error: KafkaError) -> bool:
    """Returns True if a transaction that failed with this error may be aborted and its records read again."""
    return isinstance(error, GroupError) or error.code == ErrorCode.TRANSACTION_ABORTABLE


def _is_coroutine_function(handler: object) -> bool:
    """Returns True for a coroutine function, and for an object whose `__call__` is one."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)
