"""Calls of the application's rebalance listener, one after the other and each to its end."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from strandline.base.ids import TopicPartition
from strandline.client.consumer.subscription import Subscription


class RebalanceListener:
    """Told when partitions come and go; methods may be coroutines. Derive from it, and override what is needed."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """These are new; positions can be set with seek."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """These are about to go to others: the last moment to commit."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """These have gone already, to others perhaps: a commit would fail. By default as if revoked."""
        return self.on_partitions_revoked(partitions)


async def tell(listener: Any, method: str, partitions: Iterable[TopicPartition]) -> None:
    """Calls the listener, if there is one; waits for it if it is a coroutine."""
    act = getattr(listener, method, None)
    if act is None and method == "on_partitions_lost":
        act = getattr(listener, "on_partitions_revoked", None)
    if act is None:
        return
    result = act(sorted(partitions))
    if inspect.isawaitable(result):
        await result


class Announcements:
    """What a member tells the application's listener.

    A listener that raises does not stop the rebalance, or others would wait for partitions that nobody reads: its first
    error is kept and raised when the rebalance has gone on, as Java's consumer does. A call that was cancelled together
    with its poll has not been heard to the end: it is made again by the next poll.
    """

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._untold: list[tuple[str, list[TopicPartition]]] = []
        self._error: Exception | None = None

    @property
    def are_due(self) -> bool:
        return bool(self._untold) or self._error is not None

    async def tell(self, method: str, partitions: list[TopicPartition]) -> None:
        """Before something is done that the caller repeats as a whole if it is cancelled."""
        try:
            await tell(self._subscription.listener, method, partitions)
        except Exception as error:
            self._error = self._error or error

    async def tell_of_leaving(
        self, commit: Callable[[float], Awaitable[None]], deadline: float, *, is_lost: bool
    ) -> None:
        """All partitions go with the membership: what was read of them is committed first, unless they are lost."""
        self.clear()
        owned = list(self._subscription.partitions)
        if owned and not is_lost:
            await commit(deadline)
        if owned:
            await self.tell("on_partitions_lost" if is_lost else "on_partitions_revoked", owned)

    def add(self, method: str, partitions: list[TopicPartition]) -> None:
        """After something was done: to be told by `tell_rest`, which the next poll repeats if it is cancelled."""
        self._untold.append((method, partitions))

    async def tell_rest(self) -> None:
        while self._untold:
            first = self._untold[0]
            await self.tell(*first)
            if self._untold and self._untold[0] is first:  # `clear` may have come first.
                del self._untold[0]

    def clear(self) -> None:
        self._untold.clear()

    def raise_error(self) -> None:
        """What a listener has raised since this was last called."""
        error, self._error = self._error, None
        if error is not None:
            raise error
