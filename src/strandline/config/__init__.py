"""Every setting: declared once, read from text, resolved while a cluster runs, described, changed, documented.

`BrokerConfig` is what a node starts with; `DynamicConfigs` lays over it what changes while it runs, and gives
each topic its `TopicConfig`; the functions of `alter` decide what may change.
"""

from __future__ import annotations

from strandline.config.alter import (
    Altered,
    ConfigChange,
    Refused,
    alter_broker,
    alter_group,
    alter_topic,
    create_topic,
    keep_broker_changes,
    keep_broker_replacement,
    misdirected,
    replace_broker,
    replace_group,
    replace_topic,
)
from strandline.config.broker_config import BrokerConfig, ConfigWarning
from strandline.config.describe import ConfigEntry, ConfigSynonym
from strandline.config.dynamic import DynamicConfigs
from strandline.config.listeners import Listener
from strandline.config.properties import MalformedProperties, Property, parse_properties, render_properties
from strandline.config.topic_config import TopicConfig
from strandline.config.values import InvalidConfig

__all__ = [
    "Altered",
    "BrokerConfig",
    "ConfigChange",
    "ConfigEntry",
    "ConfigSynonym",
    "ConfigWarning",
    "DynamicConfigs",
    "InvalidConfig",
    "Listener",
    "MalformedProperties",
    "Property",
    "Refused",
    "TopicConfig",
    "alter_broker",
    "alter_group",
    "alter_topic",
    "create_topic",
    "keep_broker_changes",
    "keep_broker_replacement",
    "misdirected",
    "parse_properties",
    "render_properties",
    "replace_broker",
    "replace_group",
    "replace_topic",
]
