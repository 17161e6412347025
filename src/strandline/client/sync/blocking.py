"""Blocking clients: each call runs on the loop thread while the calling thread waits for it.

The methods are those of the asyncio classes, with their arguments, results and errors; a coroutine there is a plain
call here. `calls` names them for editors and type checkers.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from strandline.base.waiting import within
from strandline.client.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from strandline.client.world import loop_thread

T = TypeVar("T")


async def result_within(timeout: float | None, work: Awaitable[T], otherwise: str) -> T:
    """The result of `work`, or KafkaTimeoutError after so many seconds; a timeout of its own is raised as it is."""
    try:
        return await within(timeout, work)
    except TimeoutError as error:
        if isinstance(error, KafkaError):
            raise
        raise KafkaTimeoutError(None, f"{otherwise} in {timeout} s") from None


class BlockingClient:
    """The base of the blocking clients: an asyncio client on the loop thread, whose methods block.

    It starts when it is created, so that errors of the settings and of the connection are raised there.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        """`make` creates the asyncio client; it is called on the loop thread."""
        self._thread = loop_thread()
        self._client = self._thread.call(make)
        self._thread.run(self._client.start())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, *arguments: Any, **keywords: Any) -> None:
        if self._thread.is_of_this_process:
            self._thread.run(self._client.close(*arguments, **keywords))

    def _check_process(self) -> None:
        if not self._thread.is_of_this_process:
            raise IllegalStateError(None, "the client was made before a fork", advice="make one in the child")

    if not TYPE_CHECKING:  # A checker knows the names from calls.pyi, and any other is a mistake.

        def __getattr__(self, name: str) -> Any:
            return self._blocking(name)

    def _blocking(self, name: str) -> Any:
        """The asyncio client's method or property of this name, made blocking."""
        if name.startswith("_"):
            raise AttributeError(name)
        self._check_process()
        attribute = getattr(type(self._client), name)
        if not callable(attribute):
            return self._thread.call(lambda: getattr(self._client, name))

        @wraps(attribute)
        def call(*arguments: Any, **keywords: Any) -> Any:
            self._check_process()
            method = getattr(self._client, name)
            if inspect.iscoroutinefunction(method):
                return self._thread.run(method(*arguments, **keywords))
            return self._thread.call(lambda: method(*arguments, **keywords))

        return call

    def __dir__(self) -> list[str]:
        return sorted(
            {*super().__dir__(), *(name for name in dir(type(self._client)) if not name.startswith("_"))}
        )
