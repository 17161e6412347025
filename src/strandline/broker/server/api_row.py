"""One row of the table of APIs: listeners, authorization and handling.

Versions and flexibility are those of the wire class; a row differs only if the broker supports fewer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.broker.authorization.requirement import Requirement
from strandline.wire.api_index import API_INDEX

BROKER: Final = "broker"
CONTROLLER: Final = "controller"
BOTH: Final = "both"


class ApiRow(NamedTuple):
    key: int
    name: str
    module: str  # the module of the handler, and of the wire class
    version_min: int
    version_max: int
    flexible_from: int  # version_max + 1 if no version is flexible
    listener: str  # the listeners that serve it: broker, controller or both
    # True if the active controller decides; a broker forwards the request in an Envelope (KIP-590).
    is_decided_by_controller: bool
    # True if the request's own timeout_ms limits how long a broker waits for the controller, as in Kafka.
    is_limited_by_timeout_ms: bool
    authorization: Requirement  # checked if there is an authorizer

    def is_served_on(self, *, controller_listener: bool) -> bool:
        return self.listener == BOTH or (self.listener == CONTROLLER) == controller_listener


def row(
    key: int,
    listener: str = BROKER,
    *,
    access: Requirement,
    controller: bool = False,
    timeout_ms: bool = False,
    version_max: int | None = None,
) -> ApiRow:
    """Returns a row of the table; the defaults are those of the wire class."""
    known = API_INDEX[key]
    highest = known.version_max if version_max is None else version_max
    return ApiRow(
        key,
        known.name,
        known.module,
        known.version_min,
        highest,
        min(known.flexible_from, highest + 1),
        listener,
        controller,
        timeout_ms,
        access,
    )
