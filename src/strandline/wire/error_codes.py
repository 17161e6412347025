"""The error codes in a response, at all levels of its fields."""

from __future__ import annotations

from functools import cache
from typing import Any

from strandline.wire.schema import Message, Struct


def error_codes(message: Message) -> list[int]:
    """Returns every error code of a response that is not 0, in the order of its fields."""
    found: list[int] = []
    _collect(message, type(message), found)
    return found


def _collect(value: Any, cls: type[Struct], found: list[int]) -> None:
    has_code, inner = _places(cls)
    if has_code and value.error_code:
        found.append(value.error_code)
    for name, element in inner:
        each = getattr(value, name)
        if isinstance(each, Struct):
            _collect(each, element, found)
        elif each:
            for one in each:
                _collect(one, element, found)


@cache
def _places(cls: type[Struct]) -> tuple[bool, tuple[tuple[str, type[Struct]], ...]]:
    """Returns whether a class has an error code, and its fields with classes that have one at some level."""
    has_code = any(field.name == "error_code" for field in cls.FIELDS)
    inner = []
    for field in cls.FIELDS:
        element = field.type.element
        if isinstance(element, type) and issubclass(element, Struct) and any(_places(element)):
            inner.append((field.name, element))
    return has_code, tuple(inner)
