"""An Avro schema as values: parsed from its JSON, checked, with names resolved.

A column has one type, so two constructs of Avro are refused here: recursive types, and unions of anything but one type
and null. An error has its path through the JSON, from which a reader of files computes a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DECIMAL_DIGITS_MAX: Final = 38  # the limit of Arrow's decimal128, and of Spark
# By logical type, the types that it may annotate. Others are ignored, as Avro requires.
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
_FIXED_BYTES_MAX: Final = 1 << 20  # a larger size is surely a mistake

JsonPath = tuple[str | int, ...]
"""Keys and indexes from the root of the JSON to a place in it."""


class AvroSchemaError(ValueError):
    """A mistake in a schema, with its path in the JSON."""

    def __init__(self, path: JsonPath, text: str) -> None:
        self.path = path
        super().__init__(text)


class Missing:
    """Stands for the default of a field that has none: null may be a default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimitiveType:
    """A primitive type or fixed. `logical` is a logical type that has an effect here. A fixed has a size; a decimal
    on either has precision and scale."""

    kind: str  # one of PRIMITIVES, or fixed
    logical: str | None = None
    size: int = 0
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumType:
    """A type whose values are symbols from a list."""

    symbols: tuple[str, ...]
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayType:
    """A type whose values are lists of one other type."""

    items: AvroType


@dataclass(frozen=True, slots=True, kw_only=True)
class MapType:
    """A map whose keys are text."""

    values: AvroType


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionType:
    """A union of one type and perhaps null; `null_index` is the branch that is null, or -1."""

    inner: AvroType
    null_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordField:
    """A field of a record."""

    name: str
    type: AvroType
    aliases: tuple[str, ...] = ()
    default: object = field(default_factory=Missing)

    @property
    def has_default(self) -> bool:
        return not isinstance(self.default, Missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordType:
    """A type whose values have named fields."""

    fields: tuple[RecordField, ...]


AvroType = PrimitiveType | EnumType | ArrayType | MapType | UnionType | RecordType


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroSource:
    """The schemas of a column of values, as JSON. `reader` is the schema of the columns. `writer` is that of the values
    if it differs; `framed` has all schemas by id if values begin with a schema id."""

    reader: str
    writer: str | None = None
    framed: tuple[tuple[int, str], ...] | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> AvroSource:
        values = json.loads(text)
        framed = values["framed"]
        pairs = None if framed is None else tuple((int(number), schema) for number, schema in framed)
        return cls(reader=values["reader"], writer=values["writer"], framed=pairs)


def read_schema(node: object, imported: Sequence[object] = ()) -> RecordType:
    """Returns the schema of this JSON. A schema that is no record becomes a record with the single field `value`, whose
    bytes are the same. `imported` has the JSON of schemas whose types it may name, each after those that it needs.
    Raises AvroSchemaError."""
    parser = _SchemaParser()
    for each in imported:
        parser.read(each, (), "")
    parsed = parser.read(node, (), "")
    return (
        parsed
        if isinstance(parsed, RecordType)
        else RecordType(fields=(RecordField(name="value", type=parsed),))
    )


def bytes_min(of: AvroType) -> int:
    """Returns the smallest number of bytes of a value."""
    match of:
        case PrimitiveType(kind="null"):
            return 0
        case PrimitiveType(kind="fixed"):
            return of.size
        case PrimitiveType(kind="float"):
            return 4
        case PrimitiveType(kind="double"):
            return 8
        case RecordType():
            return sum(bytes_min(each.type) for each in of.fields)
    return 1


class _SchemaParser:
    """Parses one schema, and remembers the types that were named so far."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}
        self._open: list[str] = []  # names of the records that are being read

    def read(self, node: object, path: JsonPath, namespace: str) -> AvroType:
        if node is None:  # YAML's null without quotes
            node = "null"
        if isinstance(node, str):
            return self._reference(node, path, namespace)
        if isinstance(node, Sequence):
            return self._union(node, path, namespace)
        if not isinstance(node, Mapping):
            raise AvroSchemaError(path, f"{node!r} is no type: it must be a name, an object or a list")
        if "type" not in node:
            raise AvroSchemaError(path, "a type without `type`")
        kind = node["type"]
        match kind:
            case "record":
                return self._record(node, path, namespace)
            case "enum":
                return self._enum(node, path, namespace)
            case "fixed":
                return self._fixed(node, path, namespace)
            case "array":
                return ArrayType(items=self._items(node, "items", path, namespace))
            case "map":
                return MapType(values=self._items(node, "values", path, namespace))
            case str() if kind in PRIMITIVES:
                return _with_logical(PrimitiveType(kind=kind), node, path)
        return self.read(kind, (*path, "type"), namespace)

    def _reference(self, name: str, path: JsonPath, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return PrimitiveType(kind=name)
        for full in (_full_name(name, namespace), name):
            if full in self._open:
                text = f"{full} is within itself: a recursive type cannot be columns"
                raise AvroSchemaError(
                    path, f"{text}. Read such values as raw, and decode them in a transform"
                )
            if full in self._named:
                return self._named[full]
        raise AvroSchemaError(path, f"there is no type {name!r} before this")

    def _union(self, node: Sequence[object], path: JsonPath, namespace: str) -> AvroType:
        branches = [self.read(each, (*path, at), namespace) for at, each in enumerate(node)]
        nulls = [at for at, each in enumerate(branches) if each == PrimitiveType(kind="null")]
        others = [each for at, each in enumerate(branches) if at not in nulls]
        if len(others) > 1 or len(nulls) > 1:
            text = "a union may have one type and null, because a column has one type"
            raise AvroSchemaError(path, f"{text}. Read such values as raw, and decode them in a transform")
        if not branches:
            raise AvroSchemaError(path, "a union of nothing")
        if any(isinstance(each, UnionType) for each in others):
            raise AvroSchemaError(path, "a union within a union")
        inner = others[0] if others else PrimitiveType(kind="null")
        return UnionType(inner=inner, null_index=nulls[0] if nulls else -1)

    def _items(self, node: Mapping[str, Any], key: str, path: JsonPath, namespace: str) -> AvroType:
        if key not in node:
            raise AvroSchemaError(path, f"{node['type']} without `{key}`")
        parsed = self.read(node[key], (*path, key), namespace)
        # Otherwise a few bytes could stand for any number of rows.
        if key == "items" and bytes_min(parsed) == 0:
            raise AvroSchemaError((*path, key), "an array of items that take no bytes")
        return parsed

    def _record(self, node: Mapping[str, Any], path: JsonPath, namespace: str) -> RecordType:
        name = self._new_name(node, path, namespace)
        listed = node.get("fields")
        if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
            raise AvroSchemaError(path, f"record {name} without `fields`")
        self._open.append(name)
        inner = name.rpartition(".")[0]
        fields: list[RecordField] = []
        for at, each in enumerate(listed):
            here = (*path, "fields", at)
            if not isinstance(each, Mapping) or "type" not in each:
                raise AvroSchemaError(here, "a field must have `name` and `type`")
            if not _SIMPLE_NAME.fullmatch(str(each.get("name", ""))):
                raise AvroSchemaError(here, f"{each.get('name')!r} cannot be a field's name")
            if any(each["name"] == other.name for other in fields):
                raise AvroSchemaError(here, f"the field {each['name']} is there twice")
            record_field = RecordField(
                name=each["name"],
                type=self.read(each["type"], (*here, "type"), inner),
                aliases=tuple(each.get("aliases") or ()),
                default=each["default"] if "default" in each else Missing(),
            )
            fields.append(record_field)
        self._open.pop()
        parsed = RecordType(fields=tuple(fields))
        self._named[name] = parsed
        return parsed

    def _enum(self, node: Mapping[str, Any], path: JsonPath, namespace: str) -> EnumType:
        name = self._new_name(node, path, namespace)
        symbols = node.get("symbols")
        if not isinstance(symbols, Sequence) or isinstance(symbols, str) or not symbols:
            raise AvroSchemaError(path, f"enum {name} without `symbols`")
        texts = tuple(map(str, symbols))
        if len(set(texts)) < len(texts):
            raise AvroSchemaError((*path, "symbols"), f"enum {name} has a symbol twice")
        default = node.get("default")
        if default is not None and default not in texts:
            raise AvroSchemaError((*path, "default"), f"{default!r} is no symbol of enum {name}")
        parsed = EnumType(symbols=texts, default=default)
        self._named[name] = parsed
        return parsed

    def _fixed(self, node: Mapping[str, Any], path: JsonPath, namespace: str) -> PrimitiveType:
        name = self._new_name(node, path, namespace)
        size = node.get("size")
        if not isinstance(size, int) or not 0 <= size <= _FIXED_BYTES_MAX:
            raise AvroSchemaError(path, f"fixed {name} needs a `size` of 0 to {_FIXED_BYTES_MAX}")
        parsed = _with_logical(PrimitiveType(kind="fixed", size=size), node, path)
        self._named[name] = parsed
        return parsed

    def _new_name(self, node: Mapping[str, Any], path: JsonPath, namespace: str) -> str:
        name = node.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise AvroSchemaError(path, f"{node['type']} needs a `name`, and {name!r} is none")
        full = _full_name(name, str(node.get("namespace", namespace)))
        if full in self._named or full in self._open:
            raise AvroSchemaError(path, f"there is a type {full} already")
        return full


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _with_logical(plain: PrimitiveType, node: Mapping[str, Any], path: JsonPath) -> PrimitiveType:
    logical = node.get("logicalType")
    if plain.kind not in _LOGICAL.get(str(logical), ()):
        return plain
    if logical != "decimal":
        return PrimitiveType(kind=plain.kind, logical=str(logical), size=plain.size)
    precision, scale = node.get("precision"), node.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision:
        raise AvroSchemaError(path, "a decimal needs a `precision`, and a `scale` that is not larger")
    if not 0 < precision <= DECIMAL_DIGITS_MAX:
        raise AvroSchemaError(
            path, f"a decimal has 1 to {DECIMAL_DIGITS_MAX} digits here, and not {precision}"
        )
    return PrimitiveType(
        kind=plain.kind, logical="decimal", size=plain.size, precision=precision, scale=scale
    )
