"""The bodies of requests, read as Confluent's JSON reader does: unknown attributes are ignored, wrong types refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from strandline.registry import errors
from strandline.registry.formats.levels import LEVELS
from strandline.registry.formats.parsed import Reference
from strandline.registry.model.rules import InvalidRule, Json, check_rule_set, read_metadata, read_rule_set
from strandline.registry.model.stored_schema import digest_of, guid_of

MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
_POLICIES: Final = ("STRICT", "LENIENT")
TEXT_MAX: Final = 1_000_000  # characters; a longer schema fits into no record
_INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterRequest:
    """A schema as a client sends it. Version 0 and id -1 mean that the registry chooses them."""

    text: str | None
    type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: Json | None = None
    rule_set: Json | None = None
    version: int = 0
    id: int = -1

    def shown(self, subject: str, *, has_numbers: bool = False) -> str:
        """Returns the request as it appears in messages about it, with the numbers that mean "none" or without."""
        guid = (
            None
            if self.text is None
            else guid_of(digest_of(self.text, self.references, self.metadata, self.rule_set))
        )
        values = {
            "subject": subject, "version": self.version if has_numbers or self.version else None,
            "id": self.id if has_numbers or self.id >= 0 else None,
            "guid": guid, "schemaType": self.type, "references": shown_references(self.references),
            "metadata": self.metadata,
            "ruleSet": self.rule_set, "schema": self.text, "schemaTags": None, "ts": None, "deleted": None,
        }  # fmt: skip
        return "{" + ",".join(f"{k}={'null' if v is None else v}" for k, v in values.items()) + "}"


def shown_references(references: tuple[Reference, ...]) -> str:
    """Returns references as they appear in messages."""
    return (
        "[" + ", ".join(_shown_reference(each.name, each.subject, each.version) for each in references) + "]"
    )


def _shown_reference(name: str | None, subject: str | None, version: Any) -> str:
    shown = [f"{name or 'null'}", f"{subject or 'null'}", "null" if version is None else str(version)]
    return f"{{name='{shown[0]}', subject='{shown[1]}', version={shown[2]}}}"


def read_register_request(body: Json) -> RegisterRequest:
    references = [] if body.get("references") is None else body["references"]
    if not isinstance(references, list):
        raise errors.bad_request("Cannot deserialize the request: references is not an array")
    try:
        text = _optional_text(body, "schema")
        if text is not None and len(text) > TEXT_MAX:
            raise errors.schema_too_large()
        return RegisterRequest(
            text=text,
            type="AVRO" if body.get("schemaType") is None else str(_optional_text(body, "schemaType")),
            references=tuple(_reference(each) for each in references),
            metadata=read_metadata(body.get("metadata")),
            rule_set=read_rule_set(body.get("ruleSet")),
            version=_optional_int(body, "version", 0),
            id=_optional_int(body, "id", -1),
        )
    except ValueError as error:
        raise errors.bad_request(f"Cannot deserialize the request: {error}") from error


def checked_rule_set(rule_set: Json | None) -> None:
    try:
        check_rule_set(rule_set)
    except InvalidRule as error:
        raise errors.invalid_rule_set(str(error)) from error


def read_config_update(body: Json) -> Json:
    """Returns the changes that a request asks for, by the names of the stored config. The value None deletes a
    setting."""
    changes: Json = {}
    try:
        for key in ("alias", "aliasForDeks", "compatibilityGroup"):
            if key in body:
                changes[key] = _optional_text(body, key)
        for key in ("normalize", "validateFields", "validateNewSchemas", "validateRules"):
            if key in body:
                changes[key] = _optional_bool(body, key)
        for key in ("defaultMetadata", "overrideMetadata"):
            if key in body:
                changes[key] = read_metadata(body[key])
        for key in ("defaultRuleSet", "overrideRuleSet"):
            if key in body:
                changes[key] = read_rule_set(body[key])
        if "compatibility" in body:
            changes["compatibilityLevel"] = _level(_optional_text(body, "compatibility"))
        if "compatibilityPolicy" in body:
            policy = _optional_text(body, "compatibilityPolicy")
            changes["compatibilityPolicy"] = (
                policy.upper() if policy and policy.upper() in _POLICIES else None
            )
    except ValueError as error:
        raise errors.bad_request(f"Cannot deserialize the request: {error}") from error
    checked_rule_set(changes.get("defaultRuleSet"))
    checked_rule_set(changes.get("overrideRuleSet"))
    return changes


def _level(text: str | None) -> str | None:
    if text is None:
        return None
    if text.upper() not in LEVELS:
        raise errors.invalid_compatibility()
    return text.upper()


def read_mode(body: Json) -> str | None:
    """Returns the mode that a request asks for; None deletes it."""
    try:
        text = _optional_text(body, "mode")
    except ValueError as error:
        raise errors.bad_request(f"Cannot deserialize the request: {error}") from error
    if "mode" not in body:
        raise errors.invalid_mode()
    if text is None:
        return None
    if text.upper() not in MODES:
        raise errors.invalid_mode()
    return text.upper()


def read_version(text: str) -> int:
    """Returns a version in a path; -1 is the latest."""
    plain = text.strip()
    if plain.lower() == "latest":
        return -1
    digits = plain[1:] if plain[:1] in "+-" else plain
    if not (digits.isascii() and digits.isdecimal()) or not -_INT_MAX - 1 <= int(plain) <= _INT_MAX:
        raise errors.invalid_version(text)
    version = int(plain)
    if version <= 0 and version != -1:
        raise errors.invalid_version(version)
    return version


def _reference(value: Any) -> Reference:
    if not isinstance(value, dict):
        raise ValueError("a reference is not an object")
    name, subject = _optional_text(value, "name"), _optional_text(value, "subject")
    version = value.get("version")
    if name is None or subject is None or version is None:
        raise errors.invalid_schema(f"Invalid reference: {_shown_reference(name, subject, version)}")
    return Reference(name, subject, _optional_int(value, "version", 0))


def _optional_text(body: Json, key: str) -> str | None:
    value = body.get(key)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ValueError(f"{key} is not text")


def _optional_int(body: Json, key: str, default: int) -> int:
    value = body.get(key)
    if value is None:
        return default
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
        value = int(value)
    if isinstance(value, float):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _INT_MAX:
        raise ValueError(f"{key} is not a number of 32 bits")
    return value


def _optional_bool(body: Json, key: str) -> bool | None:
    value = body.get(key)
    if value is None or isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise ValueError(f"{key} is neither true nor false")
