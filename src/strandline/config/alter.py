"""Changes of configs while a cluster runs: AlterConfigs, IncrementalAlterConfigs and CreateTopics.

Each function takes the present configs and the requested changes. It returns the new overrides with the records that
make them, or the refusal that Apache Kafka would send. It changes nothing.

Where Kafka checks on a broker first and then on the controller, the order of the checks is the same. A refusal
concerning a topic is INVALID_CONFIG; one concerning a broker is mostly INVALID_REQUEST (KAFKA-13609 regrets it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from strandline.config.broker_config import BrokerConfig
from strandline.config.definition import LIST, ConfigKey, Required
from strandline.config.dynamic import (
    ALL_BROKERS,
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    DynamicConfigs,
    usable_overrides,
)
from strandline.config.java import INT_MAX, INT_MIN, parse_integer, split
from strandline.config.keys.broker import (
    BROKER_KEYS,
    find_key,
    is_fixed,
    is_for_listeners_only,
    is_for_one_broker_only,
    synonyms,
)
from strandline.config.keys.client_metrics import subscription_flaw
from strandline.config.keys.group import GROUP_KEYS, check_group
from strandline.config.keys.topic import TOPIC_KEYS
from strandline.config.topic_checks import check_topic
from strandline.config.values import InvalidConfig, parse, render

# The operations of IncrementalAlterConfigs (KIP-339).
SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
_OPERATION_NAMES: Final = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}

# A ConfigRecord holds its value as a string with a 16-bit length.
VALUE_LENGTH_MAX: Final = 2**15 - 1

# A running pool may at most be halved or doubled at once.
_POOL_KEYS: Final = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "log.cleaner.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
)


class ConfigAlteration(NamedTuple):
    """One operation on one key."""

    name: str
    operation: int
    value: str | None


class RefusedAlteration(NamedTuple):
    """A refusal: the name of Kafka's error, and its message."""

    error: str
    message: str


class Altered(NamedTuple):
    """The overrides from now on, and the records of the change; a value of None removes the key."""

    overrides: dict[str, str]
    records: tuple[tuple[str, str | None], ...]


def alter_topic(
    configs: DynamicConfigs, topic: str, changes: Sequence[ConfigAlteration]
) -> Altered | RefusedAlteration:
    """Plans IncrementalAlterConfigs of a topic. The caller knows that the topic exists."""
    flaw = _request_flaw(changes)
    return flaw or _alter_topic(configs, configs.overrides(TOPIC, topic), changes)


def replace_topic(
    configs: DynamicConfigs, topic: str, given: Sequence[tuple[str, str | None]]
) -> Altered | RefusedAlteration:
    """Plans AlterConfigs of a topic: keys that are not in the request are removed."""
    changes = [ConfigAlteration(name, SET, value) for name, value in given]
    current = configs.overrides(TOPIC, topic)
    removals = [ConfigAlteration(name, DELETE, None) for name in current if name not in dict(given)]
    return _request_flaw(changes) or _alter_topic(configs, current, [*changes, *removals])


def create_topic(
    configs: DynamicConfigs, given: Sequence[tuple[str, str | None]]
) -> Altered | RefusedAlteration:
    """Plans the configs of a topic of CreateTopics. If a key is there twice, the last one is used."""
    nulls = [name for name, value in given if value is None]
    if nulls:
        return RefusedAlteration(
            "INVALID_CONFIG", "Null value not supported for topic configs: " + ",".join(nulls)
        )
    changes = [ConfigAlteration(name, SET, value) for name, value in dict(given).items()]
    return _alter_topic(configs, {}, changes)


def alter_group(
    configs: DynamicConfigs, group: str, changes: Sequence[ConfigAlteration]
) -> Altered | RefusedAlteration:
    """Plans IncrementalAlterConfigs of a group, which need not exist."""
    return _request_flaw(changes) or _alter_group(configs, group, changes)


def replace_group(
    configs: DynamicConfigs, group: str, given: Sequence[tuple[str, str | None]]
) -> Altered | RefusedAlteration:
    """Plans AlterConfigs of a group: keys that are not in the request are removed."""
    changes = [ConfigAlteration(name, SET, value) for name, value in given]
    removals = [
        ConfigAlteration(n, DELETE, None) for n in configs.overrides(GROUP, group) if n not in dict(given)
    ]
    return _request_flaw(changes) or _alter_group(configs, group, [*changes, *removals])


def alter_client_metrics(
    configs: DynamicConfigs, subscription: str, changes: Sequence[ConfigAlteration]
) -> Altered | RefusedAlteration:
    """Plans IncrementalAlterConfigs of a subscription to metrics of clients, which its first key creates."""
    return _request_flaw(changes) or _alter_client_metrics(configs, subscription, changes)


def replace_client_metrics(
    configs: DynamicConfigs, subscription: str, given: Sequence[tuple[str, str | None]]
) -> Altered | RefusedAlteration:
    """Plans AlterConfigs of a subscription: keys that are not in the request are removed."""
    changes = [ConfigAlteration(name, SET, value) for name, value in given]
    current = configs.overrides(CLIENT_METRICS, subscription)
    removals = [ConfigAlteration(name, DELETE, None) for name in current if name not in dict(given)]
    return _request_flaw(changes) or _alter_client_metrics(configs, subscription, [*changes, *removals])


def alter_broker(
    configs: DynamicConfigs, broker: str, changes: Sequence[ConfigAlteration]
) -> Altered | RefusedAlteration:
    """Plans IncrementalAlterConfigs on this broker, for itself or, if `broker` is empty, for all brokers."""
    flaw = _request_flaw(changes) or _broker_flaw(broker)
    if flaw is not None:
        return flaw
    kept = usable_overrides(configs.overrides(BROKER, broker), shared=not broker)
    planned = _apply_at_broker(kept, changes)
    if isinstance(planned, RefusedAlteration):
        return planned
    return _broker_overrides_flaw(configs, broker, planned) or keep_broker_changes(configs, broker, changes)


def replace_broker(
    configs: DynamicConfigs, broker: str, given: Sequence[tuple[str, str | None]]
) -> Altered | RefusedAlteration:
    """Plans AlterConfigs of this broker, or of all if `broker` is empty: keys that are not in the request are
    removed."""
    flaw = _request_flaw([ConfigAlteration(name, SET, value) for name, value in given]) or _broker_flaw(
        broker
    )
    if flaw is not None:
        return flaw
    planned = {name: value for name, value in given if value is not None}
    return _broker_overrides_flaw(configs, broker, planned) or keep_broker_replacement(configs, broker, given)


def keep_broker_changes(
    configs: DynamicConfigs, broker: str, changes: Sequence[ConfigAlteration]
) -> Altered | RefusedAlteration:
    """Plans the records that the controller writes for `alter_broker`, which the broker itself has checked."""
    flaw = _request_flaw(changes) or _broker_flaw(broker)
    return flaw or _apply(BROKER_KEYS, configs.overrides(BROKER, broker), changes, always=True)


def keep_broker_replacement(
    configs: DynamicConfigs, broker: str, given: Sequence[tuple[str, str | None]]
) -> Altered | RefusedAlteration:
    """Plans the same for `replace_broker`."""
    changes = [ConfigAlteration(name, SET, value) for name, value in given]
    current = configs.overrides(BROKER, broker)
    removals = [ConfigAlteration(name, DELETE, None) for name in current if name not in dict(given)]
    return _request_flaw(changes) or keep_broker_changes(configs, broker, [*changes, *removals])


def _request_flaw(changes: Sequence[ConfigAlteration]) -> RefusedAlteration | None:
    """Returns the error of a request, for any resource, or None."""
    names = [change.name for change in changes]
    if len(set(names)) < len(names):
        return RefusedAlteration("INVALID_REQUEST", "Error due to duplicate config keys")
    nulls = [change.name for change in changes if change.value is None and change.operation != DELETE]
    if nulls:
        return RefusedAlteration("INVALID_REQUEST", "Null value not supported for : " + ", ".join(nulls))
    for change in changes:
        if change.operation not in _OPERATION_NAMES:
            return RefusedAlteration("INVALID_REQUEST", f"Unknown operations type {change.operation}")
    return None


def _alter_topic(
    configs: DynamicConfigs, current: Mapping[str, str], changes: Sequence[ConfigAlteration]
) -> Altered | RefusedAlteration:
    altered = _apply(TOPIC_KEYS, current, changes, always=False)
    if isinstance(altered, RefusedAlteration):
        return altered
    try:
        check_topic(configs, altered.overrides, current)
    except InvalidConfig as invalid:
        return RefusedAlteration("INVALID_CONFIG", invalid.message)
    return altered


def _alter_group(
    configs: DynamicConfigs, group: str, changes: Sequence[ConfigAlteration]
) -> Altered | RefusedAlteration:
    if not group:
        return RefusedAlteration("INVALID_REQUEST", "Default group resources are not allowed.")
    altered = _apply(GROUP_KEYS, configs.overrides(GROUP, group), changes, always=False)
    if isinstance(altered, RefusedAlteration):
        return altered
    try:
        check_group(configs.broker_value, altered.overrides)
    except InvalidConfig as invalid:
        return RefusedAlteration("INVALID_CONFIG", invalid.message)
    return altered


def _alter_client_metrics(
    configs: DynamicConfigs, subscription: str, changes: Sequence[ConfigAlteration]
) -> Altered | RefusedAlteration:
    current = configs.overrides(CLIENT_METRICS, subscription)
    # The keys are left out, as in Kafka: values cannot be appended to or subtracted from these lists.
    altered = _apply({}, current, changes, always=False)
    if isinstance(altered, RefusedAlteration):
        return altered
    flaw = subscription_flaw(subscription, altered.overrides)
    return altered if flaw is None else RefusedAlteration(*flaw)


def _apply(
    keys: Mapping[str, ConfigKey],
    current: Mapping[str, str],
    changes: Iterable[ConfigAlteration],
    *,
    always: bool,
) -> Altered | RefusedAlteration:
    """Returns the overrides and the records of these changes; with `always` also a record for a value that stays the
    same."""
    overrides = dict(current)
    records: list[tuple[str, str | None]] = []
    for change in changes:
        name, value = change.name, change.value
        if change.operation == DELETE:
            value = None  # Tools send an empty text.
        elif change.operation in (APPEND, SUBTRACT):
            if name not in keys or keys[name].type != LIST:
                verb = _OPERATION_NAMES[change.operation]
                message = f"Can't {verb} to key {name} because its type is not LIST."
                return RefusedAlteration("INVALID_CONFIG", message)
            value = _edited_list(keys[name], current.get(name), change)
        if value is not None and len(value) > VALUE_LENGTH_MAX:
            message = "The configuration value cannot be added because it exceeds the maximum value size of "
            return RefusedAlteration("INVALID_CONFIG", f"{message}{VALUE_LENGTH_MAX} bytes.")
        if value is None:
            overrides.pop(name, None)
        else:
            overrides[name] = value
        if always or value != current.get(name):
            records.append((name, value))
    return Altered(overrides, tuple(records))


def _edited_list(key: ConfigKey, current: str | None, change: ConfigAlteration) -> str:
    """Returns the list after an APPEND or SUBTRACT; a list that is not set begins with the default."""
    assert change.value is not None, "checked with the request"
    default = None if isinstance(key.default, Required) else render(key.default)
    entries = [entry for entry in split(current if current is not None else default or "") if entry]
    for entry in split(change.value):
        if change.operation == APPEND and entry not in entries:
            entries.append(entry)
        elif change.operation == SUBTRACT and entry in entries:
            entries.remove(entry)
    return ",".join(entries)


def _broker_flaw(broker: str) -> RefusedAlteration | None:
    if broker != ALL_BROKERS and parse_integer(broker, INT_MIN, INT_MAX) is None:
        return RefusedAlteration("INVALID_REQUEST", f"Node id must be an integer, but it is: {broker}")
    return None


def misdirected(node_id: int, broker: str) -> RefusedAlteration | None:
    """Returns the refusal of a request to another broker: a broker's settings are altered on that broker, which
    forwards them to the controller."""
    number = parse_integer(broker, INT_MIN, INT_MAX)
    if broker == ALL_BROKERS or number is None or number == node_id:
        return None
    return RefusedAlteration(
        "INVALID_REQUEST", f"Unexpected broker id, expected {node_id}, but received {broker}"
    )


def _apply_at_broker(
    current: Mapping[str, str], changes: Iterable[ConfigAlteration]
) -> dict[str, str] | RefusedAlteration:
    """Returns the overrides after the changes, as the broker checks them before it forwards them."""
    planned = dict(current)
    for change in changes:
        if change.operation == DELETE:
            planned.pop(change.name, None)
        elif change.operation == SET:
            assert change.value is not None, "checked with the request"
            planned[change.name] = change.value
        elif change.name not in BROKER_KEYS:
            return RefusedAlteration("INVALID_CONFIG", f"Unknown config name: {change.name}")
        elif BROKER_KEYS[change.name].type != LIST:
            verb = _OPERATION_NAMES[change.operation].lower()
            message = f"Config value {verb} is not allowed for config key: {change.name}"
            return RefusedAlteration("INVALID_CONFIG", message)
        else:
            key = BROKER_KEYS[change.name]
            planned[change.name] = _edited_list(key, current.get(change.name), change)
    return planned


def _broker_overrides_flaw(
    configs: DynamicConfigs, broker: str, planned: Mapping[str, str]
) -> RefusedAlteration | None:
    """Returns why a broker cannot take these overrides, or None."""
    shared = broker == ALL_BROKERS
    fixed = [name for name in planned if is_fixed(name)]
    if fixed:
        return RefusedAlteration(
            "INVALID_REQUEST", f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
        )
    bare = [name for name in planned if is_for_listeners_only(name)]
    if bare:
        message = (
            "These security configs can be dynamically updated only per-listener using the listener prefix"
        )
        return RefusedAlteration("INVALID_REQUEST", f"{message}: [{', '.join(bare)}]")
    try:
        for name, text in planned.items():
            key = find_key(name)
            if key is not None:
                parse(key, text)
        alone = [name for name in planned if is_for_one_broker_only(name)]
        if shared and alone:
            message = "Cannot update these configs at default cluster level, broker id must be specified"
            return RefusedAlteration("INVALID_REQUEST", f"{message}: [{', '.join(alone)}]")
        merged = BrokerConfig.from_strings(_merged(configs, planned, shared))
    except InvalidConfig as invalid:
        return RefusedAlteration("INVALID_REQUEST", invalid.message)
    flaw = _pool_flaw(configs, merged) or _local_retention_flaw(merged)
    return (
        None
        if flaw is None
        else RefusedAlteration("INVALID_REQUEST", f"Invalid dynamic configuration: {flaw}")
    )


def _merged(configs: DynamicConfigs, planned: Mapping[str, str], shared: bool) -> dict[str, str]:
    """Returns the settings that the broker would have. An override replaces its synonyms in other units."""
    merged = dict(configs.static.static)
    levels = (planned, configs.own_overrides) if shared else (configs.shared_overrides, planned)
    for level in levels:
        for name, text in level.items():
            for synonym in synonyms(name):
                if synonym in BROKER_KEYS and name in BROKER_KEYS:
                    merged.pop(synonym, None)
            merged[name] = text
    return merged


def _pool_flaw(configs: DynamicConfigs, merged: BrokerConfig) -> str | None:
    for name in _POOL_KEYS:
        now, planned = configs.broker_value(name), merged.int(name)
        assert isinstance(now, int), name
        if planned != now and not max(1, now // 2) <= planned <= now * 2:
            return f"{name} must lie between {max(1, now // 2)} and {now * 2} while it is {now}"
    return None


def _local_retention_flaw(merged: BrokerConfig) -> str | None:
    """Returns the error if local retention would be longer than retention, or None."""
    kept = DynamicConfigs(merged).topic_defaults
    pairs = (
        ("ms", kept.local_retention_ms, kept.retention_ms),
        ("bytes", kept.local_retention_bytes, kept.retention_bytes),
    )
    for unit, local, total in pairs:
        if total > -1 and local != -2 and not -1 < local <= total:
            return f"log.local.retention.{unit} must be -2 or at most log.retention.{unit} ({total})"
    return None
