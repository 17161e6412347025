"""The calls of the application's rebalance listener."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.consumer.subscription import SubscriptionState

_METHODS: Final = ("on_partitions_assigned", "on_partitions_revoked", "on_partitions_lost")

logger = logging.getLogger("strandline.client.group")


class RebalanceListener:
    """A listener that is called when partitions are assigned and revoked.

    Derive from it, and override the methods that are needed; they may be coroutines.
    """

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """Is called after these partitions were assigned; positions can be set with seek."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """Is called before these partitions go to others: it is the last moment to commit."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """Is called when these partitions are gone already, perhaps to others: a commit would fail. By default it does
        the same as `on_partitions_revoked`."""
        return self.on_partitions_revoked(partitions)


def check_listener(listener: Any) -> None:
    """Raises TypeError if a listener has none of the methods that are called: it would never hear of anything."""
    if listener is None or any(callable(getattr(listener, name, None)) for name in _METHODS):
        return
    others = [name for name in dir(listener) if name.startswith("on_")]
    has = f"; it has {', '.join(others)}" if others else ""
    raise TypeError(f"a rebalance listener has {', '.join(_METHODS)}, and this one has none of them{has}")


async def invoke_listener(listener: Any, method: str, partitions: Iterable[TopicPartition]) -> None:
    """Calls a method of the listener, if it has it; waits for it if it is a coroutine."""
    callback = getattr(listener, method, None)
    if callback is None and method == "on_partitions_lost":
        callback = getattr(listener, "on_partitions_revoked", None)
    if callback is None:
        return
    result = callback(sorted(partitions))
    if inspect.isawaitable(result):
        await result


class RebalanceCallbacks:
    """The calls that a member makes to the listener of the application.

    A listener that raises does not stop the rebalance, or others would wait for partitions that nobody reads: its
    first error is kept and raised when the rebalance has gone on, as Java's consumer does. A call that was
    cancelled together with its poll is not complete: the next poll makes it again.
    """

    def __init__(self, subscription: SubscriptionState, group_id: str) -> None:
        self._subscription = subscription
        self._group_id = group_id
        self._pending: list[tuple[str, list[TopicPartition]]] = []
        self._error: Exception | None = None

    @property
    def are_pending(self) -> bool:
        return bool(self._pending) or self._error is not None

    async def invoke(self, method: str, partitions: list[TopicPartition]) -> None:
        """Calls the listener now, before a step that the caller repeats as a whole if it is cancelled."""
        if partitions:
            level = logging.WARNING if method == "on_partitions_lost" else logging.INFO
            names = ", ".join(map(str, sorted(partitions)))
            logger.log(level, "group %s: partitions %s: %s", self._group_id, method.rpartition("_")[2], names)
        try:
            await invoke_listener(self._subscription.listener, method, partitions)
        except Exception as error:
            self._error = self._error or error

    async def invoke_on_leave(
        self, commit: Callable[[float], Awaitable[None]], deadline: float, *, is_lost: bool
    ) -> None:
        """Calls the listener for all partitions, which go with the membership. Their positions are committed first,
        unless they are lost."""
        self.clear()
        owned = list(self._subscription.partitions)
        if owned and not is_lost:
            await commit(deadline)
        if owned:
            await self.invoke("on_partitions_lost" if is_lost else "on_partitions_revoked", owned)

    def enqueue(self, method: str, partitions: list[TopicPartition]) -> None:
        """Adds a call after a step that was done; `invoke_pending` makes it, and the next poll again if that is
        cancelled."""
        self._pending.append((method, partitions))

    async def invoke_pending(self) -> None:
        """Makes the calls that were enqueued."""
        while self._pending:
            first = self._pending[0]
            await self.invoke(*first)
            if self._pending and self._pending[0] is first:  # `clear` may have come first.
                del self._pending[0]

    def clear(self) -> None:
        self._pending.clear()

    def raise_error(self) -> None:
        """Raises the first error of the listener since this was last called."""
        error, self._error = self._error, None
        if error is not None:
            raise error
