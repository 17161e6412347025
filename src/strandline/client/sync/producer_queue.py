"""The queue between the threads that send and the loop: the loop's end takes records out and appends them.

1. Records are taken in order. Where there is no memory everything waits, because every record needs some.
2. A topic whose metadata is missing delays only its own records: they are deferred, in order, and so are those that
   come for that topic until all of them are gone. If too many are deferred the whole queue stops: threads must wait.
3. A record waits for at most max.block.ms from when it came, not from when the records before it failed.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from strandline.base.callbacks import call_back
from strandline.client.errors import KafkaError, KafkaTimeoutError
from strandline.client.producer.batch import RecordMetadata, RecordPromise
from strandline.client.producer.producer import Producer as AsyncProducer
from strandline.client.sync.blocking import result_within

# How far threads may be ahead of the loop. This comes on top of buffer.memory, so it must not be much.
AHEAD_COUNT_MAX: Final = 10_000
AHEAD_BYTES_MAX: Final = 8 * 1024 * 1024
# How many records are taken before the loop does something else, so that responses are not kept waiting.
_AT_ONCE_MAX: Final = 500


def size_of(content: Any) -> int:
    """Returns about how many bytes a key or value keeps in memory; it may not have been serialized yet."""
    if content.__class__ is bytes:
        return len(content)
    if content is None:
        return 0
    return content.nbytes if isinstance(content, memoryview) else sys.getsizeof(content)


class SendResult:
    """The outcome of one record, for the thread that sent it."""

    __slots__ = ("_error", "_is_observed", "_promise", "_queue")

    def __init__(self, queue: ProducerQueue) -> None:
        self._queue = queue
        self._promise: RecordPromise | None = None
        self._error: KafkaError | None = None
        self._is_observed = False

    def unobserved_count(self) -> int:
        """Returns 1 while nobody has looked at the result, and 0 after that."""
        return 0 if self._is_observed else 1

    def done(self) -> bool:
        """Returns True if the record has its outcome."""
        return self._error is not None or (self._promise is not None and self._promise.done())

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Waits for the acknowledgement; raises the record's error, or KafkaTimeoutError after `timeout` seconds."""
        self._is_observed = True
        if not self.done():
            self._queue.thread.run(self._wait(timeout))
        if self._error is not None:
            raise self._error
        assert self._promise is not None
        return self._promise.result()

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Waits as `result` does; returns the record's error, or None if it was acknowledged."""
        try:
            self.result(timeout)
        except KafkaTimeoutError:
            if not self.done():
                raise
            return self._error or (self._promise and self._promise.exception())
        except KafkaError as error:
            return error
        return None

    def add_done_callback(self, callback: Callable[[SendResult], object]) -> None:
        """Has `callback` called on the loop thread, where it must not block; an error that it raises goes to the
        loop's exception handler."""
        self._is_observed = True
        self._queue.thread.start(self._call_back(callback))

    async def _call_back(self, callback: Callable[[SendResult], object]) -> None:
        await self._wait(None)
        call_back(callback, self)

    async def _wait(self, timeout: float | None) -> None:
        await result_within(timeout, self._completed(), "the record was not acknowledged")

    async def _completed(self) -> None:
        while self._promise is None and self._error is None:
            await self._queue.progress()
        if self._promise is not None:
            try:
                await self._promise
            except KafkaError:
                return  # The promise keeps it, and `result` raises it.


class _DeferredRecords:
    """One topic's deferred records: (result, record, its deadline), or (None, marker, 0) for a marker."""

    __slots__ = ("entries", "is_loading")

    def __init__(self) -> None:
        self.entries: deque[tuple[Any, Any, float]] = deque()
        self.is_loading = True  # whether they wait for metadata, and not for memory


class ProducerQueue:
    """The loop's end of the queue: appends records to the asyncio producer and resolves their results.

    A marker in the queue is a future that is completed when every record before it has been appended or refused.
    """

    def __init__(self, producer: AsyncProducer, thread: Any) -> None:
        """`thread` is the loop thread on which results are waited for."""
        self.thread = thread
        self._appender = producer._appender
        self._unobserved = producer._unobserved
        self._counters = producer.counters
        self._watch = None if producer._is_plain else producer._interceptors.watch
        self.bytes_max = min(AHEAD_BYTES_MAX, producer.config.int("buffer.memory"))
        self.first_refusal: KafkaError | None = None  # of a record, until somebody resets it
        self._deferred: dict[str, _DeferredRecords] = {}
        self._deferred_count = 0
        self._deferred_bytes = 0
        self._deferred_progress = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiters: list[asyncio.Future[None]] = []
        self._count = 0  # the number of all records and markers that were taken so far
        self._noted_number = 0  # the last record in the queue when somebody began to wait
        self._noted_deadline = 0.0  # the time until which records up to that one may wait

    async def take(self, items: deque[Any]) -> None:
        """Takes some items out of the queue: (result, record, …) for a record, (None, marker, …) for a marker."""
        appender, deferred = self._appender, self._deferred
        append, watch = appender.append, self._watch
        number = 0
        while items and number < _AT_ONCE_MAX:
            number += 1
            result, record, _ = items.popleft()
            if result is None:
                self._pass_marker(record)
                continue
            try:
                promise = None if deferred and record[0] in deferred else append(*record)
                if promise is None:
                    promise = await self._append_or_defer(result, record, self._count + number, len(items))
                if promise is not None:
                    result._promise = promise
                    if watch is not None:
                        watch(promise)
            except Exception as error:
                self._refuse(result, error)
            if appender.is_yield_due:
                await appender.yield_to_sender()
        self._count += number
        self.wake_waiters()
        await asyncio.sleep(0)

    async def _append_or_defer(
        self, result: SendResult, record: tuple[Any, ...], number: int, after_count: int
    ) -> RecordPromise | None:
        """Waits for memory; None if the record was deferred until its topic's metadata is there. `number` is its
        place among all that ever were in the queue, `after_count` how many are in the queue after it."""
        topic, partition = record[0], record[3]
        deadline = self._deadline(number, after_count)
        while True:
            deferred = self._deferred.get(topic)
            if deferred is None and self._appender.has_metadata(topic, partition):
                self.wake_waiters()
                return await self._appender.append_when_possible(*record, deadline=deadline)
            is_full = self._deferred_count >= AHEAD_COUNT_MAX or self._deferred_bytes >= self.bytes_max
            if (deferred is None or deferred.is_loading) and not is_full:
                self._defer(result, record, deadline)
                return None
            # Either too many are deferred, or they wait for nothing but memory, as this one would too.
            self.wake_waiters()
            self._deferred_progress.clear()
            await self._deferred_progress.wait()

    def _defer(self, result: SendResult, record: tuple[Any, ...], deadline: float) -> None:
        deferred = self._deferred.get(record[0])
        if deferred is None:
            deferred = self._deferred[record[0]] = _DeferredRecords()
            task = asyncio.get_running_loop().create_task(self._append_deferred(record[0], deferred))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        deferred.entries.append((result, record, deadline))
        self._deferred_count += 1
        self._deferred_bytes += size_of(record[1]) + size_of(record[2])

    def _deadline(self, number: int, after_count: int) -> float:
        """Returns the time until which a record may wait. All records that were in the queue when somebody began to
        wait get the same one, so the clock is read once for them and not for each."""
        if number > self._noted_number:
            self._noted_number = number + after_count
            self._noted_deadline = self._appender.block_deadline()
        return self._noted_deadline

    async def _append_deferred(self, topic: str, deferred: _DeferredRecords) -> None:
        """Appends one topic's records once its metadata is there, or refuses them after they waited too long."""
        count = 0
        while deferred.entries:
            result, record, deadline = deferred.entries.popleft()
            if result is None:
                _complete(record)
                continue
            self._deferred_count -= 1
            self._deferred_bytes -= size_of(record[1]) + size_of(record[2])
            try:
                if not self._appender.has_metadata(topic, record[3]):
                    deferred.is_loading = True
                    self.wake_waiters()
                    await self._appender.load_metadata(topic, record[3], deadline)
                deferred.is_loading = False
                promise = self._appender.append(*record)
                if promise is None:
                    self.wake_waiters()
                    promise = await self._appender.append_when_possible(*record, deadline=deadline)
                result._promise = promise
                if self._watch is not None:
                    self._watch(promise)
            except Exception as error:
                self._refuse(result, error)
            count += 1
            if self._appender.is_yield_due or count % _AT_ONCE_MAX == 0:
                await self._appender.yield_to_sender()
            self._deferred_progress.set()
        del self._deferred[topic]
        self._deferred_progress.set()
        self.wake_waiters()

    def _refuse(self, result: SendResult, error: Exception) -> None:
        if not isinstance(error, KafkaError):
            error = KafkaError(None, f"{type(error).__name__}: {error}")
        result._error = error
        self._counters.add("record-error-total")
        self._unobserved.failed(result, error)
        self.first_refusal = self.first_refusal or error

    # Waiters

    def _pass_marker(self, marker: asyncio.Future[None]) -> None:
        """Completes the marker once the deferred records before it are gone: each topic gets a marker of its own."""
        if not self._deferred:
            _complete(marker)
            return
        markers: list[asyncio.Future[None]] = []
        for deferred in self._deferred.values():
            markers.append(asyncio.get_running_loop().create_future())
            deferred.entries.append((None, markers[-1], 0.0))
        asyncio.gather(*markers).add_done_callback(lambda _: _complete(marker))

    def wake_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            _complete(waiter)

    async def progress(self) -> None:
        """Waits until some records of the queue have been appended, or refused."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter


def _complete(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
