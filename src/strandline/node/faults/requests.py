"""Faults in requests: between a node's connections and its handlers.

1. `Dispatch.intercept` puts this between them with the first fault, and removes it after the last: without faults it
   costs nothing.
2. A request is struck by the first fault, in the order in which they were set, that matches it and is due. Later
   faults that match count it as seen. `effects.py` has the effect of each kind of fault.
3. Faults strike requests of clients. Those of other nodes are struck only by faults that say so.
4. A dropped request or response leaves its connection open and silent: TCP cannot lose one and deliver the next. The
   connection ends when the client gives it up, or when the fault is cleared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from strandline.broker.api.services import Services
from strandline.broker.server.dispatch import Dispatch
from strandline.broker.server.pending_response import Handled
from strandline.broker.server.request_context import RequestContext
from strandline.node.faults.effects import strike
from strandline.node.faults.request_fault import RequestFault
from strandline.node.faults.rule import FaultError, FaultRule
from strandline.node.faults.subject import (
    groups_of,
    message_class,
    names_every_topic,
    topics_of,
    transactions_of,
)
from strandline.wire.api.k01_fetch import FetchRequest
from strandline.wire.api_index import API_INDEX
from strandline.wire.codec import decode
from strandline.wire.schema import Request

# The client ids of nodes: see `broker/nodes.py` and those who use it.
_NODE_CLIENT: Final = re.compile(r"(replica|quorum|broker|transactions|lag)-\d+(-\d+)?|quorum-check")
_WRITE_TXN_MARKERS: Final = 27


class RequestFaults:
    def __init__(self, dispatch: Dispatch, services: Services) -> None:
        self._dispatch = dispatch
        self._services = services
        self._handle = dispatch.handle
        self._faults: dict[int, RequestFault] = {}
        self._ended: dict[int, RequestFault] = {}  # cleared ones, whose status a test may still ask for
        self._next_id = 1

    def add(self, rule: FaultRule) -> RequestFault:
        fault = RequestFault(self._next_id, rule)
        self._next_id += 1
        self._faults[fault.fault_id] = fault
        self._dispatch.intercept(self.handle)
        return fault

    def find(self, fault_id: int) -> RequestFault:
        found = self._faults.get(fault_id) or self._ended.get(fault_id)
        if found is None:
            raise FaultError(f"there is no fault {fault_id}")
        return found

    def all(self) -> list[RequestFault]:
        """Returns the faults that are set."""
        return list(self._faults.values())

    def release(self, fault_id: int) -> None:
        """Lets the requests at a barrier go on, and later ones pass."""
        fault = self.find(fault_id)
        fault.is_released = True
        held = list(fault.held.values())
        fault.held.clear()
        for go_on in held:
            go_on()

    def clear(self, fault_id: int) -> RequestFault:
        """Removes a fault. Requests that it holds go on, connections that it silenced end."""
        fault = self.find(fault_id)
        if not fault.is_cleared:
            fault.is_cleared = True
            del self._faults[fault_id]
            self._ended[fault_id] = fault
            self.release(fault_id)
            for connection in list(fault.silenced):
                connection.abort()
            if not self._faults:
                self._dispatch.intercept(None)
        return fault

    def clear_all(self) -> None:
        for fault_id in list(self._faults):
            self.clear(fault_id)

    # A request

    def handle(self, context: RequestContext) -> Handled:
        if any(context.connection in fault.silenced for fault in self._faults.values()):
            return None  # the client waits for an earlier response that never comes
        struck: RequestFault | None = None
        request = _Decoded(context)
        for fault in self._faults.values():
            if self._matches(fault.rule, context, request) and fault.is_due() and struck is None:
                struck = fault
        if struck is None:
            return self._handle(context)
        struck.struck(context)
        self._services.node.events.info(
            "a fault struck",
            fault=struck.fault_id,
            kind=struck.rule.kind,
            api=API_INDEX[context.api_key].name,
        )
        return strike(struck, context, self._handle, self._services)

    def _matches(self, rule: FaultRule, context: RequestContext, request: _Decoded) -> bool:
        if rule.api is not None and rule.api != context.api_key:
            return False
        if rule.version is not None and rule.version != context.api_version:
            return False
        if rule.client_id is not None and rule.client_id != context.client_id:
            return False
        if rule.connection is not None and rule.connection != context.connection.peer_address:
            return False
        if rule.from_nodes != _is_from_node(context, request):
            return False
        if rule.topic is not None or rule.partition is not None:
            partitions = self._partitions(context, request.message)
            if not any(_is_in(rule, topic, numbers) for topic, numbers in partitions):
                return False
        if rule.group is not None and rule.group not in groups_of(request.message):
            return False
        return rule.transactional_id is None or rule.transactional_id in transactions_of(request.message)

    def _partitions(
        self, context: RequestContext, message: Any
    ) -> Iterator[tuple[str | None, list[int] | None]]:
        name = self._services.node.topic_name
        if names_every_topic(message):
            yield None, None
        yield from topics_of(message, name)
        if isinstance(message, FetchRequest):
            for partition in self._services.fetch_sessions.partitions(message.session_id):
                yield partition.topic or name(partition.topic_id), [partition.index]


class _Decoded:
    """The message of a request, decoded once and only if it is asked for."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._message: Request | None = None

    @property
    def message(self) -> Any:
        if self._message is None:
            context = self._context
            cls = message_class(context.api_key)
            self._message = decode(cls, context.api_version, context.body, context.position)
        return self._message


def _is_in(rule: FaultRule, topic: str | None, partitions: list[int] | None) -> bool:
    if rule.topic is not None and topic not in (None, rule.topic):
        return False
    return rule.partition is None or partitions is None or rule.partition in partitions


def _is_from_node(context: RequestContext, request: _Decoded) -> bool:
    """True for a request of another node, or of this one to itself."""
    if context.connection.is_controller_listener or context.api_key == _WRITE_TXN_MARKERS:
        return True
    if context.api_key == FetchRequest.API_KEY:
        message = request.message
        state = message.replica_state
        replica_id: int = message.replica_id if state is None else state.replica_id
        return replica_id >= 0
    return _NODE_CLIENT.fullmatch(context.client_id or "") is not None
