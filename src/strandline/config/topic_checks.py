"""Rules between the settings of a topic (LogConfig's rules)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from strandline.config.definition import invalid_value
from strandline.config.keys.topic import TOPIC_KEYS
from strandline.config.topic_config import TopicConfig
from strandline.config.values import InvalidConfig, parse, render

if TYPE_CHECKING:
    from strandline.config.dynamic import DynamicConfigs

_FROM_RETENTION = -2
_UNLIMITED = -1


def check_topic(configs: DynamicConfigs, overrides: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Raises InvalidConfig if a topic cannot have these overrides instead of those it had `before`."""
    for name, text in overrides.items():
        if name not in TOPIC_KEYS:
            raise InvalidConfig(name, text, f"Unknown topic config name: {name}")
    for name, text in overrides.items():
        parse(TOPIC_KEYS[name], text)
    settings = TopicConfig(configs.topic_values(overrides))
    least, most = settings.min_compaction_lag_ms, settings.max_compaction_lag_ms
    if least > most:
        message = (
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        )
        raise InvalidConfig("min.compaction.lag.ms", str(least), message)
    if settings.remote_storage_enable:
        _check_remote_storage(
            settings, offered=bool(configs.broker_value("remote.log.storage.system.enable"))
        )
    elif (
        before.get("remote.storage.enable", "").lower() == "true"
        and not settings.remote_log_delete_on_disable
    ):
        message = (
            "remote.storage.enable cannot be turned off while remote data is kept: set remote.log.copy.disable=true "
            "to keep and only read it, or remote.log.delete.on.disable=true to delete it"
        )
        raise InvalidConfig("remote.storage.enable", "false", message)


def _check_remote_storage(settings: TopicConfig, *, offered: bool) -> None:
    if not offered:
        message = "remote.storage.enable needs remote.log.storage.system.enable=true on the brokers"
        raise InvalidConfig("remote.storage.enable", "true", message)
    if settings.cleanup_policy not in ((), ("delete",)):
        message = "a topic with remote.storage.enable must have cleanup.policy=delete, or none"
        raise InvalidConfig("cleanup.policy", render(settings.cleanup_policy), message)
    bytes_pair = (settings.local_retention_bytes, settings.retention_bytes)
    _check_local("local.retention.bytes", "retention.bytes", *bytes_pair, settings.remote_log_copy_disable)
    ms_pair = (settings.local_retention_ms, settings.retention_ms)
    _check_local("local.retention.ms", "retention.ms", *ms_pair, settings.remote_log_copy_disable)


def _check_local(local_name: str, name: str, local: int, total: int, copy_disabled: bool) -> None:
    """Raises InvalidConfig if local retention would be longer than retention, or differ from it where nothing is
    copied."""
    if local == _FROM_RETENTION:
        return
    if total > _UNLIMITED and not _UNLIMITED < local <= total:
        rule = f"Value must be {_FROM_RETENTION} or at most {name} ({total})"
        raise InvalidConfig(local_name, str(local), invalid_value(local_name, local, rule))
    if copy_disabled and local != total:
        rule = f"Value must be {_FROM_RETENTION} or the same as {name} ({total}) with remote.log.copy.disable"
        raise InvalidConfig(local_name, str(local), invalid_value(local_name, local, rule))
