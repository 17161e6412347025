"""Group keys (KIP-848): settings of one group that override the broker's settings for all groups.

`consumer.session.timeout.ms` overrides `group.consumer.session.timeout.ms`, and so on; the broker's bounds for it are
`group.consumer.min.session.timeout.ms` and `…max…`. Keys of share and streams groups are accepted and shown, though no
broker of Strandline has such groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from strandline.config.definition import (
    BOOLEAN,
    INT,
    MEDIUM,
    OFFSET_RESETS,
    PER_GROUP,
    STRING,
    ConfigKey,
    ConfigValue,
    Required,
    accepted,
    active,
    at_least,
    one_of,
)
from strandline.config.keys.broker import BROKER_KEYS
from strandline.config.values import InvalidConfig, parse

BrokerValue = Callable[[str], ConfigValue]
"""Returns the present value of a broker's key."""

_KEYS: Final[tuple[ConfigKey, ...]] = (
    active("consumer.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM, PER_GROUP).documented(
        "How long a member of this group may be silent before it is removed."
    ),
    active("consumer.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM, PER_GROUP).documented(
        "How often members of this group send heartbeats."
    ),
    accepted("consumer.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM, PER_GROUP).documented(
        "Shortest time between two assignments of this group."
    ),
    accepted("share.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM, PER_GROUP).documented(
        "How long a member of this share group may be silent before it is removed."
    ),
    accepted("share.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM, PER_GROUP).documented(
        "How often members of this share group send heartbeats."
    ),
    accepted("share.record.lock.duration.ms", INT, 30_000, at_least(1000), MEDIUM, PER_GROUP).documented(
        "How long a delivered record is locked to its member before others may get it."
    ),
    accepted("share.delivery.count.limit", INT, 5, at_least(2), MEDIUM, PER_GROUP).documented(
        "How often a record is delivered before it is given up."
    ),
    accepted("share.partition.max.record.locks", INT, 2000, at_least(100), MEDIUM, PER_GROUP).documented(
        "Most records of a partition that members have at a time."
    ),
    accepted("share.auto.offset.reset", STRING, "latest", OFFSET_RESETS, MEDIUM, PER_GROUP).documented(
        "The offset at which a share group begins: earliest, latest, or by_duration:<ISO 8601 duration>."
    ),
    accepted(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        one_of("read_committed", "read_uncommitted"),
        MEDIUM,
        PER_GROUP,
    ).documented("Whether a share group gets records of transactions that are not committed."),
    accepted("share.renew.acknowledge.enable", BOOLEAN, True, None, MEDIUM, PER_GROUP).documented(
        "Whether members may ask for more time with a record."
    ),
    accepted("share.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM, PER_GROUP).documented(
        "Shortest time between two assignments of this share group."
    ),
    accepted("streams.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM, PER_GROUP).documented(
        "How long a member of this streams group may be silent before it is removed."
    ),
    accepted("streams.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM, PER_GROUP).documented(
        "How often members of this streams group send heartbeats."
    ),
    accepted("streams.num.standby.replicas", INT, 0, at_least(0), MEDIUM, PER_GROUP).documented(
        "Standby copies of each task of this streams group."
    ),
    accepted("streams.initial.rebalance.delay.ms", INT, 3000, at_least(0), MEDIUM, PER_GROUP).documented(
        "How long this streams group, when empty, waits for more members before its first assignment."
    ),
    accepted("streams.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM, PER_GROUP).documented(
        "Shortest time between two assignments of this streams group."
    ),
)

GROUP_KEYS: Final[dict[str, ConfigKey]] = {key.name: key for key in _KEYS}


def broker_key(name: str) -> str | None:
    """Returns the broker's key that a group's key overrides."""
    found = f"group.{name}"
    return found if found in BROKER_KEYS else None


def _bound(name: str, which: str) -> str | None:
    kind, _, rest = name.partition(".")
    rest = rest.removeprefix("num.")  # the key of standby replicas
    found = f"group.{kind}.{which}.{rest}"
    return found if found in BROKER_KEYS else None


def group_value(broker_value: BrokerValue, overrides: Mapping[str, str], name: str) -> ConfigValue:
    """Returns the value for a group with these overrides. An override outside of the broker's bounds is limited to
    them."""
    key, inherited = GROUP_KEYS[name], broker_key(name)
    if name not in overrides:
        assert not isinstance(key.default, Required), name
        return key.default if inherited is None else broker_value(inherited)
    value = parse(key, overrides[name])
    for which, better in (("min", max), ("max", min)):
        bound = _bound(name, which)
        if bound is not None:
            value = better(value, broker_value(bound))  # type: ignore[type-var]
    return value


def check_group(broker_value: BrokerValue, overrides: Mapping[str, str]) -> None:
    """Raises InvalidConfig if a group cannot have these overrides."""
    for name, text in overrides.items():
        if name not in GROUP_KEYS:
            raise InvalidConfig(name, text, f"Unknown group config name: {name}")
    values = {name: parse(GROUP_KEYS[name], text) for name, text in overrides.items()}
    for name, value in values.items():
        least, most = _bound(name, "min"), _bound(name, "max")
        if least is not None and value < broker_value(least):  # type: ignore[operator]
            raise InvalidConfig(name, str(value), f"{name} must be greater than or equal to {least}")
        if most is not None and value > broker_value(most):  # type: ignore[operator]
            raise InvalidConfig(name, str(value), f"{name} must be less than or equal to {most}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms, heartbeat_ms = (
            group_value(broker_value, overrides, name) for name in (session, heartbeat)
        )
        if session_ms <= heartbeat_ms:  # type: ignore[operator]
            raise InvalidConfig(session, str(session_ms), f"{session} must be greater than {heartbeat}")
