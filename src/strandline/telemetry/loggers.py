"""The loggers of a node, by name. Each line of the log belongs to one of them; Kafka's tools show and change their
levels."""

from __future__ import annotations

from typing import Final

from strandline.telemetry.events import Events

CONNECTIONS: Final = "strandline.connections"
REQUESTS: Final = "strandline.requests"
RECORDS: Final = "strandline.records"
GROUPS: Final = "strandline.groups"
TRANSACTIONS: Final = "strandline.transactions"
CONTROLLER: Final = "strandline.controller"
# The audit log, of which no line is left out.
AUTHORIZER: Final = "strandline.authorizer"
# The loggers whose events clients can cause as often as they like: they are limited.
_LIMITED: Final = (CONNECTIONS, REQUESTS, RECORDS, GROUPS, TRANSACTIONS)


def make_loggers(events: Events) -> None:
    """Makes all loggers, so that they are listed and can be set before their first event."""
    for name in (*_LIMITED, CONTROLLER, AUTHORIZER):
        events.named(name, is_limited=name in _LIMITED)
