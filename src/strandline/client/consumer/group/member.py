"""The membership of a consumer in a group, as both group protocols implement it, and the requests to its
coordinator.

`poll` is called by the consumer's poll, and there alone partitions are assigned and revoked, so that an application
never loses a partition while it works on the records of a poll. Heartbeats run in the background.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol, TypeVar

from strandline.client.consumer.committed_offsets import CommitIdentity, NotAMember
from strandline.client.errors import ConnectionFailedError, KafkaError, KafkaTimeoutError
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.coordinators import COORDINATOR_MOVED, GROUP
from strandline.wire.schema import Request, Response

R = TypeVar("R", bound=Response)

logger = logging.getLogger("strandline.client.group")

# Joins wait at the coordinator for as long as the group takes; commits must not wait for them.
PURPOSE: Final = "membership"

CommitBeforeRevocation = Callable[[float], Awaitable[None]]


class GroupMetadata(NamedTuple):
    """A member of a group, as transactions name it."""

    group_id: str
    generation_id: int = -1  # or the member's epoch
    member_id: str = ""
    group_instance_id: str | None = None


class GroupMembership(Protocol):
    """The membership in a group, in one of the two protocols."""

    wake: Callable[[], None]

    @property
    def is_settled(self) -> bool:
        """True if `poll` has nothing to do."""
        ...

    @property
    def identity(self) -> CommitIdentity | NotAMember:
        """The identity under which offsets are committed."""
        ...

    @property
    def last_identity(self) -> CommitIdentity:
        """The identity of the member now or, if it is none, when it last was one; nobody before it first joined.
        Transactions name it, so that the coordinator can refuse those of a member that it has removed."""
        ...

    async def poll(self, deadline: float) -> None:
        """Joins, and applies the decisions of the group, as far as that goes before the deadline."""
        ...

    def subscription_changed(self) -> None: ...

    def metadata_changed(self) -> None: ...

    def enforce_rebalance(self, reason: str) -> None: ...

    async def leave(self, deadline: float, reason: str) -> None:
        """Gives all partitions up, leaves the group, and stops the heartbeats."""
        ...


class GroupCoordinatorClient:
    """Requests to the group's coordinator, which is looked up again when it has moved."""

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
        """Returns the response to one attempt; the deadline is for finding the coordinator, `seconds` for its
        response."""
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
        """Drops the connection with its requests in flight: a leave must not wait for a join."""
        node = self._cluster.coordinators.known(GROUP, self.group_id)
        if node is not None:
            self._cluster.connections.to(node, PURPOSE).drop()

    def log_not_polling(self) -> None:
        logger.warning(
            "group %s: the application did not poll within max.poll.interval.ms (%d ms): the member leaves",
            self.group_id,
            self._cluster.config.int("max.poll.interval.ms"),
        )

    def log_heartbeat_failed(self, error: Exception) -> None:
        """Logs a failure of the network at info, and anything else, which is a flaw, with its traceback."""
        if isinstance(error, KafkaError):
            logger.info("group %s: a heartbeat failed: %s", self.group_id, error)
        else:
            logger.error("group %s: a heartbeat failed", self.group_id, exc_info=error)

    def forget_if_moved(self, code: int) -> bool:
        """Returns True if this code says that another broker is the coordinator; it is looked up again then."""
        if code in COORDINATOR_MOVED:
            self._cluster.coordinators.forget(GROUP, self.group_id)
            return True
        return False
