"""All broker keys by name, and the rules for their synonyms."""

from __future__ import annotations

from typing import Final

from strandline.config.definition import PER_BROKER, READ_ONLY, ConfigKey
from strandline.config.keys import (
    broker_groups,
    broker_internal,
    broker_log,
    broker_metrics,
    broker_network,
    broker_quorum,
    broker_remote,
    broker_replication,
    broker_sasl,
    broker_security,
    broker_share,
    broker_transactions,
)

# Keys that a file can set, theme by theme: the reference page keeps this order.
THEMES: Final[tuple[tuple[str, tuple[ConfigKey, ...]], ...]] = (
    ("Node and metadata quorum", broker_quorum.KEYS),
    ("Network and requests", broker_network.KEYS),
    ("Log", broker_log.KEYS),
    ("Replication", broker_replication.KEYS),
    ("Groups and offsets", broker_groups.KEYS),
    ("Share groups", broker_share.KEYS),
    ("Transactions and idempotent producers", broker_transactions.KEYS),
    ("Security", broker_security.KEYS),
    ("SASL", broker_sasl.KEYS),
    ("Tiered storage", broker_remote.KEYS),
    ("Metrics and quotas", broker_metrics.KEYS),
)

BROKER_KEYS: Final[dict[str, ConfigKey]] = {
    key.name: key for keys in (*(keys for _, keys in THEMES), broker_internal.KEYS) for key in keys
}
DYNAMIC_ONLY_KEYS: Final[dict[str, ConfigKey]] = {
    key.name: key for key in broker_replication.DYNAMIC_ONLY_KEYS
}

# The same setting in several units: the first that is set is used.
UNIT_SYNONYMS: Final[tuple[tuple[str, ...], ...]] = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)

# These may have the name of a SASL mechanism between the prefix of a listener and their own name.
_MECHANISM_KEYS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)

# Certificates and their passwords change while a broker runs only for one listener at a time.
_LISTENER_ONLY_KEYS: Final = (
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.truststore.certificates",
)
# With the prefix of a listener, any other key concerns one broker.
_SHARED_LISTENER_KEYS: Final = ("max.connections", "max.connection.creation.rate", "num.network.threads")


def listener_key(name: str) -> str | None:
    """Returns the key without the prefix of a listener: ssl.key.password in listener.name.internal.ssl.key.password."""
    if not name.startswith("listener.name."):
        return None
    _, dot, rest = name.removeprefix("listener.name.").partition(".")
    return rest if dot else None


def synonyms(name: str) -> tuple[str, ...]:
    """Returns the names under which a broker's setting is looked up, in order of precedence."""
    if name == "log.flush.interval.ms":
        return ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
    for names in UNIT_SYNONYMS:
        if name in names:
            return names
    base = listener_key(name)
    if base is None:
        return (name,)
    return (name, next((key for key in _MECHANISM_KEYS if base.endswith(key)), base))


def find_key(name: str) -> ConfigKey | None:
    """Returns the key of that name, or of the setting that a listener overrides under that name."""
    key = BROKER_KEYS.get(name) or DYNAMIC_ONLY_KEYS.get(name)
    if key is None and listener_key(name) is not None:
        key = BROKER_KEYS.get(synonyms(name)[-1])
    return key


def is_fixed(name: str) -> bool:
    """Returns True if the key is only read when a node starts. An unknown key may belong to a plug-in."""
    key = BROKER_KEYS.get(name)
    return key is not None and key.update_mode == READ_ONLY


def is_for_listeners_only(name: str) -> bool:
    return name in _LISTENER_ONLY_KEYS


def is_for_one_broker_only(name: str) -> bool:
    base = listener_key(name)
    if base is not None:
        return base not in _SHARED_LISTENER_KEYS
    key = BROKER_KEYS.get(name)
    return key is not None and key.update_mode == PER_BROKER
