"""The producer: records in, promises of their offsets out.

    async with Producer(bootstrap_servers="localhost:9092", linger_ms=10) as producer:
        promise = await producer.send("orders", b"value", key=b"key")     # waits only for metadata or memory
        metadata = await promise                                          # waits for the acknowledgement

`send` gathers records; the sender delivers batches in the background. `send_nowait` never waits and may be called from
callbacks. An error before a record is accepted is raised by `send`; whatever happens to it later is its promise's
outcome, which comes exactly once and within delivery.timeout.ms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from strandline.base.waiting import within
from strandline.client.accumulator import Accumulator, PartitionQueue
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import (
    BufferFullError,
    ClosedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    RecordTooLargeError,
    TransactionAbortedError,
)
from strandline.client.metadata import PartitionInfo
from strandline.client.producer_batch import Batch, RecordMetadata, RecordPromise
from strandline.client.producer_identity import Identity
from strandline.client.producer_memory import MemoryLine
from strandline.client.producer_metrics import producer_metrics
from strandline.client.producer_records import size_bound
from strandline.client.producer_serializing import Interceptors, record_bytes, record_headers, serialized
from strandline.client.producer_settings import accumulator_settings, sender_settings, serializer_setting
from strandline.client.producer_topics import TopicQueues, TopicRouter
from strandline.client.sender import Sender
from strandline.client.transactions import Transactions
from strandline.client.world import ClientWorld, real_world
from strandline.telemetry.counters import Counters
from strandline.wire.record_batch import HEADER_BYTES

if TYPE_CHECKING:
    import pyarrow

    from strandline.client.columnar.producing import SentTable

Headers = Mapping[str, bytes | None] | Iterable[tuple[str | bytes, bytes | None]]

_YIELD_BYTES: Final = 64 * 1024
_YIELD_SECONDS: Final = 0.002


class Producer:
    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        /,
        *,
        world: ClientWorld | None = None,
        **keywords: Any,
    ) -> None:
        """Settings by Kafka's names, as a mapping or as keywords with underscores; ConfigError if they cannot stand."""
        self.config = ClientConfig.producer(settings, **keywords)
        self._given_world = world
        self._key_serializer = serializer_setting(self.config, "key.serializer")
        self._value_serializer = serializer_setting(self.config, "value.serializer")
        self._interceptors = Interceptors(self.config.objects("interceptor.classes"))
        self._is_plain = not (self._key_serializer or self._value_serializer or self._interceptors.are_there)
        self.counters = Counters()
        self._block_seconds = self.config.seconds("max.block.ms")
        self._request_bytes_max = self.config.int("max.request.size")
        self._memory_bytes = self.config.int("buffer.memory")
        self._refusal: KafkaError | None = IllegalStateError(None, "the producer has not been started")
        self._memory_line = MemoryLine()
        self._transactions: Transactions | None = None
        self._identity: Identity | None = None
        self._is_yield_due = False
        self._closed_bytes = 0
        self._yielded_at = 0.0
        self._accumulator = Accumulator(accumulator_settings(self.config))

    # Life

    async def __aenter__(self) -> Producer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(0 if kind is not None else None)

    async def start(self) -> None:
        """Finds the cluster; raises ConnectionFailedError if that takes longer than max.block.ms."""
        world = self._world = self._given_world or real_world()
        self._monotonic = world.clock.monotonic
        self._wall_ms = world.clock.wall_ms
        self._cluster = Cluster(self.config, world, start_seconds=self._block_seconds)
        if self.config.flag("enable.idempotence"):
            if self.config.optional_text("transactional.id") is not None:
                self._identity = self._transactions = Transactions(
                    self._cluster, self._refuse, self._abandon_waiting
                )
            else:
                self._identity = Identity(self._cluster, self._refuse)
        self._sender = Sender(
            self._cluster,
            self._accumulator,
            sender_settings(self.config),
            self._identity,
            self.counters,
            self._memory_line.wake_first,
        )
        self._router = TopicRouter(self._cluster, self.config)
        self._topics = self._router.topics
        try:
            await self._cluster.start()
        except BaseException:
            await self._release()
            raise
        self._refusal = None
        if self._transactions is not None:
            self._refusal = IllegalStateError(
                None, "transactions are not initialized", advice="init_transactions comes first"
            )

    async def close(self, timeout: float | None = None) -> None:
        """Delivers what is there, within `timeout` seconds if given, and gives the rest up; does nothing when called
        again."""
        if isinstance(self._refusal, ClosedError) or not hasattr(self, "_sender"):
            return
        self._refusal = ClosedError(None, "the producer is closed")
        self._memory_line.wake_first()
        try:
            if timeout != 0:
                await self._flush(timeout)
        except KafkaTimeoutError:
            pass
        finally:
            self._sender.fail_all(
                ClosedError(None, "the producer was closed before the record was acknowledged")
            )
            await self._release()

    async def _release(self) -> None:
        await self._sender.stop()
        if self._identity is not None:
            await self._identity.close()
        await self._cluster.close()
        if self._given_world is None:
            self._world.close()

    # Sending

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> RecordPromise:
        """Takes a record; waits up to max.block.ms for the topic's metadata and for memory, not for delivery."""
        if not self._is_plain:
            topic, value, key, partition, timestamp_ms, headers = self._prepare(
                topic, value, key, partition, timestamp_ms, headers
            )
        promise = self._take(topic, value, key, partition, timestamp_ms, headers)
        if promise is None:
            promise = await self._take_when_possible(topic, value, key, partition, timestamp_ms, headers)
        if self._is_yield_due:
            await self._yield()
        if not self._is_plain:
            self._interceptors.watch(promise)
        return promise

    async def _yield(self) -> None:
        """A caller who only ever calls `send` would keep the sender from running: it gets its turn when there is enough
        for a request or two, so that batches of several partitions go together, or after a little while."""
        self._is_yield_due = False
        self._closed_bytes = 0
        self._yielded_at = self._monotonic()
        await asyncio.sleep(0)

    def send_nowait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> RecordPromise:
        """Takes a record at once, or raises BufferFullError; KafkaTimeoutError where the topic's metadata is not there
        yet (`await producer.partitions_for(topic)` brings it)."""
        if not self._is_plain:
            topic, value, key, partition, timestamp_ms, headers = self._prepare(
                topic, value, key, partition, timestamp_ms, headers
            )
        promise = self._take(topic, value, key, partition, timestamp_ms, headers)
        if promise is None:
            if topic not in self._topics:
                self._cluster.add_topic(topic)
                raise KafkaTimeoutError(
                    None,
                    f"the metadata of topic {topic} is not there yet",
                    advice="await partitions_for first",
                )
            raise BufferFullError(None, self._full_text(), advice="await send, which waits for room")
        if not self._is_plain:
            self._interceptors.watch(promise)
        return promise

    async def send_and_wait(
        self, topic: str, value: Any = None, key: Any = None, **more: Any
    ) -> RecordMetadata:
        """`send`, and its promise awaited."""
        return await (await self.send(topic, value, key, **more))

    def _take(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
    ) -> RecordPromise | None:
        """The way of every record, so each line counts: None if the topic is not known or there is no memory."""
        if self._refusal is not None:
            raise self._refusal
        if value.__class__ is not bytes and value is not None:
            value = record_bytes(value, "value")
        if key.__class__ is not bytes and key is not None:
            key = record_bytes(key, "key")
        queues = self._topics.get(topic)
        if queues is None:
            return None
        if partition is None and key is None and queues.sticky is not None:
            queue = queues.sticky
        else:
            chosen = queues.choose(partition, key, value)
            if chosen is None:
                return None
            queue = chosen
        timestamp = self._wall_ms() if timestamp_ms is None else timestamp_ms
        pairs = record_headers(headers) if headers else ()
        promise = self._accumulator.join(queue, timestamp, key, value, pairs)
        if promise is not None:
            return promise
        may_move = partition is None and queues.is_free(key)
        return self._take_in_new_batch(queues, queue, may_move, timestamp, key, value, pairs)

    def _take_in_new_batch(
        self,
        queues: TopicQueues,
        queue: PartitionQueue,
        may_move: bool,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[bytes, bytes | None], ...],
    ) -> RecordPromise | None:
        """For the first record of a batch: what is checked once per batch need not be checked per record. `may_move`
        when neither a key nor the caller has chosen the partition."""
        size = size_bound(key, value, headers) + HEADER_BYTES
        for limit, name in (
            (self._request_bytes_max, "max.request.size"),
            (self._memory_bytes, "buffer.memory"),
        ):
            if size > limit:
                raise RecordTooLargeError(None, f"a record of {size} bytes, where {name} allows {limit}")
        accumulator = self._accumulator
        now = self._monotonic()
        if queue.open is not None:
            self._closed_bytes += queue.open.size
            accumulator.close_open(queue)
            self._sender.wake()
            self._is_yield_due = (
                self._closed_bytes >= _YIELD_BYTES or now - self._yielded_at >= _YIELD_SECONDS
            )
        if may_move:
            queue = queues.next_sticky()
        promise = accumulator.append(queue, timestamp, key, value, headers, now)
        self._cluster.add_topic(queue.topic)
        self._sender.arm()
        return promise

    async def _take_when_possible(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
    ) -> RecordPromise:
        """Waits for the topic's metadata, then for memory, in the order of the calls."""
        deadline = self._monotonic() + self._block_seconds
        await self._router.load(topic, partition, deadline)
        is_first = True
        while True:
            # Whoever comes must stand behind those who wait already, or large records would never get their turn.
            promise = None
            if not is_first or not self._memory_line.is_occupied:
                promise = self._take(topic, value, key, partition, timestamp_ms, headers)
            if promise is not None:
                self._memory_line.wake_first()
                return promise
            await self._wait_for_memory(deadline, is_first)
            is_first = False

    async def _wait_for_memory(self, deadline: float, is_first: bool) -> None:
        self._accumulator.close_all()
        self._sender.wake()
        if not await self._memory_line.wait(max(0.0, deadline - self._monotonic()), at_the_end=is_first):
            self.counters.add("buffer-exhausted-total")
            raise BufferFullError(None, self._full_text())
        if self._refusal is not None:
            self._memory_line.wake_first()
            raise self._refusal

    def _full_text(self) -> str:
        return (
            f"buffer.memory ({self._memory_bytes} bytes) is full of records that wait to be acknowledged, and none "
            f"was within max.block.ms ({self.config.int('max.block.ms')})"
        )

    def _prepare(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
    ) -> tuple[str, Any, Any, int | None, int | None, Headers | None]:
        """Interceptors, then serializers."""
        topic, value, key, partition, timestamp_ms, headers = self._interceptors.on_send(
            topic, value, key, partition, timestamp_ms, headers
        )
        if self._key_serializer is not None:
            key = serialized(self._key_serializer, topic, key, "key")
        if self._value_serializer is not None:
            value = serialized(self._value_serializer, topic, value, "value")
        return topic, value, key, partition, timestamp_ms, headers

    async def append_batch(
        self,
        topic: str,
        partition: int,
        body: bytes,
        count: int,
        *,
        base_timestamp_ms: int,
        max_timestamp_ms: int,
        codec: int = 0,
    ) -> Batch:
        """Takes the encoded records of one batch (offsets from 0, without the batch's header), as columnar code makes
        them; waits for metadata and memory as `send` does. `await batch.wait()` and `batch.outcome` tell the rest."""
        if self._refusal is not None:
            raise self._refusal
        size = len(body) + HEADER_BYTES
        if size > min(self._request_bytes_max, self._memory_bytes):
            raise RecordTooLargeError(
                None, f"a batch of {size} bytes is above max.request.size or buffer.memory"
            )
        deadline = self._monotonic() + self._block_seconds
        await self._router.load(topic, partition, deadline)
        queue = self._topics[topic].queues[partition]
        is_first = True
        while True:
            batch = self._accumulator.append_batch(
                queue,
                body,
                count,
                base_timestamp=base_timestamp_ms,
                max_timestamp=max_timestamp_ms,
                now=self._monotonic(),
                codec=codec,
            )
            if batch is not None:
                self._sender.wake()
                return batch
            await self._wait_for_memory(deadline, is_first)
            is_first = False

    async def send_table(self, topic: str, table: pyarrow.Table, **columns: str | None) -> SentTable:
        """Takes the rows of an Arrow table or record batch; `await` the result for the acknowledgements.

        `key`, `value`, `timestamp`, `headers` and `partition` name the columns; without, those called key, value and
        headers are used. Rows with a key go where `send` would put them. Serializers and interceptors do not apply.
        """
        from strandline.client.columnar.producing import send_table  # needs the extra strandline[columnar]

        return await send_table(self, self._world, topic, table, columns)

    # Waiting and asking

    async def flush(self, timeout: float | None = None) -> None:
        """Sends everything now and waits until each record taken so far has its outcome."""
        if isinstance(self._refusal, ClosedError):
            raise self._refusal
        await self._flush(timeout)

    async def _flush(self, timeout: float | None) -> None:
        self._accumulator.close_all()
        self._sender.wake()
        deadline = None if timeout is None else self._monotonic() + timeout
        number = self._accumulator.batch_count
        while waiting := [batch for batch in self._accumulator.unfinished() if batch.place[0] <= number]:
            left = None if deadline is None else max(0.0, deadline - self._monotonic())
            try:
                await within(left, waiting[0].wait())
            except TimeoutError:
                raise KafkaTimeoutError(
                    None, f"{len(waiting)} batches were not delivered in {timeout} s"
                ) from None

    async def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The partitions of a topic, with their leaders; waits up to max.block.ms."""
        await self._router.load(topic, None, self._monotonic() + self._block_seconds)
        info = self._cluster.metadata.topic(topic)
        return () if info is None else info.partitions

    def metrics(self) -> dict[str, float]:
        """Counts since the start, by Kafka's names where it has one."""
        return producer_metrics(self.counters, self._accumulator.memory_free, self._memory_bytes)

    # Transactions

    async def init_transactions(self) -> None:
        """Takes the transactional.id over, which ends what another producer left open under it."""
        await self._transactional().init(self._block_deadline())
        self._refusal = IllegalStateError(
            None, "no transaction has begun", advice="begin_transaction comes first"
        )

    def begin_transaction(self) -> None:
        self._transactional().begin()
        self._refusal = None

    async def send_offsets_to_transaction(self, offsets: Mapping[Any, Any], group: Any) -> None:
        """Commits a consumer's offsets with the transaction. `offsets` are by TopicPartition, as numbers or objects
        with offset, leader_epoch and metadata; `group` is a group id or a consumer's group metadata."""
        await self._transactional().send_offsets(offsets, group, self._block_deadline())

    async def commit_transaction(self) -> None:
        """Delivers everything and makes it visible, or raises and leaves the transaction to be aborted."""
        transactions = self._transactional()
        transactions.check_can_commit()
        await self._flush(None)
        await transactions.end(is_commit=True, deadline=self._block_deadline())
        self._refusal = IllegalStateError(
            None, "no transaction has begun", advice="begin_transaction comes first"
        )

    async def abort_transaction(self) -> None:
        """Gives everything of the transaction up; what waits to be sent fails with TransactionAbortedError."""
        transactions = self._transactional()
        transactions.begin_abort()
        await self._flush(None)
        await transactions.end(is_commit=False, deadline=self._block_deadline())
        self._refusal = IllegalStateError(
            None, "no transaction has begun", advice="begin_transaction comes first"
        )

    def _transactional(self) -> Transactions:
        if isinstance(self._refusal, ClosedError):
            raise self._refusal
        if self._transactions is None:
            raise IllegalStateError(
                None, "the producer is not transactional", advice="set transactional.id, and start"
            )
        return self._transactions

    def _block_deadline(self) -> float:
        return self._monotonic() + self._block_seconds

    def _abandon_waiting(self) -> None:
        error = TransactionAbortedError(
            None, "the transaction was aborted, or failed, before the record was sent"
        )
        self._sender.abandon_waiting(error)

    # When it cannot go on

    def _refuse(self, error: KafkaError) -> None:
        """A fatal error: what waits fails with it, and so does every further call."""
        if not isinstance(self._refusal, ClosedError):
            self._refusal = error
        self._sender.fail_all(error)
        self._memory_line.wake_first()
