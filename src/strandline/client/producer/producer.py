"""The producer: it takes records and returns promises of their offsets.

    async with Producer(bootstrap_servers="localhost:9092", linger_ms=10) as producer:
        promise = await producer.send("orders", b"value", key=b"key")     # waits only for metadata or memory
        metadata = await promise                                          # waits for the acknowledgement

`send` appends records to batches; the sender delivers batches in the background. `send_nowait` never waits and may be
called from callbacks. An error before a record is appended is raised by `send`. After that its promise has the
outcome, exactly once and within delivery.timeout.ms.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from strandline.base.waiting import within
from strandline.client.columnar_extra import columnar_module
from strandline.client.config.config import ClientConfig
from strandline.client.config.keywords import ProducerKeywords
from strandline.client.errors import (
    ClosedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    RecordTooLargeError,
    TransactionAbortedError,
)
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.metadata import PartitionInfo
from strandline.client.producer.accumulator import Accumulator
from strandline.client.producer.append import Headers, RecordAppender
from strandline.client.producer.batch import ProducerBatch, RecordMetadata, RecordPromise
from strandline.client.producer.idempotence import Idempotence
from strandline.client.producer.metrics import producer_metrics
from strandline.client.producer.sender import Sender
from strandline.client.producer.serializing import (
    ProducerInterceptors,
    RecordSerializers,
    Serialize,
    serialized,
)
from strandline.client.producer.settings import accumulator_settings, sender_settings, serializer_setting
from strandline.client.producer.topic_router import TopicRouter
from strandline.client.producer.transactions import Transactions
from strandline.client.producer.unobserved import OnError, UnobservedErrors
from strandline.client.producer.unsent import tell_unsent
from strandline.client.world import ClientWorld, real_world
from strandline.serde.contract import RecordSerializer
from strandline.telemetry.counters import Counters
from strandline.wire.record_batch import HEADER_BYTES

logger = logging.getLogger("strandline.client.producer")

if TYPE_CHECKING:
    import pyarrow

    from strandline.client.producer.send_table import SentTable


class Producer:
    """Sends records to topics, in transactions if it has a transactional.id."""

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        /,
        *,
        on_error: OnError | None = None,
        world: ClientWorld | None = None,
        **keywords: Unpack[ProducerKeywords],
    ) -> None:
        """Takes settings by Kafka's names, as a mapping or as keywords with underscores. Raises ConfigError if they
        contradict each other.

        `on_error(error, count)` is called on the loop for records that failed and that nobody waits for; without it
        `flush` and `close` raise the first of those errors.
        """
        self.config = ClientConfig.producer(settings, **keywords)
        self._injected_world = world
        key, value = (serializer_setting(self.config, f"{part}.serializer") for part in ("key", "value"))
        self._block_seconds = self.config.seconds("max.block.ms")
        self._record_serializers: RecordSerializers | None = None
        self._key_serializer: Serialize | None = None
        self._value_serializer: Serialize | None = None
        if isinstance(key, RecordSerializer) or isinstance(value, RecordSerializer):
            self._record_serializers = RecordSerializers(key, value, self._block_seconds)
        else:
            self._key_serializer, self._value_serializer = key, value
        self._interceptors = ProducerInterceptors(self.config.objects("interceptor.classes"))
        self._is_plain = not (key or value or self._interceptors.are_configured)
        self.counters = Counters()
        self._request_bytes_max = self.config.int("max.request.size")
        self._memory_bytes = self.config.int("buffer.memory")
        self._record_bytes_max = min(self._request_bytes_max, self._memory_bytes) - HEADER_BYTES
        self._transactions: Transactions | None = None
        self._idempotence: Idempotence | None = None
        self._accumulator = Accumulator(accumulator_settings(self.config))
        self._unobserved = UnobservedErrors(on_error, self.counters)
        self._accumulator.on_failed = self._unobserved.failed
        self._appender = RecordAppender(self.config, self._accumulator, self.counters)
        self._unsent_teller = tell_unsent(self, self._accumulator.incomplete_and_done)

    # Start and close

    async def __aenter__(self) -> Producer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Readers of committed data must not wait for a transaction that an error has left open. A cancelled task must
        # end soon, and leaves it open.
        is_to_abort = kind is not None and issubclass(kind, Exception) and self._has_open_transaction
        if kind is None:
            await self.close()
        else:
            await self._close(None if is_to_abort else 0)
            self._log_unobserved()  # the error of the application is the one that is raised

    async def start(self) -> None:
        """Finds the cluster; raises ConnectionFailedError if that takes longer than max.block.ms."""
        world = self._world = self._injected_world or real_world()
        self._monotonic = world.clock.monotonic
        if self._record_serializers is not None:
            self._record_serializers.use_ports(world.web, world.clock)
        self._cluster = ClusterClient(self.config, world, start_seconds=self._block_seconds)
        if self.config.flag("enable.idempotence"):
            if self.config.optional_text("transactional.id") is not None:
                self._idempotence = self._transactions = Transactions(
                    self._cluster, self._fail, self._transaction_failed
                )
            else:
                self._idempotence = Idempotence(self._cluster, self._fail)
        self._sender = Sender(
            self._cluster,
            self._accumulator,
            sender_settings(self.config),
            self._idempotence,
            self.counters,
            self._appender.memory_freed,
            self._fail,
        )
        self._router = TopicRouter(self._cluster, self.config)
        self._appender.bind(self._cluster, self._sender, self._router)
        try:
            await self._cluster.start()
        except BaseException:
            await self._release()
            raise
        self._appender.refuse(
            None
            if self._transactions is None
            else IllegalStateError(
                None, "transactions are not initialized", advice="init_transactions comes first"
            )
        )

    async def close(self, timeout: float | None = None) -> None:
        """Delivers the records that it has, within `timeout` seconds if given, and fails the rest; does nothing when
        called again. An open transaction is aborted, unless `timeout` is 0: readers would wait for its end.

        Raises the first error of records whose results nobody has looked at. With a `timeout` of 0 it is only logged.
        """
        await self._close(timeout)
        if timeout == 0:
            self._log_unobserved()
        else:
            self._raise_unobserved()

    def _raise_unobserved(self) -> None:
        error = self._unobserved.take()
        if error is not None:
            raise error

    def _log_unobserved(self) -> None:
        error = self._unobserved.take()
        if error is not None:
            logger.error("%s", error)

    async def _close(self, timeout: float | None) -> None:
        if self._appender.is_closed or not hasattr(self, "_sender"):
            return
        self._appender.refuse(ClosedError(None, "the producer is closed"))
        try:
            if timeout != 0:
                await within(timeout, self._finish())
        except TimeoutError:
            pass
        finally:
            self._sender.fail_all(
                ClosedError(None, "the producer was closed before the record was acknowledged")
            )
            self._unsent_teller.detach()
            await self._release()

    async def _finish(self) -> None:
        if self._transactions is not None and self._has_open_transaction:
            with suppress(KafkaError):  # the caller cannot help it: the transaction will time out
                await self._abort(self._transactions)
            self._unobserved.clear()
        await self._flush(None)

    async def _release(self) -> None:
        await self._sender.stop()
        if self._idempotence is not None:
            await self._idempotence.close()
        await self._cluster.close()
        if self._injected_world is None:
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
        """Appends a record; waits up to max.block.ms for the topic's metadata and for memory, not for delivery."""
        if not self._is_plain:
            topic, value, key, partition, timestamp_ms, headers = self._intercept(
                topic, value, key, partition, timestamp_ms, headers
            )
            if self._record_serializers is None:
                value, key = self._serialize(topic, value, key)
            else:
                value, key, headers = await self._record_serializers.serialize_waiting(
                    topic, value, key, headers
                )
        appender = self._appender
        promise = appender.append(topic, value, key, partition, timestamp_ms, headers)
        if promise is None:
            promise = await appender.append_when_possible(
                topic, value, key, partition, timestamp_ms, headers, deadline=appender.block_deadline()
            )
        if appender.is_yield_due:
            await appender.yield_to_sender()
        if not self._is_plain:
            self._interceptors.watch(promise)
        return promise

    def send_nowait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> RecordPromise:
        """Appends a record at once, or raises BufferFullError; raises KafkaTimeoutError if the topic's metadata is
        not there yet (`await producer.partitions_for(topic)` brings it), or a schema (`await producer.send` does)."""
        if not self._is_plain:
            topic, value, key, partition, timestamp_ms, headers = self._intercept(
                topic, value, key, partition, timestamp_ms, headers
            )
            if self._record_serializers is None:
                value, key = self._serialize(topic, value, key)
            else:
                value, key, headers = self._record_serializers.serialize_at_once(topic, value, key, headers)
        promise = self._appender.append(topic, value, key, partition, timestamp_ms, headers)
        if promise is None:
            if not self._appender.has_metadata(topic, partition):
                self._cluster.add_topic(topic)
                raise KafkaTimeoutError(
                    None,
                    f"the metadata of topic {topic} is not there yet",
                    advice="await partitions_for first",
                )
            raise self._appender.buffer_full_error("await send, which waits for room")
        if not self._is_plain:
            self._interceptors.watch(promise)
        return promise

    async def send_and_wait(
        self, topic: str, value: Any = None, key: Any = None, **more: Any
    ) -> RecordMetadata:
        """Sends a record and waits for its acknowledgement."""
        return await (await self.send(topic, value, key, **more))

    def _intercept(self, *record: Any) -> tuple[str, Any, Any, int | None, int | None, Headers | None]:
        """Returns the record after the interceptors."""
        intercepted: tuple[str, Any, Any, int | None, int | None, Headers | None] = (
            self._interceptors.on_send(*record)
        )
        return intercepted

    def _serialize(self, topic: str, value: Any, key: Any) -> tuple[Any, Any]:
        if self._key_serializer is not None:
            key = serialized(self._key_serializer, topic, key, "key")
        if self._value_serializer is not None:
            value = serialized(self._value_serializer, topic, value, "value")
        return value, key

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
    ) -> ProducerBatch:
        """Appends the encoded records of one batch (offsets from 0, without the batch's header), as columnar code
        makes them; waits for metadata and memory as `send` does. `await batch.wait()` and `batch.outcome` have the
        rest."""
        self._appender.check_accepting()
        size = len(body) + HEADER_BYTES
        if size > min(self._request_bytes_max, self._memory_bytes):
            raise RecordTooLargeError(
                None, f"a batch of {size} bytes is above max.request.size or buffer.memory"
            )

        def attempt() -> ProducerBatch | None:
            return self._accumulator.append_batch(
                self._router.topics[topic].queues[partition],
                body,
                count,
                base_timestamp=base_timestamp_ms,
                max_timestamp=max_timestamp_ms,
                now=self._monotonic(),
                codec=codec,
            )

        batch = await self._appender.when_possible(topic, partition, attempt, self._appender.block_deadline())
        self._sender.wake()
        return batch

    async def send_table(self, topic: str, table: pyarrow.Table, **columns: str | None) -> SentTable:
        """Appends the rows of an Arrow table or record batch; `await` the result for the acknowledgements.

        `key`, `value`, `timestamp`, `headers` and `partition` name the columns; without them the columns called key,
        value and headers are used. Rows with a key go to the partition that `send` would choose. Serializers and
        interceptors do not apply.
        """
        module = columnar_module("strandline.client.producer.send_table")
        sent: SentTable = await module.send_table(self, self._world, topic, table, columns)
        return sent

    # Flushing and metadata

    async def flush(self, timeout: float | None = None) -> None:
        """Sends everything now and waits until each record appended so far has its outcome. Raises the first error of
        records whose results nobody has looked at, unless the producer has `on_error`."""
        self._check_not_closed()
        await self._flush(timeout)
        self._raise_unobserved()

    async def _flush(self, timeout: float | None) -> None:
        self._accumulator.close_all()
        self._sender.wake()
        deadline = None if timeout is None else self._monotonic() + timeout
        number = self._accumulator.batch_count
        while waiting := [batch for batch in self._accumulator.incomplete() if batch.order[0] <= number]:
            left = None if deadline is None else max(0.0, deadline - self._monotonic())
            try:
                await within(left, waiting[0].wait())
            except TimeoutError:
                raise KafkaTimeoutError(
                    None, f"{len(waiting)} batches were not delivered in {timeout} s"
                ) from None

    async def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """Returns the partitions of a topic, with their leaders; waits up to max.block.ms."""
        await self._router.load(topic, None, self._monotonic() + self._block_seconds)
        info = self._cluster.metadata.topic(topic)
        return () if info is None else info.partitions

    def metrics(self) -> dict[str, float]:
        """Counts since the start, by Kafka's names where it has one."""
        return producer_metrics(self.counters, self._accumulator.memory_free, self._memory_bytes)

    # Transactions

    async def init_transactions(self) -> None:
        """Takes the transactional.id over, which ends a transaction that another producer left open under it."""
        await self._transactional().init(self._appender.block_deadline())
        self._refuse_until_begin("no transaction has begun", "begin_transaction comes first")

    def begin_transaction(self) -> None:
        """Begins a transaction: records may be sent until it is committed or aborted."""
        self._transactional().begin()
        self._appender.refuse(None)

    async def send_offsets_to_transaction(self, offsets: Mapping[Any, Any], group: Any) -> None:
        """Commits a consumer's offsets with the transaction. `offsets` are by TopicPartition, as numbers or objects
        with offset, leader_epoch and metadata; `group` is a group id or a consumer's group metadata."""
        await self._transactional().send_offsets(offsets, group, self._appender.block_deadline())

    async def commit_transaction(self) -> None:
        """Delivers everything and makes it visible, or raises and leaves the transaction to be aborted. From now on
        no record is taken until the next one begins; after KafkaTimeoutError this may be called again."""
        transactions = self._transactional()
        transactions.begin_commit()
        self._refuse_until_begin(
            "the transaction is being committed", "await commit_transaction, then begin_transaction"
        )
        try:
            await self._flush(None)
            await transactions.end(is_commit=True, deadline=self._appender.block_deadline())
        except KafkaError:
            self._unobserved.clear()  # this error tells the application
            raise
        self._refuse_until_begin("no transaction has begun", "begin_transaction comes first")

    async def abort_transaction(self) -> None:
        """Aborts the transaction: records that wait to be sent fail with TransactionAbortedError, and no record is
        taken until the next one begins."""
        await self._abort(self._transactional())
        self._unobserved.clear()  # records of an aborted transaction are meant not to be there
        self._refuse_until_begin("no transaction has begun", "begin_transaction comes first")

    async def _abort(self, transactions: Transactions) -> None:
        transactions.begin_abort()
        await self._flush(None)
        await transactions.end(is_commit=False, deadline=self._appender.block_deadline())

    @property
    def _has_open_transaction(self) -> bool:
        """True if there is a transaction that only this producer can end, and that it has not begun to commit."""
        return self._transactions is not None and self._transactions.is_left_open

    def _refuse_until_begin(self, why: str, advice: str) -> None:
        self._appender.refuse(IllegalStateError(None, why, advice=advice))

    def _transactional(self) -> Transactions:
        self._check_not_closed()
        if self._transactions is None:
            raise IllegalStateError(
                None, "the producer is not transactional", advice="set transactional.id, and start"
            )
        return self._transactions

    def _transaction_failed(self, error: KafkaError) -> None:
        """Handles an error after which the transaction can only be aborted: waiting records are not sent, and no more
        are taken."""
        refusal = error
        if not isinstance(error, TransactionAbortedError):
            refusal = TransactionAbortedError(
                None, f"the transaction has failed: {error.name}: {error.message}"
            )
            refusal.__cause__ = error
        self._appender.refuse(refusal)
        self._sender.abort_undrained(
            TransactionAbortedError(
                None, "the transaction was aborted, or failed, before the record was sent"
            )
        )

    # Failures

    def _check_not_closed(self) -> None:
        if self._appender.is_closed:
            self._appender.check_accepting()

    def _fail(self, error: KafkaError) -> None:
        """Handles a fatal error: records that wait fail with it, and so does every further call."""
        self._appender.refuse(error)
        self._sender.fail_all(error)
