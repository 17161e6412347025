"""Settings that change while a node runs, and their order of precedence.

For a broker's key the order is: set for this broker, set for all brokers, set at the start, default. For a topic's key
the topic's own setting comes first, then that order through the broker keys that are its synonyms.

The overrides come from the metadata log, and were checked before they were written. An override that is invalid all the
same, because another version wrote it, is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from strandline.config.broker_config import BrokerConfig
from strandline.config.definition import ConfigKey, ConfigValue, Required
from strandline.config.keys.broker import (
    BROKER_KEYS,
    DYNAMIC_ONLY_KEYS,
    find_key,
    is_fixed,
    is_for_listeners_only,
    is_for_one_broker_only,
)
from strandline.config.keys.group import group_value
from strandline.config.keys.topic import SYNONYMS, TOPIC_KEYS
from strandline.config.topic_config import TopicConfig
from strandline.config.values import InvalidConfig, parse

# The kinds of resources that have configs, by the numbers of DescribeConfigs and of ConfigRecord.
TOPIC: Final = 2
BROKER: Final = 4
CLIENT_METRICS: Final = 16
GROUP: Final = 32

# The name of the resource with the settings of all brokers.
ALL_BROKERS: Final = ""

_NOTHING: Final[Mapping[str, str]] = {}


class DynamicConfigs:
    """The overrides of every broker, topic and group, from the view of one node."""

    __slots__ = (
        "_broker_values",
        "_overrides",
        "_resolved",
        "_topic_defaults",
        "_topic_values",
        "own_overrides",
        "shared_overrides",
        "static",
        "subscriptions_version",
    )

    static: BrokerConfig
    own_overrides: dict[str, str]
    """The settings of this broker that are valid."""
    shared_overrides: dict[str, str]
    """The settings of all brokers that are valid."""
    subscriptions_version: int
    """Counts the changes of subscriptions to metrics of clients."""

    def __init__(self, static: BrokerConfig) -> None:
        self.static = static
        self._overrides: dict[tuple[int, str], dict[str, str]] = {}
        self._resolved: dict[str, TopicConfig] = {}
        self.subscriptions_version = 0
        self._resolve_broker()

    def set_overrides(self, resource_type: int, name: str, overrides: Mapping[str, str]) -> None:
        """Replaces all overrides of a resource; an empty mapping removes it."""
        if overrides:
            self._overrides[resource_type, name] = dict(overrides)
        else:
            self._overrides.pop((resource_type, name), None)
        if resource_type == TOPIC:
            self._resolved.pop(name, None)
        elif resource_type == BROKER and name in (ALL_BROKERS, str(self.static.node_id)):
            self._resolve_broker()
        elif resource_type == CLIENT_METRICS:
            self.subscriptions_version += 1

    def overrides(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Returns the overrides of a resource, as they were written."""
        return self._overrides.get((resource_type, name), _NOTHING)

    def topic(self, name: str) -> TopicConfig:
        """Returns the configuration of a topic, the same object until something changes."""
        resolved = self._resolved.get(name)
        if resolved is not None:
            return resolved
        overrides = self._overrides.get((TOPIC, name))
        if overrides is None:
            return self._topic_defaults
        resolved = self._resolved[name] = TopicConfig(self.topic_values(overrides))
        return resolved

    @property
    def topic_defaults(self) -> TopicConfig:
        """The configuration of a topic without overrides."""
        return self._topic_defaults

    def topic_values(self, overrides: Mapping[str, str]) -> dict[str, ConfigValue]:
        """Returns a value for every topic key, for a topic with these overrides."""
        values = dict(self._topic_values)
        for name, text in overrides.items():
            if name in TOPIC_KEYS:
                with suppress(InvalidConfig):
                    values[name] = parse(TOPIC_KEYS[name], text)
        return values

    def broker_value(self, name: str) -> ConfigValue:
        """Returns the value of a broker's key on this broker."""
        return self._broker_values[name]

    def broker_int(self, name: str) -> int:
        """Returns the value of a broker's key that is a number."""
        value = self._broker_values[name]
        assert isinstance(value, int), name
        return value

    def group_value(self, group: str, name: str) -> ConfigValue:
        """Returns the value of a group's key."""
        return group_value(self.broker_value, self.overrides(GROUP, group), name)

    def names_of(self, resource_type: int) -> list[str]:
        """Resources of this type that have overrides."""
        return sorted(name for kind, name in self._overrides if kind == resource_type)

    def _resolve_broker(self) -> None:
        """Computes again what follows from the overrides of this broker and of all brokers."""
        own, shared = str(self.static.node_id), ALL_BROKERS
        self.own_overrides = usable_overrides(self.overrides(BROKER, own), shared=False)
        self.shared_overrides = usable_overrides(self.overrides(BROKER, shared), shared=True)
        values = {name: self.static.value(name) for name in BROKER_KEYS}
        for name, key in DYNAMIC_ONLY_KEYS.items():
            assert not isinstance(key.default, Required), name
            values[name] = key.default
        for overrides in (self.shared_overrides, self.own_overrides):
            for name, text in overrides.items():
                if name in values:
                    values[name] = parse(BROKER_KEYS.get(name) or DYNAMIC_ONLY_KEYS[name], text)
        _clamp(values)
        self._broker_values: dict[str, ConfigValue] = values
        self._topic_values = {name: _topic_default(key, values) for name, key in TOPIC_KEYS.items()}
        self._topic_defaults = TopicConfig(self._topic_values)
        self._resolved.clear()


def usable_overrides(overrides: Mapping[str, str], *, shared: bool) -> dict[str, str]:
    """Returns the valid overrides of one broker, or those `shared` by all brokers."""
    return {
        name: text
        for name, text in overrides.items()
        if not is_fixed(name)
        and not is_for_listeners_only(name)
        and not (shared and is_for_one_broker_only(name))
        and ((key := find_key(name)) is None or _can_stand(key, text))
    }


def _can_stand(key: ConfigKey, text: str) -> bool:
    try:
        parse(key, text)
    except InvalidConfig:
        return False
    return True


def _topic_default(key: ConfigKey, broker_values: Mapping[str, ConfigValue]) -> ConfigValue:
    """Returns the value of a topic key without an override: that of the first synonym that has one."""
    for synonym in SYNONYMS.get(key.name, ()):
        value = broker_values[synonym.name]
        if value is None:
            continue
        if synonym.factor != 1:
            assert isinstance(value, int), synonym.name
            value *= synonym.factor
        if key.name == "retention.ms":
            assert isinstance(value, int), synonym.name
            value = max(value, -1)  # Any negative number of hours means forever.
        return value
    assert not isinstance(key.default, Required), key.name
    return key.default


def _clamp(values: dict[str, ConfigValue]) -> None:
    """Limits values that can change to the bounds that cannot, as Kafka does."""
    for kind in ("consumer", "share", "streams"):
        name, least, most = (f"group.{kind}.{part}assignment.interval.ms" for part in ("", "min.", "max."))
        value, floor, ceiling = values[name], values[least], values[most]
        assert isinstance(value, int), name
        assert isinstance(floor, int), least
        assert isinstance(ceiling, int), most
        values[name] = min(max(value, floor), ceiling)
