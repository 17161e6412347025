"""Metadata and rule sets: their one JSON form, how they are checked, merged and hashed.

Both are dictionaries in the form in which they are stored and returned: sets and maps are sorted, empty parts are left
out. The rules that transform data are for clients; the registry only stores them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

CONFLUENT_VERSION: Final = "confluent:version"
_RULE_LISTS: Final = ("migrationRules", "domainRules", "encodingRules")
_KINDS: Final = ("CONDITION", "TRANSFORM")
_MIGRATION_MODES: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_DOMAIN_MODES: Final = ("WRITE", "READ", "WRITEREAD")
_ENVIRONMENTS: Final = ("NONE", "ALL", "SERVER", "GATEWAY", "CLIENT")
_NAME_MAX: Final = 256
_NAME_START: Final = re.compile(r"[^\W\d]|_")
_NAME_REST: Final = re.compile(r"[\w-]*\Z")

Json = dict[str, Any]


class InvalidRule(ValueError):
    """A rule set is invalid."""


def read_metadata(value: Any) -> Json | None:
    """Returns the form that is stored. ValueError if the value has another shape."""
    if value is None:
        return None
    _require(isinstance(value, dict), "metadata is not an object")
    made: Json = {}
    tags = {} if value.get("tags") is None else value["tags"]
    _require(isinstance(tags, dict), "tags is not an object")
    if tags:
        made["tags"] = {key: _texts(tags[key], "tags") for key in sorted(tags)}
    properties = {} if value.get("properties") is None else value["properties"]
    _require(isinstance(properties, dict), "properties is not an object")
    if properties:
        made["properties"] = {key: _text(properties[key]) for key in sorted(properties)}
    sensitive = _texts(value.get("sensitive") or [], "sensitive")
    if sensitive:
        made["sensitive"] = sensitive
    return made


def read_rule_set(value: Any) -> Json | None:
    """Returns the form that is stored. ValueError if the value has another shape."""
    if value is None:
        return None
    _require(isinstance(value, dict), "ruleSet is not an object")
    made: Json = {}
    for name in _RULE_LISTS:
        rules = [] if value.get(name) is None else value[name]
        _require(isinstance(rules, list), f"{name} is not an array")
        if rules:
            made[name] = [_read_rule(rule) for rule in rules]
    if value.get("enableAt") is not None:
        made["enableAt"] = _one_of(value["enableAt"], _ENVIRONMENTS, "")
    return made


def _read_rule(value: Any) -> Json:
    _require(isinstance(value, dict), "a rule is not an object")
    made: Json = {}
    for key in ("name", "doc"):
        if value.get(key):
            made[key] = _text(value[key])
    if value.get("name") == "":
        made["name"] = ""
    made["kind"] = _one_of(value.get("kind"), _KINDS, "TRANSFORM")
    made["mode"] = _one_of(value.get("mode"), (*_MIGRATION_MODES, *_DOMAIN_MODES), "WRITEREAD")
    if value.get("type") is not None:
        made["type"] = _text(value["type"])
    tags = _texts(value.get("tags") or [], "tags")
    if tags:
        made["tags"] = tags
    params = {} if value.get("params") is None else value["params"]
    _require(isinstance(params, dict), "params is not an object")
    if params:
        made["params"] = {key: _text(params[key]) for key in sorted(params)}
    for key in ("expr", "onSuccess", "onFailure"):
        if value.get(key):
            made[key] = _text(value[key])
    made["disabled"] = bool(value.get("disabled", False))
    return made


def check_rule_set(rule_set: Json | None) -> None:
    """Raises InvalidRule if names are missing, wrong or duplicate, or if a mode does not fit its list."""
    if rule_set is None:
        return
    seen: set[str] = set()
    for name in _RULE_LISTS:
        modes = _MIGRATION_MODES if name == "migrationRules" else _DOMAIN_MODES
        for rule in rule_set.get(name, ()):
            if rule.get("name") in seen:
                raise InvalidRule(f"Found rule with duplicate name '{rule.get('name')}'")
            _check_rule(rule)
            seen.add(rule["name"])
            if rule["mode"] not in modes:
                what = name.removesuffix("Rules").capitalize()
                raise InvalidRule(f"{what} rules can only be {', '.join(modes)}")


def _check_rule(rule: Json) -> None:
    name = rule.get("name")
    if name is None:
        raise InvalidRule("Missing rule name")
    if not name:
        raise InvalidRule("Empty rule name")
    if len(name) > _NAME_MAX:
        raise InvalidRule("Rule name too long")
    if _NAME_START.match(name) is None:
        raise InvalidRule(f"Illegal initial character in rule name: {name}")
    if _NAME_REST.match(name, 1) is None:
        raise InvalidRule(f"Illegal character in rule name: {name}")
    if rule.get("type") is None:
        raise InvalidRule("Missing rule type")
    for action in ("onSuccess", "onFailure"):
        if rule["mode"] not in ("WRITEREAD", "UPDOWN") and "," in rule.get(action, ""):
            raise InvalidRule("Multiple actions only valid with WRITEREAD and UPDOWN")


def merge_metadata(old: Json | None, new: Json | None) -> Json | None:
    """Returns both together; if both have a key, the new value counts."""
    if old is None or new is None:
        return new if old is None else old
    made: Json = {}
    for name in ("tags", "properties"):
        both = old.get(name, {}) | new.get(name, {})
        if both:
            made[name] = {key: both[key] for key in sorted(both)}
    sensitive = sorted({*old.get("sensitive", ()), *new.get("sensitive", ())})
    if sensitive:
        made["sensitive"] = sensitive
    return made


def merge_rule_sets(old: Json | None, new: Json | None) -> Json | None:
    """Returns both together; a new rule replaces an old one of the same name in the same list."""
    if old is None or new is None:
        return new if old is None else old
    made: Json = {}
    for name in _RULE_LISTS:
        names = {rule["name"] for rule in new.get(name, ())}
        rules = [rule for rule in old.get(name, ()) if rule["name"] not in names] + new.get(name, [])
        if rules:
            made[name] = rules
    enable_at = new.get("enableAt", old.get("enableAt"))
    if enable_at is not None:
        made["enableAt"] = enable_at
    return made


def confluent_version(metadata: Json | None) -> str | None:
    """Returns the version that a client has written into the metadata, as text."""
    if metadata is None:
        return None
    version: str | None = metadata.get("properties", {}).get(CONFLUENT_VERSION)
    return version


def with_confluent_version(metadata: Json | None, version: int | None) -> Json:
    """Returns the metadata with this version in it, or with none."""
    made = dict(metadata or {})
    properties = dict(made.get("properties", {}))
    properties.pop(CONFLUENT_VERSION, None)
    if version is not None:
        properties[CONFLUENT_VERSION] = str(version)
    made.pop("properties", None)
    if properties:
        made["properties"] = {key: properties[key] for key in sorted(properties)}
    return {key: made[key] for key in ("tags", "properties", "sensitive") if key in made}


def has_rule_of_type(rule_set: Json | None, type: str) -> bool:
    return rule_set is not None and any(
        rule.get("type") == type for name in _RULE_LISTS for rule in rule_set.get(name, ())
    )


def hashed_metadata(metadata: Json) -> Iterable[bytes]:
    """Returns the bytes that stand for metadata in a schema's guid."""
    for key, values in metadata.get("tags", {}).items():
        yield from (text.encode() for text in (key, *values))
    for key, value in metadata.get("properties", {}).items():
        yield from (key.encode(), value.encode())
    yield from (text.encode() for text in metadata.get("sensitive", ()))


def hashed_rule_set(rule_set: Json) -> Iterable[bytes]:
    """Returns the bytes that stand for a rule set in a schema's guid."""
    for name in _RULE_LISTS:
        for rule in rule_set.get(name, ()):
            yield from (rule[key].encode() for key in ("name", "doc", "kind", "mode", "type") if key in rule)
            yield from (text.encode() for text in rule.get("tags", ()))
            for key, value in rule.get("params", {}).items():
                yield from (key.encode(), value.encode())
            yield from (rule[key].encode() for key in ("expr", "onSuccess", "onFailure") if key in rule)
            if rule["disabled"]:
                yield b"\1"
    if "enableAt" in rule_set:
        yield rule_set["enableAt"].encode()


def _texts(values: Any, what: str) -> list[str]:
    _require(isinstance(values, list), f"{what} is not an array")
    return sorted({_text(value) for value in values})


def _text(value: Any) -> str:
    """Returns text as Java's JSON reader takes it: numbers and booleans become text, objects do not."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    _require(isinstance(value, str), f"{value!r} is not text")
    return str(value)


def _one_of(value: Any, allowed: tuple[str, ...], default: str) -> str:
    if value is None:
        return default
    _require(value in allowed, f"{value!r} is none of {', '.join(allowed)}")
    return str(value)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
