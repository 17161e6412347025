"""The parts of a node that all of its connections share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from strandline.broker.node_context import NodeContext
from strandline.broker.quotas.client_quotas import ClientQuotas
from strandline.broker.server.connection_limits import ConnectionLimits, RequestMemory
from strandline.broker.server.pending_response import Handled
from strandline.broker.server.request_batching import RequestBatcher
from strandline.broker.server.request_context import RequestContext
from strandline.broker.tasks import TaskScope
from strandline.ports.clock import Clock
from strandline.telemetry.events import Events
from strandline.telemetry.request_metrics import RequestMetrics


class Dispatcher(Protocol):
    """The dispatch of requests to handlers: see `dispatch.Dispatch`."""

    flexible: frozenset[tuple[int, int]]  # keys and versions of requests whose headers have tagged fields

    def handle(self, context: RequestContext) -> Handled: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """The parts of a node that all of its connections share."""

    node: NodeContext
    clock: Clock
    events: Events
    connection_events: Events
    request_events: Events
    tasks: TaskScope
    requests: RequestMetrics
    dispatch: Dispatcher
    quotas: ClientQuotas
    batcher: RequestBatcher
    memory: RequestMemory
    limits: ConnectionLimits
    request_bytes_max: int
