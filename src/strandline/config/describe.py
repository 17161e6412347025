"""DescribeConfigs and CreateTopics: the value of each setting, where it comes from, and its synonyms.

The entries follow Apache Kafka's ConfigHelper, with its quirks. One of them: a topic's retention.ms that comes from
log.retention.hours is described as a default without synonyms, because the list of synonyms begins at the first one
with the name log.retention.ms. CreateTopics has a resolver of its own and describes it correctly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from strandline.config.definition import READ_ONLY, UNKNOWN_TYPE_CODE, ConfigKey, Required
from strandline.config.dynamic import CLIENT_METRICS, GROUP, TOPIC, DynamicConfigs
from strandline.config.java import INT_MAX, INT_MIN, parse_integer, trim
from strandline.config.keys.broker import BROKER_KEYS, DYNAMIC_ONLY_KEYS, find_key, synonyms
from strandline.config.keys.client_metrics import CLIENT_METRICS_KEYS
from strandline.config.keys.group import GROUP_KEYS, broker_key, group_value
from strandline.config.keys.topic import SYNONYMS, TOPIC_KEYS, Synonym
from strandline.config.values import parse, render

# The sources of a value, by their numbers in DescribeConfigs.
TOPIC_CONFIG: Final = 1
DYNAMIC_BROKER_CONFIG: Final = 2
DYNAMIC_DEFAULT_BROKER_CONFIG: Final = 3
STATIC_BROKER_CONFIG: Final = 4
DEFAULT_CONFIG: Final = 5
CLIENT_METRICS_CONFIG: Final = 7
GROUP_CONFIG: Final = 8


class ConfigSynonym(NamedTuple):
    """A source from which the value was taken, or would have been taken next."""

    name: str
    value: str | None
    source: int


class DescribedConfig(NamedTuple):
    """One setting of a resource in DescribeConfigs."""

    name: str
    value: str | None
    source: int
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    type_code: int
    documentation: str | None

    @property
    def is_default(self) -> bool:
        """True for a default value: DescribeConfigs version 0, which Kafka 4 no longer has, had this instead of the
        source."""
        return self.source == DEFAULT_CONFIG


def describe_topic(
    configs: DynamicConfigs, name: str, keys: Collection[str] | None = None
) -> tuple[DescribedConfig, ...]:
    """Describes these keys of a topic, or all if `keys` is None, in the order of their names."""
    overrides = configs.overrides(TOPIC, name)
    values = configs.topic_values(overrides)
    shown = [each for each, key in TOPIC_KEYS.items() if not key.shown_only_if_set or each in overrides]
    entries = []
    for each in _chosen(shown, keys):
        key, value = TOPIC_KEYS[each], render(values[each])
        own = (ConfigSynonym(each, value, TOPIC_CONFIG),) if each in overrides else ()
        first = SYNONYMS[each][0].name if each in SYNONYMS else None
        inherited = _synonyms(configs, first, sensitive=False) if first is not None else ()
        entries.append(_entry(key, value, own + inherited))
    return tuple(entries)


def describe_group(
    configs: DynamicConfigs, name: str, keys: Collection[str] | None = None
) -> tuple[DescribedConfig, ...]:
    """Describes the keys of a group, in the order of names."""
    overrides = configs.overrides(GROUP, name)
    entries = []
    for each in _chosen(GROUP_KEYS, keys):
        key, value = GROUP_KEYS[each], render(group_value(configs.broker_value, overrides, each))
        own = (ConfigSynonym(each, value, GROUP_CONFIG),) if each in overrides else ()
        first = broker_key(each)
        if first is None:
            assert not isinstance(key.default, Required), each
            inherited: tuple[ConfigSynonym, ...] = (ConfigSynonym(each, render(key.default), DEFAULT_CONFIG),)
        else:
            inherited = _synonyms(configs, first, sensitive=False)
        entries.append(_entry(key, value, own + inherited))
    return tuple(entries)


def describe_client_metrics(
    configs: DynamicConfigs, name: str, keys: Collection[str] | None = None
) -> tuple[DescribedConfig, ...]:
    """Describes a subscription to metrics of clients; one that does not exist has the defaults."""
    overrides = configs.overrides(CLIENT_METRICS, name)
    entries = []
    for each in _chosen(CLIENT_METRICS_KEYS, keys):
        key = CLIENT_METRICS_KEYS[each]
        assert not isinstance(key.default, Required), each
        value = render(parse(key, overrides[each]) if each in overrides else key.default)
        own = (ConfigSynonym(each, value, CLIENT_METRICS_CONFIG),) if each in overrides else ()
        entries.append(_entry(key, value, own))
    return tuple(entries)


def describe_broker(
    configs: DynamicConfigs, node_id: int | None, keys: Collection[str] | None = None
) -> tuple[DescribedConfig, ...]:
    """Describes this broker or, if `node_id` is None, the settings for all brokers."""
    if node_id is None:
        return _shared_entries(configs, keys)
    assert node_id == configs.static.node_id, "a broker knows only its own file"
    return _broker_entries(configs, keys)


def _broker_entries(configs: DynamicConfigs, keys: Collection[str] | None) -> tuple[DescribedConfig, ...]:
    """Returns every key that Kafka documents, and every other key that is set."""
    overrides = {**configs.shared_overrides, **configs.own_overrides}
    settings = {**configs.static.static, **overrides}
    documented = [name for name, key in BROKER_KEYS.items() if not key.internal]
    # An override replaces values in other units, but they stay among the synonyms.
    pushed_out = {each for name in overrides for each in synonyms(name) if name in BROKER_KEYS} - set(
        overrides
    )
    entries = []
    for name in _chosen([*documented, *settings], keys):
        key = BROKER_KEYS.get(name)
        if key is None or key.internal:
            value: str | None = settings[name]
        elif name in pushed_out and not isinstance(key.default, Required):
            value = render(key.default)
        else:
            value = render(configs.broker_value(name))
        entries.append(
            _broker_entry(name, value, _synonyms(configs, name, sensitive=is_sensitive_broker_key(name)))
        )
    return tuple(entries)


def _shared_entries(configs: DynamicConfigs, keys: Collection[str] | None) -> tuple[DescribedConfig, ...]:
    """Returns the settings that are set for all brokers, without static values and defaults."""
    return tuple(
        _broker_entry(
            name,
            value := configs.shared_overrides[name],
            (
                ConfigSynonym(
                    name, None if is_sensitive_broker_key(name) else value, DYNAMIC_DEFAULT_BROKER_CONFIG
                ),
            ),
        )
        for name in _chosen(configs.shared_overrides, keys)
    )


def created_topic_entries(
    configs: DynamicConfigs, overrides: Mapping[str, str]
) -> tuple[DescribedConfig, ...]:
    """Returns the settings of a new topic with these overrides, in the order of names, without synonyms.

    Values are texts as they were written.
    """
    entries = []
    for name in sorted(TOPIC_KEYS):
        key = TOPIC_KEYS[name]
        if key.shown_only_if_set and name not in overrides:
            continue
        value, source = _created_value(configs, key, overrides)
        entries.append(_entry(key, value, ())._replace(source=source))
    return tuple(entries)


def _created_value(
    configs: DynamicConfigs, key: ConfigKey, overrides: Mapping[str, str]
) -> tuple[str | None, int]:
    if key.name in overrides:
        return overrides[key.name], TOPIC_CONFIG
    for level, source in _levels(configs):
        for synonym in SYNONYMS.get(key.name, ()):
            if synonym.name in level:
                return _converted(synonym, level[synonym.name]), source
    assert not isinstance(key.default, Required), key.name
    return render(key.default), DEFAULT_CONFIG


def _converted(synonym: Synonym, text: str) -> str:
    if synonym.factor == 1:
        return text
    return str((parse_integer(trim(text), INT_MIN, INT_MAX) or 0) * synonym.factor)


def _levels(configs: DynamicConfigs) -> tuple[tuple[Mapping[str, str], int], ...]:
    return (
        (configs.own_overrides, DYNAMIC_BROKER_CONFIG),
        (configs.shared_overrides, DYNAMIC_DEFAULT_BROKER_CONFIG),
        (configs.static.static, STATIC_BROKER_CONFIG),
    )


def _synonyms(configs: DynamicConfigs, name: str, *, sensitive: bool) -> tuple[ConfigSynonym, ...]:
    """Returns every source of a broker's setting, in order, from the first with exactly that name."""
    names = synonyms(name)
    sources = [
        ConfigSynonym(each, None if sensitive else level[each], source)
        for level, source in _levels(configs)
        for each in names
        if each in level
    ]
    for each in names:
        key = BROKER_KEYS.get(each)
        if key is not None and key.default is not None and not isinstance(key.default, Required):
            sources.append(ConfigSynonym(each, None if sensitive else render(key.default), DEFAULT_CONFIG))
    start = next((at for at, synonym in enumerate(sources) if synonym.name == name), len(sources))
    return tuple(sources[start:])


def _chosen(names: Collection[str], keys: Collection[str] | None) -> list[str]:
    return sorted(name for name in set(names) if not keys or name in keys)


def is_sensitive_broker_key(name: str) -> bool:
    """Returns True if the value must not be shown. The value of an unknown key may be a password."""
    key = find_key(name)
    return key is None or key.sensitive


def _entry(key: ConfigKey, value: str | None, sources: tuple[ConfigSynonym, ...]) -> DescribedConfig:
    return DescribedConfig(
        name=key.name,
        value=value,
        source=sources[0].source if sources else DEFAULT_CONFIG,
        is_read_only=False,
        is_sensitive=key.sensitive,
        synonyms=sources,
        type_code=key.type_code,
        documentation=key.doc,
    )


def _broker_entry(name: str, value: str | None, sources: tuple[ConfigSynonym, ...]) -> DescribedConfig:
    known = BROKER_KEYS.get(name) or DYNAMIC_ONLY_KEYS.get(name)
    key = find_key(name)
    return DescribedConfig(
        name=name,
        value=None if is_sensitive_broker_key(name) else value,
        source=sources[0].source if sources else DEFAULT_CONFIG,
        is_read_only=known is None or known.update_mode == READ_ONLY,
        is_sensitive=is_sensitive_broker_key(name),
        synonyms=sources,
        type_code=UNKNOWN_TYPE_CODE if key is None else key.type_code,
        documentation=None if known is None else known.doc,
    )
