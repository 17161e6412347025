"""The loop's end of the line in which threads put their records: takes them out and gives them to the engine.

1. Records are taken in order. Where there is no memory everything waits, because everybody needs it.
2. A topic whose metadata is not there keeps only its own records waiting: they stand apart, in order, and so does
   what comes for that topic until they are gone. If very many do, the line stops after all: its threads must wait.
3. A record waits for at most max.block.ms from when it came, and not from when those before it have failed.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from strandline.client.errors import KafkaError
from strandline.client.producer.batch import RecordPromise
from strandline.client.producer.producer import Producer as Engine

if TYPE_CHECKING:
    from strandline.client.sync.producer import SendResult

# How far threads may be ahead of the loop: beside what buffer.memory bounds, so it must not be much.
AHEAD_COUNT_MAX: Final = 10_000
AHEAD_BYTES_MAX: Final = 8 * 1024 * 1024
# How many records are taken before the loop does something else, so that answers are not kept waiting.
_AT_ONCE_MAX: Final = 500


def size_of(given: Any) -> int:
    """About how many bytes a key or value keeps in memory, which may not have been serialized yet."""
    if given.__class__ is bytes:
        return len(given)
    if given is None:
        return 0
    return given.nbytes if isinstance(given, memoryview) else sys.getsizeof(given)


class _Apart:
    """A topic's records that stand apart: (result, record, its deadline), or (None, who waits for those before it)."""

    __slots__ = ("entries", "is_loading")

    def __init__(self) -> None:
        self.entries: deque[tuple[Any, Any, float]] = deque()
        self.is_loading = True  # whether they wait for metadata, and not for memory


class ProducerLine:
    def __init__(self, engine: Engine) -> None:
        self._intake = engine._intake
        self._prepare = None if engine._is_plain else engine._prepare
        self._watch = None if engine._is_plain else engine._interceptors.watch
        self.bytes_max = min(AHEAD_BYTES_MAX, engine.config.int("buffer.memory"))
        self.not_taken: KafkaError | None = (
            None  # why a record was refused: the first, until somebody resets it
        )
        self._apart: dict[str, _Apart] = {}
        self._apart_count = 0
        self._apart_bytes = 0
        self._apart_news = asyncio.Event()  # something went on with what stands apart
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiters: list[asyncio.Future[None]] = []
        self._count = 0  # of all that was taken out of the line
        self._noted_number = 0  # the last that stood in the line when somebody began to wait,
        self._noted_deadline = 0.0  # and until when those up to it may wait

    async def take(self, line: deque[Any]) -> None:
        """Takes some out of the line: (result, record, …), or (None, who waits for those before it, …)."""
        intake, apart = self._intake, self._apart
        take, prepare, watch = intake.take, self._prepare, self._watch
        number = 0
        while line and number < _AT_ONCE_MAX:
            number += 1
            result, record, _ = line.popleft()
            if result is None:
                self._pass_on(record)
                continue
            try:
                if prepare is not None:
                    record = prepare(*record)
                promise = None if apart and record[0] in apart else take(*record)
                if promise is None:
                    promise = await self._take_slowly(result, record, self._count + number, len(line))
                if promise is not None:
                    result._promise = promise
                    if watch is not None:
                        watch(promise)
            except Exception as error:
                self._refused(result, error)
            if intake.is_yield_due:
                await intake.yield_to_sender()
        self._count += number
        self.wake_waiters()
        await asyncio.sleep(0)

    async def _take_slowly(
        self, result: SendResult, record: tuple[Any, ...], number: int, behind: int
    ) -> RecordPromise | None:
        """Waits for memory; None if the record has been put apart, where it waits for its topic. `number` is its place
        among all that ever were in the line, `behind` how many stand there behind it."""
        topic, partition = record[0], record[3]
        deadline = self._deadline(number, behind)
        while True:
            apart = self._apart.get(topic)
            if apart is None and self._intake.knows(topic, partition):
                self.wake_waiters()
                return await self._intake.take_when_possible(*record, deadline=deadline)
            is_full = self._apart_count >= AHEAD_COUNT_MAX or self._apart_bytes >= self.bytes_max
            if (apart is None or apart.is_loading) and not is_full:
                self._put_apart(result, record, deadline)
                return None
            # Either there are too many, or they wait for nothing but memory, as this one would too.
            self.wake_waiters()
            self._apart_news.clear()
            await self._apart_news.wait()

    def _put_apart(self, result: SendResult, record: tuple[Any, ...], deadline: float) -> None:
        apart = self._apart.get(record[0])
        if apart is None:
            apart = self._apart[record[0]] = _Apart()
            task = asyncio.get_running_loop().create_task(self._take_apart(record[0], apart))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        apart.entries.append((result, record, deadline))
        self._apart_count += 1
        self._apart_bytes += size_of(record[1]) + size_of(record[2])

    def _deadline(self, number: int, behind: int) -> float:
        """When a record has waited for long enough. What stood in the line when somebody began to wait had come by
        then: so the clock is read only when somebody does, and not for each record."""
        if number > self._noted_number:
            self._noted_number = number + behind
            self._noted_deadline = self._intake.block_deadline()
        return self._noted_deadline

    async def _take_apart(self, topic: str, apart: _Apart) -> None:
        """Takes one topic's records, as soon as its metadata is there or they have waited for too long."""
        count = 0
        while apart.entries:
            result, record, deadline = apart.entries.popleft()
            if result is None:
                _settle(record)
                continue
            self._apart_count -= 1
            self._apart_bytes -= size_of(record[1]) + size_of(record[2])
            try:
                if not self._intake.knows(topic, record[3]):
                    apart.is_loading = True
                    self.wake_waiters()
                    await self._intake.load(topic, record[3], deadline)
                apart.is_loading = False
                promise = self._intake.take(*record)
                if promise is None:
                    self.wake_waiters()
                    promise = await self._intake.take_when_possible(*record, deadline=deadline)
                result._promise = promise
                if self._watch is not None:
                    self._watch(promise)
            except Exception as error:
                self._refused(result, error)
            count += 1
            if self._intake.is_yield_due or count % _AT_ONCE_MAX == 0:
                await self._intake.yield_to_sender()
            self._apart_news.set()
        del self._apart[topic]
        self._apart_news.set()
        self.wake_waiters()

    def _refused(self, result: SendResult, error: Exception) -> None:
        if not isinstance(error, KafkaError):
            error = KafkaError(None, f"{type(error).__name__}: {error}")
        result._error = error
        self.not_taken = self.not_taken or error

    # Who waits

    def _pass_on(self, marker: asyncio.Future[None]) -> None:
        """Everything before the marker is taken when it is in each of the lines that stand apart."""
        if not self._apart:
            _settle(marker)
            return
        markers: list[asyncio.Future[None]] = []
        for apart in self._apart.values():
            markers.append(asyncio.get_running_loop().create_future())
            apart.entries.append((None, markers[-1], 0.0))
        asyncio.gather(*markers).add_done_callback(lambda _: _settle(marker))

    def wake_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            _settle(waiter)

    async def some_are_taken(self) -> None:
        """Until some records of the line have been taken, or refused."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter


def _settle(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
