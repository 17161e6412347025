"""Where the coordinators of groups and transactions are: asked once, remembered until one says that it is not it."""

from __future__ import annotations

import asyncio
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
# From version 4 on a request asks for several keys at once.
_BATCHED_KEYS_SINCE: Final = 4
# Heartbeats and commits must not wait behind a long fetch from the same broker.
PURPOSE: Final = "coordinator"

# A coordinator's answers after which it must be looked for again.
COORDINATOR_MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class Coordinators:
    """The coordinators of one client's groups and transactional ids, each found once and kept until it moves."""

    def __init__(
        self,
        connections: ConnectionPool,
        least_loaded_connection: Callable[[], Awaitable[NodeConnection]],
        backoff: Callable[[], Backoff],
        now: Callable[[], float],
    ) -> None:
        """`any_connection` opens a connection to a broker that can be asked; `now` is the monotonic clock."""
        self._connections = connections
        self._least_loaded_connection = least_loaded_connection
        self._backoff = backoff
        self._now = now
        self._nodes: dict[tuple[int, str], Node] = {}

    def known(self, kind: int, key: str) -> Node | None:
        return self._nodes.get((kind, key))

    def forget(self, kind: int, key: str) -> None:
        """The coordinator has moved, or cannot be reached."""
        self._nodes.pop((kind, key), None)

    async def connection(self, kind: int, key: str, deadline: float) -> NodeConnection:
        """An open connection to the coordinator of a group (GROUP) or transactional id (TRANSACTION).

        Looks for it until the deadline, by the monotonic clock; raises what kept it from being found.
        """
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
        return node
