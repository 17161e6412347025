"""Calls of the application's rebalance listener, one after the other and each to its end."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from strandline.base.ids import TopicPartition
from strandline.client.consumer.subscription import SubscriptionState


class RebalanceListener:
    """Told when partitions come and go; methods may be coroutines. Derive from it, and override what is needed."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """These are new; positions can be set with seek."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """These are about to go to others: the last moment to commit."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """These have gone already, to others perhaps: a commit would fail. By default as if revoked."""
        return self.on_partitions_revoked(partitions)


async def invoke_listener(listener: Any, method: str, partitions: Iterable[TopicPartition]) -> None:
    """Calls the listener, if there is one; waits for it if it is a coroutine."""
    callback = getattr(listener, method, None)
    if callback is None and method == "on_partitions_lost":
        callback = getattr(listener, "on_partitions_revoked", None)
    if callback is None:
        return
    result = callback(sorted(partitions))
    if inspect.isawaitable(result):
        await result


class RebalanceCallbacks:
    """What a member tells the application's listener.

    A listener that raises does not stop the rebalance, or others would wait for partitions that nobody reads: its first
    error is kept and raised when the rebalance has gone on, as Java's consumer does. A call that was cancelled together
    with its poll has not been heard to the end: it is made again by the next poll.
    """

    def __init__(self, subscription: SubscriptionState) -> None:
        self._subscription = subscription
        self._pending: list[tuple[str, list[TopicPartition]]] = []
        self._error: Exception | None = None

    @property
    def are_pending(self) -> bool:
        return bool(self._pending) or self._error is not None

    async def invoke(self, method: str, partitions: list[TopicPartition]) -> None:
        """Before something is done that the caller repeats as a whole if it is cancelled."""
        try:
            await invoke_listener(self._subscription.listener, method, partitions)
        except Exception as error:
            self._error = self._error or error

    async def invoke_on_leave(
        self, commit: Callable[[float], Awaitable[None]], deadline: float, *, is_lost: bool
    ) -> None:
        """All partitions go with the membership: what was read of them is committed first, unless they are lost."""
        self.clear()
        owned = list(self._subscription.partitions)
        if owned and not is_lost:
            await commit(deadline)
        if owned:
            await self.invoke("on_partitions_lost" if is_lost else "on_partitions_revoked", owned)

    def enqueue(self, method: str, partitions: list[TopicPartition]) -> None:
        """After something was done: to be told by `tell_rest`, which the next poll repeats if it is cancelled."""
        self._pending.append((method, partitions))

    async def invoke_pending(self) -> None:
        while self._pending:
            first = self._pending[0]
            await self.invoke(*first)
            if self._pending and self._pending[0] is first:  # `clear` may have come first.
                del self._pending[0]

    def clear(self) -> None:
        self._pending.clear()

    def raise_error(self) -> None:
        """What a listener has raised since this was last called."""
        error, self._error = self._error, None
        if error is not None:
            raise error
