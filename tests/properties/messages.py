"""Random values of every declared message, made by walking its fields."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from hypothesis import strategies as st

import strandline.wire.api
import strandline.wire.records
from strandline.wire import headers
from strandline.wire.schema import Field, FieldType, Message, Struct

# Often such as a broker finds something behind them: that is where handlers do more than refuse.
SMALL = st.integers(-2, 4)
KNOWN = st.sampled_from(("t", "g", "1", "", "retention.ms", "range", "consumer"))
NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": SMALL | st.integers(-(1 << 7), (1 << 7) - 1),
    "int16": SMALL | st.integers(-(1 << 15), (1 << 15) - 1),
    "uint16": st.integers(0, (1 << 16) - 1),
    "int32": SMALL | st.integers(-(1 << 31), (1 << 31) - 1),
    "uint32": st.integers(0, (1 << 32) - 1),
    "int64": SMALL | st.integers(-(1 << 63), (1 << 63) - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
}
TEXT = KNOWN | st.text(st.characters(codec="utf-8"), max_size=6)
ELEMENTS_MAX = 3


def every_message() -> list[type[Message]]:
    """Requests, responses, headers, and records of internal logs and files."""
    modules = [headers]
    for package in (strandline.wire.api, strandline.wire.records):
        modules += [
            import_module(f"{package.__name__}.{entry.name}") for entry in iter_modules(package.__path__)
        ]
    found = {
        cls
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type)
        and issubclass(cls, Message)
        and cls.__module__ == module.__name__
        and cls.FIELDS is not Message.FIELDS
    }
    return sorted(found, key=lambda cls: (cls.__module__, cls.__name__))


def versions_of(cls: type[Message]) -> range:
    return range(cls.VERSIONS.low, cls.VERSIONS.high + 1)


def values(cls: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Messages that this version can carry: what it does not have is at its default."""
    fields = {f.name: _field(f, version) for f in cls.FIELDS}
    return st.builds(cls, **fields)


def _field(f: Field, version: int) -> st.SearchStrategy[Any]:
    if version not in f.versions:
        return st.just(_absent(f, version))
    made = _value(f.type, version)
    if version in f.nullable or (f.tag is not None and f.default is None):
        made = st.none() | made
    return made if f.is_required else st.just(f.default) | made


def _absent(f: Field, version: int) -> Any:
    return f.default if not f.is_required else None


def _value(kind: FieldType, version: int) -> st.SearchStrategy[Any]:
    if kind.name in NUMBERS:
        return NUMBERS[kind.name]
    if kind.name == "string":
        return TEXT
    if kind.name in ("bytes", "records"):
        return st.binary(max_size=8)
    if kind.name == "struct":
        return values(kind.element, version)
    assert kind.name == "array", kind
    element = kind.element
    inside = _value(element, version) if isinstance(element, FieldType) else values(element, version)
    return st.lists(inside, max_size=ELEMENTS_MAX).map(tuple)
