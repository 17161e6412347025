"""Clients that a Python process of Spark keeps from task to task, so that a task does not begin with connecting.

A client is kept only behind a task that came to its end: after an error, or if Spark wants no more rows, it is closed.
It is used by one task at a time, because such a process runs one after the other. Spark ends processes that are idle
for a minute, and what they keep with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

# Settings, and so clusters, that the tasks of a process use in turn; with more of them the longest unused goes.
_KEPT_MAX: Final = 4


class Kept(Generic[T]):
    """Clients of one kind by their settings. `make` opens one, and `rest` prepares it for the next task."""

    def __init__(self, make: Callable[[Mapping[str, Any]], T], rest: Callable[[T], None]) -> None:
        self._make = make
        self._rest = rest
        self._idle: dict[tuple[tuple[str, str], ...], T] = {}

    @contextmanager
    def use(self, settings: Mapping[str, Any]) -> Iterator[T]:
        key = tuple(sorted((name, repr(value)) for name, value in settings.items()))
        client: Any = self._idle.pop(key, None)
        if client is None:
            client = self._make(settings)
        try:
            yield client
            self._rest(client)
        except BaseException:
            client.close()
            raise
        self._idle[key] = client
        while len(self._idle) > _KEPT_MAX:
            oldest: Any = self._idle.pop(next(iter(self._idle)))
            oldest.close()

    def close(self) -> None:
        while self._idle:
            client: Any = self._idle.popitem()[1]
            client.close()
