"""The blocking producer. `send` only puts the record into a queue, which the loop thread empties many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from strandline.base.waiting import within
from strandline.client.config.keywords import ProducerKeywords
from strandline.client.net.metadata import check_topic_name
from strandline.client.producer.append import Headers, check_partition
from strandline.client.producer.batch import RecordMetadata
from strandline.client.producer.producer import Producer as AsyncProducer
from strandline.client.producer.serializing import (
    RecordSerializers,
    checked_timestamp,
    record_bytes,
    record_headers,
)
from strandline.client.producer.shared_transaction import TransactionMember as AsyncTransactionMember
from strandline.client.producer.shared_transaction import TransactionOwner as AsyncTransactionOwner
from strandline.client.producer.shared_transaction import TransactionTicket
from strandline.client.producer.unobserved import OnError
from strandline.client.producer.unsent import tell_unsent
from strandline.client.sync.blocking import calls_of, result_within
from strandline.client.sync.calls import ProducerCalls
from strandline.client.sync.producer_queue import AHEAD_COUNT_MAX, ProducerQueue, SendResult
from strandline.serde.contract import LOOKUPS_MAX, LookupNeeded

if TYPE_CHECKING:
    import pyarrow

    from strandline.client.producer.send_table import SentTable

__all__ = ["Producer", "SendResult", "TableResult", "TransactionMember", "TransactionOwner"]


class TableResult:
    """The outcome of a table's rows, for the thread that sent it."""

    def __init__(self, producer: Producer, sent: SentTable) -> None:
        self._producer = producer
        self._sent = sent
        self.rows = sent.rows

    def done(self) -> bool:
        """Returns True if every row has its outcome."""
        return self._sent.done()

    def check(self) -> None:
        """Raises the first error of those that are known."""
        self._sent.check()

    def result(self, timeout: float | None = None) -> None:
        """Waits until all rows are acknowledged; raises the first error, or KafkaTimeoutError after `timeout` s."""
        self._producer._thread.run(self._wait(timeout))

    async def _wait(self, timeout: float | None) -> None:
        await result_within(timeout, self._sent.acknowledged(), "the rows were not acknowledged")


@calls_of(AsyncProducer)
class Producer(ProducerCalls):
    """`strandline.client.Producer`, blocking.

    `send` may be called from any thread; each thread's records of a topic keep their order. It runs serializers and
    interceptors in the thread that calls it, and raises at once what is wrong at once: types, sizes, names, a closed
    producer. Later errors are in the result that it returns. `flush` and `close` raise the first error of results that
    nobody has looked at, or `on_error` takes them, on the loop thread. `send` waits only while threads are far ahead
    of the loop.
    """

    _client: AsyncProducer
    _client_class: type[AsyncProducer] = AsyncProducer

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        /,
        *,
        on_error: OnError | None = None,
        **keywords: Unpack[ProducerKeywords],
    ) -> None:
        """Takes settings as the asyncio producer does, and connects."""
        self._connect(lambda: self._client_class(settings, on_error=on_error, **keywords))

    def _connect(self, make: Callable[[], Any]) -> None:
        super().__init__(make)
        self._queue = ProducerQueue(self._client, self._thread)
        self._handoff = self._thread.handoff(self._queue.take, AHEAD_COUNT_MAX, self._queue.bytes_max)
        client = self._client
        self._is_plain = client._is_plain
        self._appender = client._appender
        self._record_bytes_max = client._record_bytes_max
        self._topics_checked: set[str] = set()
        client._unsent_teller.detach()
        self._unsent_teller = tell_unsent(self, client._accumulator.incomplete_and_done, self._handoff.count)

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> SendResult:
        """Puts a record into the queue and returns its result; raises at once if the record is wrong."""
        if not self._thread.is_of_this_process:
            self._check_process()
        if not self._is_plain:
            client = self._client
            topic, value, key, partition, timestamp_ms, headers = client._intercept(
                topic, value, key, partition, timestamp_ms, headers
            )
            if client._record_serializers is None:
                value, key = client._serialize(topic, value, key)
            else:
                value, key, headers = self._serialize_record(
                    client._record_serializers, topic, value, key, headers
                )
        if self._appender.refusal is not None:
            self._appender.check_accepting()
        if topic not in self._topics_checked:
            check_topic_name(topic)
            self._topics_checked.add(topic)
        if value.__class__ is not bytes and value is not None:
            value = record_bytes(value, "value")
        size = 0 if value is None else len(value)
        if key is not None:
            key = record_bytes(key, "key")
            size += len(key)
        if size > self._record_bytes_max:
            self._appender.check_size(size)
        if timestamp_ms is not None:
            timestamp_ms = checked_timestamp(timestamp_ms)
        if partition is not None:
            check_partition(partition)
        result = SendResult(self._queue)
        pairs = record_headers(headers) if headers else None
        self._handoff.put(result, (topic, value, key, partition, timestamp_ms, pairs), size)
        return result

    def _serialize_record(
        self, serializers: RecordSerializers, topic: str, value: Any, key: Any, headers: Headers | None
    ) -> tuple[Any, Any, Headers | None]:
        """Serializes in this thread; look-ups run on the loop."""
        for _ in range(LOOKUPS_MAX):
            try:
                return serializers.serialize(topic, value, key, headers)
            except LookupNeeded as needed:
                self._thread.run(serializers.look_up(needed))
        record: tuple[Any, Any, Headers] = self._thread.run(
            serializers.serialize_waiting(topic, value, key, headers)
        )
        return record

    def send_and_wait(self, topic: str, value: Any = None, key: Any = None, **more: Any) -> RecordMetadata:
        """Sends a record and waits for its acknowledgement."""
        return self.send(topic, value, key, **more).result()

    def send_table(self, topic: str, table: pyarrow.Table, **columns: str | None) -> TableResult:
        """Sends as the asyncio producer does; the result is waited for with `result()`."""
        self._check_process()
        return TableResult(self, self._thread.run(self._client.send_table(topic, table, **columns)))

    def flush(self, timeout: float | None = None) -> None:
        """Waits until every record sent before has its outcome. Raises the first error of results that nobody has
        looked at, unless the producer has `on_error`."""
        self._check_process()
        self._thread.run(self._flush(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Delivers what was sent, within `timeout` seconds if given, and fails the rest. Raises the first error of
        results that nobody has looked at; with a `timeout` of 0 it is only logged."""
        if self._thread.is_of_this_process:
            self._thread.run(self._close(timeout))

    def begin_transaction(self) -> None:
        """Begins a transaction: records may be sent until it is committed or aborted."""
        self._check_process()
        self._thread.run(self._begin())

    def commit_transaction(self) -> None:
        """Commits everything that was sent since the transaction began, or raises: also where a record was refused."""
        self._check_process()
        self._thread.run(self._commit())

    def abort_transaction(self) -> None:
        """Aborts the transaction, with everything that was sent since it began."""
        self._check_process()
        self._thread.run(self._abort())

    # On the loop

    async def _begin(self) -> None:
        await self._drain_queue()
        self._client.begin_transaction()
        self._queue.first_refusal = None

    async def _commit(self) -> None:
        await self._drain_queue()
        if self._queue.first_refusal is not None:
            raise self._queue.first_refusal
        await self._client.commit_transaction()

    async def _abort(self) -> None:
        await self._drain_queue()
        await self._client.abort_transaction()

    async def _drain_queue(self) -> None:
        """Waits until every record that is in the queue now has been appended or refused."""
        marker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._handoff.put_without_waiting(None, marker)
        await marker

    async def _flush(self, timeout: float | None) -> None:
        await result_within(timeout, self._drain_queue(), "the records were not taken")
        await self._client.flush(timeout)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not self._thread.is_of_this_process:
            self.close()
        else:  # the error of the application is the one that is raised
            self._thread.run(self._close(None, is_told=True))

    async def _close(self, timeout: float | None, *, is_told: bool = False) -> None:
        """Closes the client. With `is_told`, errors that nobody has looked at are logged, and not raised."""
        is_told = is_told or timeout == 0
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        if timeout != 0 and not self._client._has_open_transaction:
            with suppress(TimeoutError):
                await within(timeout, self._drain_queue())
        left = None if timeout is None else max(0.0, timeout - (loop.time() - began_at))
        await self._client._close(left)
        self._unsent_teller.detach()
        if is_told:
            self._client._log_unobserved()
        else:
            self._client._raise_unobserved()


class TransactionOwner(Producer):
    """The TransactionOwner of `client.producer.shared_transaction`, for code that blocks."""

    _client: AsyncTransactionOwner
    _client_class = AsyncTransactionOwner

    @property
    def ticket(self) -> TransactionTicket:
        """The ticket with which members write into the transaction that is open."""
        self._check_process()
        ticket: TransactionTicket = self._thread.call(lambda: self._client.ticket)
        return ticket


class TransactionMember(Producer):
    """`client.producer.shared_transaction.TransactionMember`, blocking: it takes a `ticket`."""

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        /,
        *,
        ticket: TransactionTicket,
        **keywords: Unpack[ProducerKeywords],
    ) -> None:
        """Takes settings as the asyncio producer does, and the ticket of a transaction."""
        self._connect(lambda: AsyncTransactionMember(settings, ticket=ticket, **keywords))
