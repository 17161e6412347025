"""An asyncio loop with virtual time.

1. What is ready runs in the order in which it became so. Timers run in the order (deadline, sequence).
2. Time stands still while anything is ready; then it jumps to the next deadline.
3. Where nothing is ready and no timer is left while someone still waits, the world is stuck, which raises. So does a
   world that makes no headway in time, or runs past the time it was given.
4. Nothing of a life that has ended runs, and its timers move no clock. What falls due in one that is paused waits.
5. An exception that nobody handles ends the run: in a simulation it is never noise.
6. Whatever would leave the simulation raises SealBroken.
"""

from __future__ import annotations

import asyncio
import gc
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import Context, copy_context
from heapq import heappop, heappush
from inspect import CORO_CREATED, getcoroutinestate
from math import inf
from threading import get_ident
from types import CoroutineType, MethodType
from typing import Any, Final, TypeVar

from strandline.sim.engine.callback import Callback, name_of
from strandline.sim.engine.process_life import OWNER, NodeHalted, ProcessLife
from strandline.sim.engine.seal import SealBroken, refusal, sealed
from strandline.sim.engine.trace import Trace

T = TypeVar("T")

# More callbacks than this at one moment mean that some code waits by asking again and again.
CALLBACKS_AT_ONE_MOMENT_MAX: Final = 200_000
# There is little garbage with cycles, as in real nodes (`node.loop`), and much that stays: three nodes and a history.
_COLLECTED_AT: Final = (400_000, 20, 100)
_WAITING_SHOWN_MAX: Final = 20
_WAITS_ON_THE_WAY_OUT_MAX: Final = 20


class StuckWorld(AssertionError):
    """Somebody waits for an event that can no longer happen."""


class SimulatedLoop(asyncio.AbstractEventLoop):
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.now = 0.0  # the same as `time()`, for clocks, which are asked all the time
        self._sequence = 0
        self._ready: deque[Callback] = deque()
        self._timers: list[tuple[float, int, Callback]] = []
        self._held: dict[
            ProcessLife, list[Callback]
        ] = {}  # callbacks that fell due while their process was paused
        # All of them, with their contexts: a dead life's tasks must not be collected amid a run.
        self._tasks: list[tuple[asyncio.Task[Any], Context]] = []
        self._tasks_max = 256
        self._failure: BaseException | None = None
        self._is_closed = False
        self._thread = get_ident()
        self._deadline = inf

    # Time

    def time(self) -> float:
        return self.now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        due = Callback(callback, args, context)
        if not self._is_closed:
            self._ready.append(due)
        return due

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        return self._schedule(
            self.now + delay if delay > 0.0 else self.now, Callback(callback, args, context)
        )

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        return self._schedule(when, Callback(callback, args, context))

    def _schedule(self, when: float, due: Callback) -> Callback:
        life = due.life
        if life is not None and life.clock_rate != 1.0:
            when = self.now + (when - self.now) / life.clock_rate
        if not self._is_closed:
            self._sequence += 1
            heappush(self._timers, (when, self._sequence, due))
        return due

    def resume(self, life: ProcessLife) -> None:
        """Continues a paused process: its held callbacks run now, in the order in which they fell due."""
        life.is_paused = False
        self._ready.extend(self._held.pop(life, ()))

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        if get_ident() != self._thread:
            raise SealBroken("another thread called call_soon_threadsafe")
        return self.call_soon(callback, *args, context=context)

    # Futures and tasks

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        context = copy_context() if context is None else context
        task: asyncio.Task[T] = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.append((task, context))
        if len(self._tasks) > self._tasks_max:
            self._tasks = [each for each in self._tasks if not each[0].done()]
            self._tasks_max = 2 * len(self._tasks) + 256
        return task

    # Running

    def run_until_complete(  # type: ignore[override]
        self, future: Coroutine[Any, Any, T] | asyncio.Future[T], *, seconds_max: float = inf
    ) -> T:
        assert not self._is_closed
        awaited = self.create_task(future) if isinstance(future, Coroutine) else future
        self._failure = None
        self._deadline = self.now + seconds_max
        previous = events._get_running_loop()
        events._set_running_loop(self)
        thresholds = gc.get_threshold()
        gc.set_threshold(*_COLLECTED_AT)
        try:
            with sealed():
                self._run(awaited)
        finally:
            gc.set_threshold(*thresholds)
            events._set_running_loop(previous)
        return awaited.result()

    def _run(self, awaited: asyncio.Future[T]) -> None:
        ready, called = self._ready, self._trace.called
        at_this_moment = 0
        while not awaited.done():
            if not ready:
                self._advance()
                at_this_moment = 0
            due = ready.popleft()
            life = due.life
            if due.is_cancelled:
                continue
            if life is not None and (life.ended_because is not None or life.is_paused):
                if life.ended_because is None:
                    self._held.setdefault(life, []).append(due)
                continue
            at_this_moment += 1
            if at_this_moment > CALLBACKS_AT_ONE_MOMENT_MAX:
                raise StuckWorld(f"time stands still: {due.name} is called over and over")
            run = due.run
            # Most are methods, and this is done for each.
            called(run.__qualname__ if type(run) is MethodType else name_of(run))
            try:
                due.context.run(run, *due.args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self.call_exception_handler({"message": f"{due.name} failed", "exception": error})
            if self._failure is not None:
                raise self._failure

    def _advance(self) -> None:
        """Moves time to the next deadline, whose timers become ready."""
        timers, ready = self._timers, self._ready
        while timers and timers[0][2].is_over:
            heappop(timers)
        if not timers:
            raise StuckWorld(f"nothing can happen any more, and these wait:\n{self._waiting()}")
        when = timers[0][0]
        if when > self._deadline:
            raise StuckWorld(
                f"not done after {self._deadline:.0f} virtual seconds; these wait:\n{self._waiting()}"
            )
        # A deadline may lie in the past: `call_at` takes any.
        if when > self.now:
            self.now = when
        self._trace.moved(self.now)
        while timers and timers[0][0] <= when:
            ready.append(heappop(timers)[2])

    def fail(self, error: BaseException) -> None:
        """Ends the run with this error; the first one counts."""
        if self._failure is None:
            self._failure = error

    def call_exception_handler(self, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        if self._is_closed or isinstance(error, NodeHalted):
            return
        self.fail(error if error is not None else AssertionError(context["message"]))

    def default_exception_handler(self, context: Mapping[str, Any]) -> None:
        self.call_exception_handler(context)

    def _waiting(self) -> str:
        waiting = [task for task, context in self._tasks if not task.done() and _is_alive(context)]
        shown = [f"  {_place(task)}" for task in waiting[:_WAITING_SHOWN_MAX]]
        if len(waiting) > len(shown):
            shown.append(f"  and {len(waiting) - len(shown)} more")
        return "\n".join(shown)

    # The end

    def is_running(self) -> bool:
        return events._get_running_loop() is self

    def is_closed(self) -> bool:
        return self._is_closed

    def get_debug(self) -> bool:
        return False

    def close(self) -> None:
        """Ends what is left. Nothing that this sets off has an effect any more."""
        self._is_closed = True
        self._ready.clear()
        self._timers.clear()
        self._held.clear()
        for task, _ in self._tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _end(task.get_coro())
        self._tasks.clear()


def _end(coroutine: Any) -> None:
    """Closes a coroutine, also one that waits again while it ends (`async with`, `finally`)."""
    if isinstance(coroutine, CoroutineType):
        frame = coroutine.cr_frame
        if frame is not None and getcoroutinestate(coroutine) == CORO_CREATED:
            # It never ran, so the coroutines that it was given never will either.
            for given in frame.f_locals.values():
                _end(given)
    elif not isinstance(coroutine, Coroutine):
        return
    for _ in range(_WAITS_ON_THE_WAY_OUT_MAX):
        try:
            coroutine.close()
        except RuntimeError as error:
            if "ignored GeneratorExit" not in str(error):
                raise
        else:
            return


def simulated_loop(trace: Trace) -> SimulatedLoop:
    return SimulatedLoop(trace)  # type: ignore[abstract]  # what is missing is set below, to raise


def _is_alive(context: Context) -> bool:
    life = context.get(OWNER)
    return life is None or life.is_alive


def _place(task: asyncio.Task[Any]) -> str:
    """Returns where a task waits: name and line of the innermost coroutine."""
    coroutine: Any = task.get_coro()
    names = []
    line = 0
    while isinstance(coroutine, CoroutineType):
        names.append(coroutine.__qualname__)
        line = coroutine.cr_frame.f_lineno if coroutine.cr_frame is not None else 0
        coroutine = coroutine.cr_await
    return f"{' > '.join(names)} (line {line})"


_SEALED_METHODS: Final = (
    "add_reader",
    "add_signal_handler",
    "add_writer",
    "connect_accepted_socket",
    "connect_read_pipe",
    "connect_write_pipe",
    "create_connection",
    "create_datagram_endpoint",
    "create_server",
    "create_unix_connection",
    "create_unix_server",
    "getaddrinfo",
    "getnameinfo",
    "remove_reader",
    "remove_signal_handler",
    "remove_writer",
    "run_forever",
    "run_in_executor",
    "sendfile",
    "set_default_executor",
    "sock_accept",
    "sock_connect",
    "sock_recv",
    "sock_recv_into",
    "sock_sendall",
    "sock_sendfile",
    "start_tls",
    "subprocess_exec",
    "subprocess_shell",
)
for _method in _SEALED_METHODS:
    setattr(SimulatedLoop, _method, refusal(f"loop.{_method}"))
