"""The thread on which blocking clients of a process run: one loop for all of them, found by name from `client.world`.

It is started when first asked for, and stopped when the interpreter exits: a thread that wakes up while Python takes
itself apart can crash the process. While it waits it costs nothing. A forked child has no threads but the one that
forked, so it gets a loop thread of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")

# The calls that the thread which waits for the running work has to make; None ends its wait.
_CALLER: ContextVar[SimpleQueue[Callable[[], None] | None] | None] = ContextVar("caller", default=None)
# A callback of the loop takes milliseconds; a process that exits must not hang on one that does not end.
_STOP_SECONDS_MAX: Final = 5.0


class LoopThread:
    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._run, name="strandline-client", daemon=True)
        self._thread.start()
        # Exit handlers that a user registers after the first client was made run before this one, and can use clients.
        atexit.register(self._stop)

    @property
    def is_of_this_process(self) -> bool:
        return self._pid == os.getpid()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and returns its result, from any other thread. An interrupted wait cancels the
        work.

        Until then this thread does what the work asks of it through `ask_the_caller`.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "a blocking client cannot be used on its own loop's thread: it would wait for itself"
            )
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError("the interpreter exits: close blocking clients before that")
        calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        token = _CALLER.set(calls)
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        _CALLER.reset(token)
        future.add_done_callback(lambda _: calls.put(None))
        try:
            while (act := calls.get()) is not None:
                act()
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def ask_the_caller(self, act: Callable[[], T]) -> T:
        """Has the thread that waits for this work call a function, and returns its result."""
        caller = _CALLER.get()
        if caller is None:
            return act()
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()

        def settle(give: Callable[[Any], None], outcome: object) -> None:
            if not result.done():
                give(outcome)

        def respond() -> None:
            try:
                found = act()
            except Exception as error:
                loop.call_soon_threadsafe(settle, result.set_exception, error)
            else:
                loop.call_soon_threadsafe(settle, result.set_result, found)

        caller.put(respond)
        return await result

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts the thread without waiting for its loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, act: Callable[[], T]) -> T:
        """Returns the result of a function that must run on the loop."""

        async def once() -> T:
            return act()

        return self.run(once())

    def handoff(
        self, take: Callable[[deque[Any]], Coroutine[Any, Any, None]], count_max: int, bytes_max: int
    ) -> Handoff:
        return Handoff(self._loop, take, count_max, bytes_max)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _stop(self) -> None:
        if self.is_of_this_process and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_STOP_SECONDS_MAX)


class Handoff:
    """Items from many threads to one coroutine on the loop, in order, many at a time.

    Waking a loop from another thread costs more than all else about a record, so it happens once for many items. `take`
    is called with the queue and takes some items out; an item is the two values that were put, and the bytes of all
    items before it. A thread that is far ahead waits until half of `count_max` and of `bytes_max` is free.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        take: Callable[[deque[Any]], Coroutine[Any, Any, None]],
        count_max: int,
        bytes_max: int,
    ) -> None:
        self._loop = loop
        self._take = take
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._items: deque[tuple[Any, Any, int]] = deque()
        self._bytes_put = 0  # the bytes of all items that were ever put
        self._bytes_taken = 0  # the bytes of those that have left the queue
        self._lock = threading.Lock()
        self._is_woken = False
        self._room = threading.Condition(self._lock)
        self._task: asyncio.Task[None] | None = None

    def count(self) -> int:
        """Returns the number of items in the queue."""
        return len(self._items)

    def put_without_waiting(self, one: Any, other: Any, size: int = 0) -> None:
        with self._lock:
            self._items.append((one, other, self._bytes_put))
            self._bytes_put += size
            must_wake, self._is_woken = not self._is_woken, True
        if must_wake:
            self._loop.call_soon_threadsafe(self._wake)

    def put(self, one: Any, other: Any, size: int) -> None:
        self.put_without_waiting(one, other, size)
        if len(self._items) > self._count_max or self._bytes_put - self._bytes_taken > self._bytes_max:
            with self._room:
                while not self._has_room():
                    # The time limit is for a loop that died: nobody would wake this thread.
                    self._room.wait(1.0)

    def _has_room(self) -> bool:
        queued_bytes = self._bytes_put - self._bytes_taken
        return len(self._items) <= self._count_max // 2 and queued_bytes <= self._bytes_max // 2

    def _wake(self) -> None:
        self._task = self._loop.create_task(self._empty())

    async def _empty(self) -> None:
        while True:
            await self._take(self._items)
            with self._room:
                self._bytes_taken = self._items[0][2] if self._items else self._bytes_put
                self._room.notify_all()
                if not self._items:
                    self._is_woken = False
                    return


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class _Threads:
    """The loop thread of this process, if there is one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: LoopThread | None = None

    def get(self) -> LoopThread:
        with self._lock:
            if self._found is None or not self._found.is_of_this_process:
                self._found = LoopThread()
            return self._found

    def forget_lock(self) -> None:
        """Replaces the lock in a forked child, where a lock that another thread of the parent held would stay
        locked."""
        self._lock = threading.Lock()


_threads = _Threads()
os.register_at_fork(after_in_child=_threads.forget_lock)


def loop_thread() -> LoopThread:
    """Returns the loop thread of this process."""
    return _threads.get()
