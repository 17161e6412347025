"""What both group protocols share: the coordinator's ear, the application's listener, and the form of a member.

A member is a `Member`: `poll` is called by the consumer's poll, and there alone partitions change hands, so that an
application is never deprived of a partition while it works on what a poll gave it. Heartbeats run in the background.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from strandline.base.ids import TopicPartition
from strandline.base.waiting import within
from strandline.client.consumer.committed_offsets import Membership, NoMember
from strandline.client.consumer.subscription import Subscription
from strandline.client.errors import ConnectionFailedError, KafkaTimeoutError
from strandline.client.net.cluster import Cluster
from strandline.client.net.coordinators import GROUP, MOVED
from strandline.wire.schema import Request, Response

R = TypeVar("R", bound=Response)

# Joins wait on the coordinator for as long as the group takes; commits must not wait behind them.
PURPOSE: Final = "membership"

CommitBeforeRevocation = Callable[[float], Awaitable[None]]


class GroupMetadata(NamedTuple):
    """A member of a group, as transactions name it."""

    group_id: str
    generation_id: int = -1  # or the member's epoch
    member_id: str = ""
    group_instance_id: str | None = None


class RebalanceListener:
    """Told when partitions come and go; methods may be coroutines. Derive from it, and override what is needed."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """These are new; positions can be set with seek."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """These are about to go to others: the last moment to commit."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """These have gone already, to others perhaps: a commit would fail. By default as if revoked."""
        return self.on_partitions_revoked(partitions)


class Member(Protocol):
    wake: Callable[[], None]

    @property
    def is_settled(self) -> bool:
        """Whether `poll` has nothing to do."""
        ...

    @property
    def identity(self) -> Membership | NoMember:
        """As what offsets are committed."""
        ...

    @property
    def last_identity(self) -> Membership:
        """As what it is, or last was, a member; nobody before it first joined. It is what transactions name: the
        coordinator must be able to refuse those of a member that it has thrown out."""
        ...

    async def poll(self, deadline: float) -> None:
        """Joins, and takes in what the group decided, as far as that goes before the deadline."""
        ...

    def subscription_changed(self) -> None: ...

    def metadata_changed(self) -> None: ...

    def enforce_rebalance(self, reason: str) -> None: ...

    async def leave(self, deadline: float, reason: str) -> None:
        """Gives all partitions up, tells the coordinator, and stops the heartbeats."""
        ...


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


class GroupLink:
    """Requests to the group's coordinator, which is looked for again when it has moved."""

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self._cluster = cluster
        self.group_id = group_id

    async def call(
        self,
        request: Request,
        cls: type[R],
        deadline: float,
        *,
        seconds: float | None = None,
        at_most: int | None = None,
    ) -> R:
        """One attempt; the deadline is for finding the coordinator, `seconds` for its answer."""
        found = await self._cluster.coordinators.connection(GROUP, self.group_id, deadline)
        connection = self._cluster.connections.to(found.node, PURPOSE)
        try:
            await connection.open()
            version = connection.version(type(request), at_most=at_most)
            return await connection.call(request, cls, version=version, seconds=seconds)
        except (ConnectionFailedError, KafkaTimeoutError):
            self._cluster.coordinators.forget(GROUP, self.group_id)
            raise

    def drop(self) -> None:
        """Gives the connection up, and with it what waits there: a leave must not wait behind a join."""
        node = self._cluster.coordinators.known(GROUP, self.group_id)
        if node is not None:
            self._cluster.connections.to(node, PURPOSE).drop()

    def moved(self, code: int) -> bool:
        """Whether this code says that another broker is the coordinator; it is looked for anew then."""
        if code in MOVED:
            self._cluster.coordinators.forget(GROUP, self.group_id)
            return True
        return False


class Ongoing:
    """Work that goes on between polls: a poll waits for it as long as it may, the next one goes on waiting."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def is_started(self) -> bool:
        """Whether there is a result to come, or to be taken."""
        return self._task is not None

    def start(self, work: Callable[[], Any], then: Callable[[], None] = lambda: None) -> None:
        """`then` is called when it has ended."""
        assert self._task is None
        self._task = asyncio.get_running_loop().create_task(work())
        # Its error is raised by the poll that takes the result; if none comes any more nobody misses it.
        self._task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._task.add_done_callback(lambda _done: then())

    async def wait(self, seconds: float) -> bool:
        """Whether there is a result to be taken: not if it takes longer, nor if it was called off meanwhile."""
        task = self._task
        assert task is not None
        if not task.done():
            try:
                await within(max(0.0, seconds), asyncio.shield(task))
            except TimeoutError:
                if not task.done():
                    return False  # It is the waiting that took too long.
            except asyncio.CancelledError:
                waiting = asyncio.current_task()
                if not task.cancelled() or (waiting is not None and waiting.cancelling()):
                    raise  # It is the waiting that was cancelled.
            except Exception:
                assert task.done(), "only the work itself raises here, and `result` raises it again"
        return self._task is task

    def result(self) -> Any:
        """The result or error; the next piece of work can start then."""
        task, self._task = self._task, None
        assert task is not None
        return task.result()

    async def cancel(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            try:
                await task
            except (asyncio.CancelledError, Exception):
                return
