"""One row of the table of APIs: who may ask for it where, and how it is handled.

Versions and flexibility are those of the wire class; a row says otherwise only where the broker knows fewer.
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
    module: str  # of the handler, and of the wire class
    version_min: int
    version_max: int
    flexible_from: int  # version_max + 1 where no version is
    listener: str  # which listeners serve it: broker, controller or both
    # The active controller decides; a broker that is asked forwards the request in an Envelope (KIP-590).
    is_decided_by_controller: bool
    # The request's own timeout_ms limits how long a broker waits for the controller, as in Kafka.
    is_limited_by_timeout_ms: bool
    authorization: Requirement  # what somebody must be allowed to do, where there is an authorizer

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
    """A row of the table; everything that is not given is the wire class's."""
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
