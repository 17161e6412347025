"""Finds the config and the mode of a subject: its own, its context's, those of `:.__GLOBAL:`, or the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from strandline.registry.model.rules import Json
from strandline.registry.model.state import RegistryState
from strandline.registry.model.subjects import (
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT_SUBJECT,
    QualifiedSubject,
    context_of,
    is_global_context,
)

DEFAULT_LEVEL: Final = "BACKWARD"
READWRITE: Final = "READWRITE"
_READONLY: Final = ("READONLY", "READONLY_OVERRIDE")
_IMPORTING: Final = ("IMPORT", "FORWARD")
# If a subject's config does not set these, the global config counts.
_INHERITED: Final = (
    "normalize", "validateFields", "validateNewSchemas", "validateRules", "compatibilityPolicy",
    "compatibilityGroup",
)  # fmt: skip
CONFIG_KEYS: Final = (
    "alias", "aliasForDeks", "normalize", "validateFields", "validateNewSchemas", "validateRules",
    "compatibilityLevel", "compatibilityPolicy", "compatibilityGroup", "defaultMetadata", "overrideMetadata",
    "defaultRuleSet", "overrideRuleSet",
)  # fmt: skip

T = TypeVar("T")


def own_config(state: RegistryState, subject: str | None, default_level: str) -> Json | None:
    """Returns the config that was set for exactly this subject or context; the default for the global one."""
    found = state.configs.get(subject)
    if found is not None:
        return _with_level(found, default_level)
    if subject is None or is_global_context(subject):
        return {"compatibilityLevel": default_level}
    return None


def config_in_scope(state: RegistryState, subject: str | None, default_level: str) -> Json:
    own = own_config(state, subject, default_level)
    if subject is None or own is None:
        found = _in_scope(state.configs, subject)
        return _with_level(found or {}, default_level)
    global_config = own_config(state, None, default_level) or {}
    merged = own | {key: global_config[key] for key in _INHERITED if key in global_config and key not in own}
    return ordered_config(merged)


def own_mode(state: RegistryState, subject: str | None) -> str | None:
    found = state.modes.get(subject)
    if found is not None:
        return found
    return READWRITE if subject is None or is_global_context(subject) else None


def mode_in_scope(state: RegistryState, subject: str | None) -> str:
    return _in_scope(state.modes, subject) or READWRITE


def is_readonly(state: RegistryState, subject: str | None) -> bool:
    return mode_in_scope(state, subject) in _READONLY


def is_importing(mode: str) -> bool:
    """True in modes in which the client chooses ids, and schemas are not checked against earlier versions."""
    return mode in _IMPORTING


def ordered_config(config: Json) -> Json:
    return {key: config[key] for key in CONFIG_KEYS if config.get(key) is not None}


def _with_level(config: Json, default_level: str) -> Json:
    if config.get("compatibilityLevel") is None:
        config = config | {"compatibilityLevel": default_level}
    return ordered_config({key: value for key, value in config.items() if value != ""})


def _in_scope(settings: Mapping[str | None, T], subject: str | None) -> T | None:
    found = settings.get(subject)
    if found is not None:
        return found
    if context_of(subject) == DEFAULT_CONTEXT:
        found = settings.get(None)
    else:
        assert subject is not None
        found = settings.get(QualifiedSubject.parse(subject).qualified_context)
    return settings.get(GLOBAL_CONTEXT_SUBJECT) if found is None else found
