"""A fault in requests that is set: how often it is due, and what it has struck."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final
from weakref import WeakSet

from strandline.broker.server.connection import ClientConnection
from strandline.broker.server.request_context import RequestContext
from strandline.node.faults.rule import FaultRule
from strandline.wire.api_index import API_INDEX

_STRIKES_MAX: Final = 100  # that are remembered of each fault


class RequestFault:
    """A fault that is set, and what it has done so far."""

    def __init__(self, fault_id: int, rule: FaultRule) -> None:
        self.fault_id = fault_id
        self.rule = rule
        self.seen = 0  # requests that matched
        self.fired = 0
        self.held: dict[
            int, Callable[[], object]
        ] = {}  # requests at a barrier, by number: what lets each go on
        self.is_released = False
        self.is_cleared = False
        self.strikes: list[dict[str, Any]] = []
        self.silenced: WeakSet[ClientConnection] = WeakSet()
        self._chance = Random(rule.seed)

    def is_due(self) -> bool:
        """Counts a request that matches; returns True if it is struck."""
        rule = self.rule
        self.seen += 1
        if self.is_released or self.seen < rule.nth:
            return False
        if rule.times is not None and self.fired >= rule.times:
            return False
        return rule.probability >= 1 or self._chance.random() < rule.probability

    def struck(self, context: RequestContext) -> None:
        self.fired += 1
        if len(self.strikes) < _STRIKES_MAX:
            self.strikes.append(
                {
                    "api": API_INDEX[context.api_key].name,
                    "version": context.api_version,
                    "client_id": context.client_id,
                    "connection": context.connection.peer_address,
                }
            )

    def status(self) -> dict[str, Any]:
        return {
            "id": self.fault_id,
            "kind": self.rule.kind,
            "seen": self.seen,
            "fired": self.fired,
            "held": len(self.held),
            "cleared": self.is_cleared,
            "strikes": self.strikes,
        }
