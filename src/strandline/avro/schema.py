"""An Avro schema as values: what a schema's JSON says, checked, with names looked up.

Columns have one type each, so two things that Avro has cannot be: a type within itself, and a union of anything but one
type and null. Both are refused here. A mistake knows its way through the JSON, from which a reader of files makes a
line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DECIMAL_DIGITS_MAX: Final = 38  # of Arrow's decimal128, and of Spark's
# By logical type, the types that it may stand on. Others are ignored, as Avro demands.
_LOGICAL: Final = {
    "date": ("int",),
    "decimal": ("bytes", "fixed"),
    "local-timestamp-micros": ("long",),
    "local-timestamp-millis": ("long",),
    "time-micros": ("long",),
    "time-millis": ("int",),
    "timestamp-micros": ("long",),
    "timestamp-millis": ("long",),
    "uuid": ("string",),
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_SIMPLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIXED_BYTES_MAX: Final = 1 << 20  # a larger one is a slip of the pen

Way = tuple[str | int, ...]
"""Keys and indexes from the root of the JSON to a place in it."""


class AvroSchemaError(ValueError):
    """What is wrong with a schema, and where."""

    def __init__(self, way: Way, text: str) -> None:
        self.way = way
        super().__init__(text)


class Missing:
    """Stands for a default that a field does not have: null may be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Primitive:
    """`logical` is one that counts here. A fixed has a size; a decimal on either has precision and scale."""

    kind: str  # one of PRIMITIVES, or fixed
    logical: str | None = None
    size: int = 0
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Enum:
    symbols: tuple[str, ...]
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    items: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    values: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """One type and perhaps null; `null_index` is the branch that is null, or -1."""

    inner: Type
    null_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    name: str
    type: Type
    aliases: tuple[str, ...] = ()
    default: object = field(default_factory=Missing)

    @property
    def has_default(self) -> bool:
        return not isinstance(self.default, Missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    fields: tuple[Field, ...]


Type = Primitive | Enum | Array | Map | Union | Record


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroSource:
    """Schemas as JSON. `reader` is that of the columns; `writer` that of the values if it is another one, or `framed`
    all of those by their numbers if values begin with one."""

    reader: str
    writer: str | None = None
    framed: tuple[tuple[int, str], ...] | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> AvroSource:
        found = json.loads(text)
        framed = found["framed"]
        pairs = None if framed is None else tuple((int(number), schema) for number, schema in framed)
        return cls(reader=found["reader"], writer=found["writer"], framed=pairs)


def read_schema(given: object) -> Record:
    """The schema of this JSON. What is no record becomes one with the single field `value`, whose bytes are the same.
    Raises AvroSchemaError."""
    found = _Reader().read(given, (), "")
    return found if isinstance(found, Record) else Record(fields=(Field(name="value", type=found),))


def bytes_min(of: Type) -> int:
    """The fewest bytes that a value takes."""
    match of:
        case Primitive(kind="null"):
            return 0
        case Primitive(kind="fixed"):
            return of.size
        case Primitive(kind="float"):
            return 4
        case Primitive(kind="double"):
            return 8
        case Record():
            return sum(bytes_min(each.type) for each in of.fields)
    return 1


class _Reader:
    def __init__(self) -> None:
        self._named: dict[str, Type] = {}
        self._open: list[str] = []  # names of the records that are being read

    def read(self, given: object, way: Way, namespace: str) -> Type:
        if given is None:  # YAML's null without quotes
            given = "null"
        if isinstance(given, str):
            return self._reference(given, way, namespace)
        if isinstance(given, Sequence):
            return self._union(given, way, namespace)
        if not isinstance(given, Mapping):
            raise AvroSchemaError(way, f"{given!r} is no type: it must be a name, an object or a list")
        if "type" not in given:
            raise AvroSchemaError(way, "a type without `type`")
        kind = given["type"]
        match kind:
            case "record":
                return self._record(given, way, namespace)
            case "enum":
                return self._enum(given, way, namespace)
            case "fixed":
                return self._fixed(given, way, namespace)
            case "array":
                return Array(items=self._items(given, "items", way, namespace))
            case "map":
                return Map(values=self._items(given, "values", way, namespace))
            case str() if kind in PRIMITIVES:
                return _with_logical(Primitive(kind=kind), given, way)
        return self.read(kind, (*way, "type"), namespace)

    def _reference(self, name: str, way: Way, namespace: str) -> Type:
        if name in PRIMITIVES:
            return Primitive(kind=name)
        for full in (_full_name(name, namespace), name):
            if full in self._open:
                text = f"{full} is within itself: a recursive type cannot be columns"
                raise AvroSchemaError(way, f"{text}. Read such values as raw, and decode them in a transform")
            if full in self._named:
                return self._named[full]
        raise AvroSchemaError(way, f"there is no type {name!r} before this")

    def _union(self, given: Sequence[object], way: Way, namespace: str) -> Type:
        branches = [self.read(each, (*way, at), namespace) for at, each in enumerate(given)]
        nulls = [at for at, each in enumerate(branches) if each == Primitive(kind="null")]
        others = [each for at, each in enumerate(branches) if at not in nulls]
        if len(others) > 1 or len(nulls) > 1:
            text = "a union may have one type and null, because a column has one type"
            raise AvroSchemaError(way, f"{text}. Read such values as raw, and decode them in a transform")
        if not branches:
            raise AvroSchemaError(way, "a union of nothing")
        if any(isinstance(each, Union) for each in others):
            raise AvroSchemaError(way, "a union within a union")
        inner = others[0] if others else Primitive(kind="null")
        return Union(inner=inner, null_index=nulls[0] if nulls else -1)

    def _items(self, given: Mapping[str, Any], key: str, way: Way, namespace: str) -> Type:
        if key not in given:
            raise AvroSchemaError(way, f"{given['type']} without `{key}`")
        found = self.read(given[key], (*way, key), namespace)
        # Otherwise a few bytes could stand for any number of rows.
        if key == "items" and bytes_min(found) == 0:
            raise AvroSchemaError((*way, key), "an array of what takes no bytes")
        return found

    def _record(self, given: Mapping[str, Any], way: Way, namespace: str) -> Record:
        name = self._new_name(given, way, namespace)
        listed = given.get("fields")
        if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
            raise AvroSchemaError(way, f"record {name} without `fields`")
        self._open.append(name)
        inner = name.rpartition(".")[0]
        fields: list[Field] = []
        for at, each in enumerate(listed):
            here = (*way, "fields", at)
            if not isinstance(each, Mapping) or "type" not in each:
                raise AvroSchemaError(here, "a field must have `name` and `type`")
            if not _SIMPLE_NAME.fullmatch(str(each.get("name", ""))):
                raise AvroSchemaError(here, f"{each.get('name')!r} cannot be a field's name")
            if any(each["name"] == other.name for other in fields):
                raise AvroSchemaError(here, f"the field {each['name']} is there twice")
            found = Field(
                name=each["name"],
                type=self.read(each["type"], (*here, "type"), inner),
                aliases=tuple(each.get("aliases") or ()),
                default=each["default"] if "default" in each else Missing(),
            )
            fields.append(found)
        self._open.pop()
        made = Record(fields=tuple(fields))
        self._named[name] = made
        return made

    def _enum(self, given: Mapping[str, Any], way: Way, namespace: str) -> Enum:
        name = self._new_name(given, way, namespace)
        symbols = given.get("symbols")
        if not isinstance(symbols, Sequence) or isinstance(symbols, str) or not symbols:
            raise AvroSchemaError(way, f"enum {name} without `symbols`")
        texts = tuple(map(str, symbols))
        if len(set(texts)) < len(texts):
            raise AvroSchemaError((*way, "symbols"), f"enum {name} has a symbol twice")
        default = given.get("default")
        if default is not None and default not in texts:
            raise AvroSchemaError((*way, "default"), f"{default!r} is no symbol of enum {name}")
        made = Enum(symbols=texts, default=default)
        self._named[name] = made
        return made

    def _fixed(self, given: Mapping[str, Any], way: Way, namespace: str) -> Primitive:
        name = self._new_name(given, way, namespace)
        size = given.get("size")
        if not isinstance(size, int) or not 0 <= size <= _FIXED_BYTES_MAX:
            raise AvroSchemaError(way, f"fixed {name} needs a `size` of 0 to {_FIXED_BYTES_MAX}")
        made = _with_logical(Primitive(kind="fixed", size=size), given, way)
        self._named[name] = made
        return made

    def _new_name(self, given: Mapping[str, Any], way: Way, namespace: str) -> str:
        name = given.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise AvroSchemaError(way, f"{given['type']} needs a `name`, and {name!r} is none")
        full = _full_name(name, str(given.get("namespace", namespace)))
        if full in self._named or full in self._open:
            raise AvroSchemaError(way, f"there is a type {full} already")
        return full


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _with_logical(plain: Primitive, given: Mapping[str, Any], way: Way) -> Primitive:
    logical = given.get("logicalType")
    if plain.kind not in _LOGICAL.get(str(logical), ()):
        return plain
    if logical != "decimal":
        return Primitive(kind=plain.kind, logical=str(logical), size=plain.size)
    precision, scale = given.get("precision"), given.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision:
        raise AvroSchemaError(way, "a decimal needs a `precision`, and a `scale` that is not larger")
    if not 0 < precision <= DECIMAL_DIGITS_MAX:
        raise AvroSchemaError(
            way, f"a decimal has 1 to {DECIMAL_DIGITS_MAX} digits here, and not {precision}"
        )
    return Primitive(kind=plain.kind, logical="decimal", size=plain.size, precision=precision, scale=scale)
