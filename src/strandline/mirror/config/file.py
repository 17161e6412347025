"""Reads the file of `strandline mirror`: MirrorMaker 2's properties, or the same as YAML.

clusters:
  east: {bootstrap.servers: "east:9092"}
  west: {bootstrap.servers: "west:9092"}
flows:
  east->west: {topics: [orders, payments], sync.group.offsets.enabled: true}
defaults: {replication.factor: 3}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strandline.config.properties import MalformedProperties, parse_properties
from strandline.mirror.config.settings import MirrorConfigError, MirrorSettings, mirror_settings

_PARTS = ("clusters", "flows", "defaults")


def settings_of_text(text: str, *, is_yaml: bool) -> MirrorSettings:
    """Returns the settings of a file's text. Raises MirrorConfigError."""
    if is_yaml:
        return mirror_settings(_properties_of_yaml(text))
    try:
        return mirror_settings({each.key: each.value for each in parse_properties(text)})
    except MalformedProperties as error:
        raise MirrorConfigError(str(error)) from error


def _properties_of_yaml(text: str) -> dict[str, str]:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise MirrorConfigError(
            "YAML needs a package: pip install pyyaml, or write the file as .properties"
        ) from error
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise MirrorConfigError(f"the file is no YAML: {error}") from error
    if not isinstance(document, dict):
        raise MirrorConfigError(f"the file must have the parts {', '.join(_PARTS)}")
    for part in document:
        if part not in _PARTS:
            raise MirrorConfigError(f"the file has a part {part}; there are only {', '.join(_PARTS)}")
    clusters = _mapping(document, "clusters")
    properties = {"clusters": ",".join(clusters)}
    properties |= {key: _text(value) for key, value in _mapping(document, "defaults").items()}
    for alias in clusters:
        properties |= {f"{alias}.{key}": _text(value) for key, value in _mapping(clusters, alias).items()}
    for name, settings in _mapping(document, "flows").items():
        properties[f"{name}.enabled"] = "true"
        properties |= {f"{name}.{key}": _text(value) for key, value in (settings or {}).items()}
    return properties


def _mapping(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name) or {}
    if not isinstance(value, dict):
        raise MirrorConfigError(f"{name} must be names with their settings")
    return {str(key): each for key, each in value.items()}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)
