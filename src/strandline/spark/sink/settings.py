"""Settings of the producer that writes in transactions: which are the user's, and which the sink's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from strandline.client.config.config import ClientConfig
from strandline.spark.options import REFUSED_WHEN_WRITING, OptionError

_OWN: Final = {
    **REFUSED_WHEN_WRITING,
    "transactional.id": "the sink has one of its own; in Python it is the argument name",
    "transaction.timeout.ms": "use the argument transaction_timeout_ms",
    "partitioner.class": "rows are placed by their keys; give them a column partition instead",
    "partitioner.ignore.keys": "rows are placed by their keys; give them a column partition instead",
}
# What a transaction needs. To say it again does no harm.
_NEEDED: Final = {"enable.idempotence": ("true",), "acks": ("all", "-1")}


def why_sink_owns(name: str, value: Any) -> str | None:
    """Why a setting cannot have this value in a sink that writes in transactions; None if it can."""
    needed = _NEEDED.get(name)
    if needed is not None and str(value).strip().lower() not in needed:
        return f"a transaction needs {name}={needed[0]}, and not {value}: leave it out"
    return _OWN.get(name)


def sink_settings(bootstrap_servers: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The producer's settings; raises OptionError where one of the given cannot stand."""
    settings = dict(given or {})
    for name, value in settings.items():
        why = why_sink_owns(name, value)
        if name == "bootstrap.servers" and value != bootstrap_servers:
            why = f"it is the argument bootstrap_servers, which is {bootstrap_servers}"
        if why is not None:
            raise OptionError(f"{name} cannot be set in settings: {why}")
    settings["bootstrap.servers"] = bootstrap_servers
    check_in_transaction(settings)
    return settings


def check_in_transaction(settings: Mapping[str, Any]) -> None:
    """Raises ConfigError where settings contradict what a producer needs that writes in transactions."""
    ClientConfig.producer({**settings, "transactional.id": "any"})
