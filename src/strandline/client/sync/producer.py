"""The blocking producer. `send` only puts the record into a line, which the loop thread empties many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from strandline.base.callbacks import call_back
from strandline.base.waiting import within
from strandline.client.errors import KafkaError, KafkaTimeoutError
from strandline.client.producer.append import Headers
from strandline.client.producer.batch import RecordMetadata, RecordPromise
from strandline.client.producer.producer import Producer as Engine
from strandline.client.producer.shared_transaction import TransactionMember as MemberEngine
from strandline.client.producer.shared_transaction import TransactionOwner as OwnerEngine
from strandline.client.producer.shared_transaction import TransactionTicket
from strandline.client.sync.blocking import settled_within
from strandline.client.sync.calls import ProducerCalls
from strandline.client.sync.producer_queue import AHEAD_COUNT_MAX, ProducerLine, size_of

if TYPE_CHECKING:
    import pyarrow

    from strandline.client.producer.send_table import SentTable


class SendResult:
    """What became of one record, for the thread that sent it."""

    __slots__ = ("_error", "_face", "_promise")

    def __init__(self, face: Producer) -> None:
        self._face = face
        self._promise: RecordPromise | None = None
        self._error: KafkaError | None = None

    def done(self) -> bool:
        return self._error is not None or (self._promise is not None and self._promise.done())

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Waits for the acknowledgement; raises the record's error, or KafkaTimeoutError after `timeout` seconds."""
        if not self.done():
            self._face._thread.run(self._wait(timeout))
        if self._error is not None:
            raise self._error
        assert self._promise is not None
        return self._promise.result()

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        try:
            self.result(timeout)
        except KafkaTimeoutError:
            if not self.done():
                raise
            return self._error or (self._promise and self._promise.exception())
        except KafkaError as error:
            return error
        return None

    def add_done_callback(self, act: Callable[[SendResult], object]) -> None:
        """Called on the loop thread, where it must not block; what it raises goes to the loop's exception handler."""
        self._face._thread.start(self._call_back(act))

    async def _call_back(self, act: Callable[[SendResult], object]) -> None:
        await self._wait(None)
        call_back(act, self)

    async def _wait(self, timeout: float | None) -> None:
        await settled_within(timeout, self._settled(), "the record was not acknowledged")

    async def _settled(self) -> None:
        while self._promise is None and self._error is None:
            await self._face._line.some_are_taken()
        if self._promise is not None:
            try:
                await self._promise
            except KafkaError:
                return  # it is kept, and raised where it was asked for


class TableResult:
    """What became of a table's rows, for the thread that sent it."""

    def __init__(self, face: Producer, sent: SentTable) -> None:
        self._face = face
        self._sent = sent
        self.rows = sent.rows

    def done(self) -> bool:
        return self._sent.done()

    def check(self) -> None:
        """Raises the first error of those that are known."""
        self._sent.check()

    def result(self, timeout: float | None = None) -> None:
        """Waits until all rows are acknowledged; raises the first error, or KafkaTimeoutError after `timeout` s."""
        self._face._thread.run(self._wait(timeout))

    async def _wait(self, timeout: float | None) -> None:
        await settled_within(timeout, self._sent.acknowledged(), "the rows were not acknowledged")


class Producer(ProducerCalls):
    """`strandline.client.Producer`, blocking. `send` may be called from any thread; each thread's records of a topic
    keep their order. Errors, those before a record is taken too, are in what `send` gives. It waits itself only while
    threads are far ahead of what can be taken: that ends after max.block.ms at the latest."""

    _engine: Engine
    _engine_class: type[Engine] = Engine

    def __init__(self, settings: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        super().__init__(lambda: self._engine_class(settings, **keywords))
        self._line = ProducerLine(self._engine)
        self._handoff = self._thread.handoff(self._line.take, AHEAD_COUNT_MAX, self._line.bytes_max)

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> SendResult:
        if not self._thread.is_of_this_process:
            self._check_process()
        result = SendResult(self)
        size = len(value) if value.__class__ is bytes else size_of(value)
        if key is not None:
            size += size_of(key)
        self._handoff.put(result, (topic, value, key, partition, timestamp_ms, headers), size)
        return result

    def send_and_wait(self, topic: str, value: Any = None, key: Any = None, **more: Any) -> RecordMetadata:
        return self.send(topic, value, key, **more).result()

    def send_table(self, topic: str, table: pyarrow.Table, **columns: str | None) -> TableResult:
        """As the asyncio producer's; what it gives is waited for with `result()`."""
        self._check_process()
        return TableResult(self, self._thread.run(self._engine.send_table(topic, table, **columns)))

    def flush(self, timeout: float | None = None) -> None:
        """Waits until every record sent before has its outcome."""
        self._check_process()
        self._thread.run(self._flush(timeout))

    def close(self, timeout: float | None = None) -> None:
        if self._thread.is_of_this_process:
            self._thread.run(self._close(timeout))

    def begin_transaction(self) -> None:
        self._check_process()
        self._thread.run(self._begin())

    def commit_transaction(self) -> None:
        """Everything sent since the transaction began is in it, or this raises: a record that was not taken too."""
        self._check_process()
        self._thread.run(self._commit())

    def abort_transaction(self) -> None:
        self._check_process()
        self._thread.run(self._abort())

    # On the loop

    async def _begin(self) -> None:
        await self._line_is_taken()
        self._engine.begin_transaction()
        self._line.not_taken = None

    async def _commit(self) -> None:
        await self._line_is_taken()
        if self._line.not_taken is not None:
            raise self._line.not_taken
        await self._engine.commit_transaction()

    async def _abort(self) -> None:
        await self._line_is_taken()
        await self._engine.abort_transaction()

    async def _line_is_taken(self) -> None:
        """Until everything that stands in the line now has been taken: a marker behind it says so."""
        marker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._handoff.put_without_waiting(None, marker)
        await marker

    async def _flush(self, timeout: float | None) -> None:
        await settled_within(timeout, self._line_is_taken(), "the records were not taken")
        await self._engine.flush(timeout)

    async def _close(self, timeout: float | None) -> None:
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        if timeout != 0 and not self._engine._has_open_transaction:
            with suppress(TimeoutError):
                await within(timeout, self._line_is_taken())
        left = None if timeout is None else max(0.0, timeout - (loop.time() - began_at))
        await self._engine.close(left)


class TransactionOwner(Producer):
    """`client.transaction_shared.TransactionOwner`, blocking."""

    _engine: OwnerEngine
    _engine_class = OwnerEngine

    @property
    def ticket(self) -> TransactionTicket:
        """What members need to write into the transaction that is open."""
        self._check_process()
        ticket: TransactionTicket = self._thread.call(lambda: self._engine.ticket)
        return ticket


class TransactionMember(Producer):
    """`client.transaction_shared.TransactionMember`, blocking: it takes a `ticket`."""

    _engine_class = MemberEngine
