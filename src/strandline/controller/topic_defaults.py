"""The settings of a new topic that its request does not name: they come from the controller's configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strandline.base.errors import ErrorCode, KafkaError
from strandline.config import DynamicConfigs, RefusedAlteration, create_topic
from strandline.config.describe import created_topic_entries
from strandline.wire.api.k19_create_topics import CreatableTopicConfigs


def partition_count(configs: DynamicConfigs) -> int:
    """Returns the value of `num.partitions`."""
    return configs.broker_int("num.partitions")


def replication_factor(configs: DynamicConfigs) -> int:
    """Returns the value of `default.replication.factor`."""
    return configs.broker_int("default.replication.factor")


def topic_overrides(
    configs: DynamicConfigs, requested: Sequence[tuple[str, str | None]]
) -> Mapping[str, str]:
    """Returns the overrides that a request's configs amount to; raises INVALID_CONFIG if no topic can have them."""
    decided = create_topic(configs, requested)
    if isinstance(decided, RefusedAlteration):
        raise KafkaError(ErrorCode[decided.error], decided.message)
    return decided.overrides


def effective_configs(
    configs: DynamicConfigs, overrides: Mapping[str, str]
) -> tuple[CreatableTopicConfigs, ...]:
    """Returns the configs of a topic with these overrides, for the response of CreateTopics."""
    return tuple(
        CreatableTopicConfigs(
            name=entry.name,
            value=None if entry.is_sensitive else entry.value,
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in created_topic_entries(configs, overrides)
    )
