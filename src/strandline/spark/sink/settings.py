"""Settings of the producer that writes in transactions: which of them are the user's, and which the sink's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from strandline.client.config.config import ClientConfig
from strandline.spark.options import REFUSED_WHEN_WRITING, OptionError

_REFUSED: Final = {
    **REFUSED_WHEN_WRITING,
    "transactional.id": "the sink has one of its own; in Python it is the argument name",
    "transaction.timeout.ms": "use the argument transaction_timeout_ms",
    "partitioner.class": "rows are partitioned by their keys; give them a column partition instead",
    "partitioner.ignore.keys": "rows are partitioned by their keys; give them a column partition instead",
}
# Values that a transaction requires; the user may repeat them.
_REQUIRED: Final = {"enable.idempotence": ("true",), "acks": ("all", "-1")}


def why_sink_refuses(name: str, value: Any) -> str | None:
    """Returns why a setting cannot have this value in a sink that writes in transactions; None if it can."""
    required = _REQUIRED.get(name)
    if required is not None and str(value).strip().lower() not in required:
        return f"a transaction needs {name}={required[0]}, and not {value}: leave it out"
    return _REFUSED.get(name)


def sink_settings(bootstrap_servers: str, user_settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the producer's settings; raises OptionError where one of the user's cannot stand."""
    settings = dict(user_settings or {})
    for name, value in settings.items():
        why = why_sink_refuses(name, value)
        if name == "bootstrap.servers" and value != bootstrap_servers:
            why = f"it is the argument bootstrap_servers, which is {bootstrap_servers}"
        if why is not None:
            raise OptionError(f"{name} cannot be set in settings: {why}")
    settings["bootstrap.servers"] = bootstrap_servers
    check_transactional(settings)
    return settings


def check_transactional(settings: Mapping[str, Any]) -> None:
    """Raises ConfigError where settings contradict the needs of a producer that writes in transactions."""
    ClientConfig.producer({**settings, "transactional.id": "any"})
