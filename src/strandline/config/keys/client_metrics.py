"""Keys of subscriptions to metrics of clients (KIP-714), which are resources of the type CLIENT_METRICS.

By a subscription the clients that `match` selects push `metrics`, every `interval.ms`. It exists as long as one of its
keys is set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from strandline.config.definition import INT, LIST, MEDIUM, PER_SUBSCRIPTION, ConfigKey, active
from strandline.config.values import InvalidConfig, parse

METRICS: Final = "metrics"
INTERVAL_MS: Final = "interval.ms"
MATCH: Final = "match"

# The value of `metrics` for every metric of a client.
ALL_METRICS: Final = "*"

INTERVAL_MS_DEFAULT: Final = 300_000
_INTERVAL_MS_MIN: Final = 100
_INTERVAL_MS_MAX: Final = 3_600_000

# The facts about a client by which `match` can select.
MATCHED: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)

_KEYS: Final[tuple[ConfigKey, ...]] = (
    active(METRICS, LIST, (), None, MEDIUM, PER_SUBSCRIPTION).documented(
        "The prefixes of the names of metrics that clients push; `*` is for all metrics, an empty list for none."
    ),
    active(INTERVAL_MS, INT, INTERVAL_MS_DEFAULT, None, MEDIUM, PER_SUBSCRIPTION).documented(
        "How often clients push their metrics, from 100 ms to an hour. Of several subscriptions the shortest counts."
    ),
    active(MATCH, LIST, (), None, MEDIUM, PER_SUBSCRIPTION).documented(
        "Which clients are asked, as `name=regular expression`; all of them have to match the whole text. Names are "
        + ", ".join(f"`{name}`" for name in MATCHED)
        + ". Without any, every client is asked."
    ),
)

CLIENT_METRICS_KEYS: Final[dict[str, ConfigKey]] = {key.name: key for key in _KEYS}


def subscription_flaw(name: str, overrides: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns the name of Kafka's error and its message, if a subscription cannot have these settings."""
    if not name:
        return "INVALID_REQUEST", "Subscription name can't be empty"
    unknown = [key for key in overrides if key not in CLIENT_METRICS_KEYS]
    if unknown:
        return "INVALID_REQUEST", f"Unknown client metrics configuration: {unknown[0]}"
    try:
        values = {key: parse(CLIENT_METRICS_KEYS[key], text) for key, text in overrides.items()}
        interval_ms = values.get(INTERVAL_MS, INTERVAL_MS_DEFAULT)
        assert isinstance(interval_ms, int)
        if not _INTERVAL_MS_MIN <= interval_ms <= _INTERVAL_MS_MAX:
            return (
                "INVALID_REQUEST",
                f"Invalid value {interval_ms} for {INTERVAL_MS}, interval must be between 100 and 3600000 (1 hour)",
            )
        matched = values.get(MATCH, ())
        assert isinstance(matched, tuple)
        match_patterns(matched)
    except InvalidConfig as invalid:
        return "INVALID_CONFIG", invalid.message
    return None


def match_patterns(entries: Sequence[str]) -> dict[str, Any]:
    """Returns compiled patterns by the fact that they select by. Raises InvalidConfig.

    Patterns are RE2's, like those of consumers' subscriptions: their time is bounded for every pattern.
    """
    patterns: dict[str, Any] = {}
    for entry in entries:
        name, _, text = entry.partition("=")
        name, text = name.strip(), text.strip()
        if name not in MATCHED or not text or "=" in text:
            raise _illegal(entry)
        patterns[name] = _compiled(entry, text)
    return patterns


def _compiled(entry: str, text: str) -> Any:
    import re2  # imported on first use: few clusters have subscriptions

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error:
        raise _illegal(entry) from None


def _illegal(entry: str) -> InvalidConfig:
    return InvalidConfig(MATCH, entry, f"Illegal client matching pattern: {entry}")
