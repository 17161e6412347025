"""The coordinators of groups and transactions: each is looked up once, and again after it says that it is not the
coordinator.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.client.errors import KafkaError, KafkaTimeoutError, error_for
from strandline.client.net.backoff import Backoff
from strandline.client.net.connections import ConnectionPool, Node, NodeConnection
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

GROUP: Final = 0
TRANSACTION: Final = 1
_NAMES: Final = {GROUP: "group", TRANSACTION: "transactional.id"}
# From this version on a request is for several keys.
_BATCHED_KEYS_SINCE: Final = 4
# Heartbeats and commits must not wait for a long fetch from the same broker.
PURPOSE: Final = "coordinator"

# Errors after which the coordinator must be looked up again.
COORDINATOR_MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})

logger = logging.getLogger("strandline.client.coordinators")


class Coordinators:
    """The coordinators of one client's groups and transactional ids, by key."""

    def __init__(
        self,
        connections: ConnectionPool,
        least_loaded_connection: Callable[[], Awaitable[NodeConnection]],
        backoff: Callable[[], Backoff],
        now: Callable[[], float],
    ) -> None:
        """`least_loaded_connection` opens a connection to the broker to ask; `now` is the monotonic clock."""
        self._connections = connections
        self._least_loaded_connection = least_loaded_connection
        self._backoff = backoff
        self._now = now
        self._nodes: dict[tuple[int, str], Node] = {}
        self._last: dict[tuple[int, str], Node] = {}  # also of those that are forgotten: to tell of a move

    def known(self, kind: int, key: str) -> Node | None:
        """Returns the coordinator of a key, if it was looked up and not forgotten."""
        return self._nodes.get((kind, key))

    def forget(self, kind: int, key: str) -> None:
        """Has the coordinator looked up again: it has moved, or cannot be reached."""
        self._nodes.pop((kind, key), None)

    async def connection(self, kind: int, key: str, deadline: float) -> NodeConnection:
        """Returns an open connection to the coordinator of a group (GROUP) or transactional id (TRANSACTION). Looks it
        up until the deadline, by the monotonic clock; then raises the error that prevented it."""
        pause = self._backoff()
        while True:
            try:
                node = self._nodes.get((kind, key)) or await self._find_coordinator(kind, key)
                connection = self._connections.to(node, PURPOSE)
                await connection.open()
                return connection
            except KafkaError as error:
                self.forget(kind, key)
                if not error.retriable:
                    raise
                wait = pause.failed()
                if self._now() + wait >= deadline:
                    raise KafkaTimeoutError(
                        None, f"the coordinator of {_NAMES[kind]} {key} was not found in time: {error}"
                    ) from error
                await asyncio.sleep(wait)

    async def _find_coordinator(self, kind: int, key: str) -> Node:
        connection = await self._least_loaded_connection()
        version = connection.version(FindCoordinatorRequest)
        if version >= _BATCHED_KEYS_SINCE:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
        else:
            request = FindCoordinatorRequest(key=key, key_type=kind)
        response = await connection.call(request, FindCoordinatorResponse, version=version)
        coordinator = response.coordinators[0] if version >= _BATCHED_KEYS_SINCE else response
        if coordinator.error_code != ErrorCode.NONE:
            raise error_for(coordinator.error_code, coordinator.error_message or f"{_NAMES[kind]} {key}")
        node = self._nodes[kind, key] = Node(coordinator.node_id, coordinator.host, coordinator.port)
        before = self._last.get((kind, key))
        if node != before:
            how = "is" if before is None else "has moved to"
            logger.info("the coordinator of %s %s %s %s", _NAMES[kind], key, how, node)
            self._last[kind, key] = node
        return node
