"""Decides whether a JSON value may be the default of a field, by the rules of Java's library."""

from __future__ import annotations

from typing import Any, Final

from strandline.registry.formats.avro.types import NO_DEFAULT, AvroType

_INT_MIN: Final = -(2**31)
_INT_MAX: Final = 2**31 - 1
_LONG_MIN: Final = -(2**63)
_LONG_MAX: Final = 2**63 - 1


def is_valid_default(type: AvroType, value: Any) -> bool:
    if type.kind == "union":
        return any(_is_valid(branch, value) for branch in type.branches)
    return _is_valid(type, value)


def _is_valid(type: AvroType, value: Any) -> bool:
    if value is NO_DEFAULT:
        return False
    match type.kind:
        case "string" | "bytes" | "enum" | "fixed":
            return isinstance(value, str)
        case "int":
            return _is_integer(value) and _INT_MIN <= value <= _INT_MAX
        case "long":
            return _is_integer(value) and _LONG_MIN <= value <= _LONG_MAX
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            assert type.items is not None
            return isinstance(value, list) and all(_is_valid(type.items, each) for each in value)
        case "map":
            assert type.items is not None
            return isinstance(value, dict) and all(_is_valid(type.items, each) for each in value.values())
        case "union":
            return any(_is_valid(branch, value) for branch in type.branches)
        case "record":
            return isinstance(value, dict) and all(
                _is_valid(field.type, value.get(field.name, field.default)) for field in type.fields
            )
        case _:
            raise AssertionError(type.kind)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
