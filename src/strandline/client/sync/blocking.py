"""Blocking clients: each call runs on the loop thread while the calling thread waits for it.

The methods are those of the asyncio classes, with their arguments, results and errors; a coroutine there is a plain
call here. `calls_of` puts them into the blocking class; `calls.pyi` names them for editors and type checkers.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from strandline.base.waiting import within
from strandline.client.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from strandline.client.world import loop_thread

T = TypeVar("T")
B = TypeVar("B", bound="BlockingClient")

# The blocking client starts when it is made; the others return something that only a coroutine can wait for.
_LEFT_OUT: Final = ("start", "append_batch", "send_nowait")


async def result_within(timeout: float | None, work: Awaitable[T], otherwise: str) -> T:
    """Returns the result of `work`, or raises KafkaTimeoutError after so many seconds. A timeout of the work itself is
    raised as it is."""
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
        """Closes the client, as the asyncio one does; it may be called again."""
        if self._thread.is_of_this_process:
            self._thread.run(self._client.close(*arguments, **keywords))

    if not TYPE_CHECKING:  # A checker knows the names from calls.pyi, and any other is a mistake.

        def __getattr__(self, name: str) -> Any:
            """Returns a call of an asyncio client whose class is made at run time, as Spark's source makes one."""
            if name.startswith("_"):
                raise AttributeError(name)
            return _blocking(name, inspect.getattr_static(type(self._client), name)).__get__(self)

    def _attribute(self, name: str) -> Any:
        """Returns an attribute of the asyncio client, read on its loop."""
        self._check_process()
        return self._thread.call(lambda: getattr(self._client, name))

    def _check_process(self) -> None:
        if not self._thread.is_of_this_process:
            raise IllegalStateError(None, "the client was made before a fork", advice="make one in the child")


def calls_of(client: type) -> Callable[[type[B]], type[B]]:
    """Returns a decorator for a blocking class. The class gets the public methods and properties of the asyncio class
    that it does not define itself, made blocking, with their names, signatures and docstrings."""

    def decorate(blocking: type[B]) -> type[B]:
        for name in dir(client):
            if not name.startswith("_") and name not in _LEFT_OUT and not hasattr(blocking, name):
                setattr(blocking, name, _blocking(name, inspect.getattr_static(client, name)))
        return blocking

    return decorate


def _blocking(name: str, attribute: Any) -> Any:
    if isinstance(attribute, property):
        return property(lambda self: self._attribute(name), doc=attribute.__doc__)

    @wraps(attribute)
    def call(self: BlockingClient, *arguments: Any, **keywords: Any) -> Any:
        self._check_process()
        method = getattr(self._client, name)
        if is_coroutine:
            return self._thread.run(method(*arguments, **keywords))
        return self._thread.call(lambda: method(*arguments, **keywords))

    is_coroutine = inspect.iscoroutinefunction(attribute)
    return call
