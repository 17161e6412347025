"""What both group protocols share: the coordinator's ear, the application's listener, and the form of a member.

A member is a `Member`: `poll` is called by the consumer's poll, and there alone partitions change hands, so that an
application is never deprived of a partition while it works on what a poll gave it. Heartbeats run in the background.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol, TypeVar

from strandline.client.consumer.committed_offsets import CommitIdentity, NotAMember
from strandline.client.errors import ConnectionFailedError, KafkaTimeoutError
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.coordinators import COORDINATOR_MOVED, GROUP
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


class GroupMembership(Protocol):
    wake: Callable[[], None]

    @property
    def is_settled(self) -> bool:
        """Whether `poll` has nothing to do."""
        ...

    @property
    def identity(self) -> CommitIdentity | NotAMember:
        """As what offsets are committed."""
        ...

    @property
    def last_identity(self) -> CommitIdentity:
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


class GroupCoordinatorClient:
    """Requests to the group's coordinator, which is looked for again when it has moved."""

    def __init__(self, cluster: ClusterClient, group_id: str) -> None:
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
        coordinator = await self._cluster.coordinators.connection(GROUP, self.group_id, deadline)
        connection = self._cluster.connections.to(coordinator.node, PURPOSE)
        try:
            await connection.open()
            version = connection.version(type(request), at_most=at_most)
            return await connection.call(request, cls, version=version, seconds=seconds)
        except (ConnectionFailedError, KafkaTimeoutError):
            self._cluster.coordinators.forget(GROUP, self.group_id)
            raise

    def drop_connection(self) -> None:
        """Gives the connection up, and with it what waits there: a leave must not wait behind a join."""
        node = self._cluster.coordinators.known(GROUP, self.group_id)
        if node is not None:
            self._cluster.connections.to(node, PURPOSE).drop()

    def forget_if_moved(self, code: int) -> bool:
        """Whether this code says that another broker is the coordinator; it is looked for anew then."""
        if code in COORDINATOR_MOVED:
            self._cluster.coordinators.forget(GROUP, self.group_id)
            return True
        return False
