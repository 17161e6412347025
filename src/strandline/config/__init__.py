"""The settings of nodes, topics, groups and clients: each is declared once.

`BrokerConfig` has the settings with which a node starts. `DynamicConfigs` adds those that change while it runs, and
makes the `TopicConfig` of each topic. The functions of `alter` decide what may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from strandline.config.alter import (
        Altered,
        ConfigAlteration,
        RefusedAlteration,
        alter_broker,
        alter_client_metrics,
        alter_group,
        alter_topic,
        create_topic,
        keep_broker_changes,
        keep_broker_replacement,
        misdirected,
        replace_broker,
        replace_client_metrics,
        replace_group,
        replace_topic,
    )
    from strandline.config.broker_config import BrokerConfig, ConfigWarning
    from strandline.config.describe import ConfigSynonym, DescribedConfig
    from strandline.config.dynamic import DynamicConfigs
    from strandline.config.listeners import Listener
    from strandline.config.properties import (
        MalformedProperties,
        Property,
        parse_properties,
        render_properties,
    )
    from strandline.config.topic_config import TopicConfig
    from strandline.config.values import InvalidConfig

__all__ = [
    "Altered",
    "BrokerConfig",
    "ConfigAlteration",
    "ConfigSynonym",
    "ConfigWarning",
    "DescribedConfig",
    "DynamicConfigs",
    "InvalidConfig",
    "Listener",
    "MalformedProperties",
    "Property",
    "RefusedAlteration",
    "TopicConfig",
    "alter_broker",
    "alter_client_metrics",
    "alter_group",
    "alter_topic",
    "create_topic",
    "keep_broker_changes",
    "keep_broker_replacement",
    "misdirected",
    "parse_properties",
    "render_properties",
    "replace_broker",
    "replace_client_metrics",
    "replace_group",
    "replace_topic",
]

# These are imported on first use: a client needs a few definitions, and not the settings of brokers, which take long to
# import.
_HOMES: Final = {
    "Altered": "alter",
    "BrokerConfig": "broker_config",
    "ConfigAlteration": "alter",
    "ConfigSynonym": "describe",
    "ConfigWarning": "broker_config",
    "DescribedConfig": "describe",
    "DynamicConfigs": "dynamic",
    "InvalidConfig": "values",
    "Listener": "listeners",
    "MalformedProperties": "properties",
    "Property": "properties",
    "RefusedAlteration": "alter",
    "TopicConfig": "topic_config",
    "alter_broker": "alter",
    "alter_client_metrics": "alter",
    "alter_group": "alter",
    "alter_topic": "alter",
    "create_topic": "alter",
    "keep_broker_changes": "alter",
    "keep_broker_replacement": "alter",
    "misdirected": "alter",
    "parse_properties": "properties",
    "render_properties": "properties",
    "replace_broker": "alter",
    "replace_client_metrics": "alter",
    "replace_group": "alter",
    "replace_topic": "alter",
}

if not TYPE_CHECKING:  # a checker that sees this would let any name pass
    __getattr__ = lazy_names(__name__, _HOMES)
