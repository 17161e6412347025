"""Keeps clients in a Python process of Spark from task to task, so that a task does not begin with connecting.

A client is kept only after a task that ended well: after an error, or if Spark wants no more rows, it is closed. One
task uses it at a time, because such a process runs its tasks one after the other. Spark ends processes that are idle
for a minute, and their clients end with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

# The most clients in a cache: tasks of a process use that many settings, and so clusters, in turn. The client that is
# idle for longest is closed first.
_IDLE_CLIENTS_MAX: Final = 4


class ClientCache(Generic[T]):
    """Idle clients of one kind, by their settings."""

    def __init__(self, open_client: Callable[[Mapping[str, Any]], T], reset: Callable[[T], None]) -> None:
        """`open_client` opens a client, and `reset` prepares one for the next task."""
        self._open_client = open_client
        self._reset = reset
        self._idle: dict[tuple[tuple[str, str], ...], T] = {}

    @contextmanager
    def use(self, settings: Mapping[str, Any]) -> Iterator[T]:
        """Lends a client with these settings to one task, and keeps it if the task raises nothing."""
        key = tuple(sorted((name, repr(value)) for name, value in settings.items()))
        client: Any = self._idle.pop(key, None)
        if client is None:
            client = self._open_client(settings)
        try:
            yield client
            self._reset(client)
        except BaseException:
            client.close()
            raise
        self._idle[key] = client
        while len(self._idle) > _IDLE_CLIENTS_MAX:
            oldest: Any = self._idle.pop(next(iter(self._idle)))
            oldest.close()

    def close(self) -> None:
        """Closes every idle client."""
        while self._idle:
            client: Any = self._idle.popitem()[1]
            client.close()
