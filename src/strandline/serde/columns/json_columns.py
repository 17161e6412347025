"""Decodes JSON values into Arrow columns: by Arrow's reader if all rows fit, otherwise row by row, to find those that
do not.

The columns are those of the JSON Schema: an object with `properties` is a struct, one with `additionalProperties` of
one type is a map, an array is a list. A value whose type a column cannot have, such as one of several types, stays JSON
text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from strandline.serde.errors import UndecodableValue, UnusableSchema
from strandline.serde.registry.schemas import RegisteredSchema

_SCALARS: Final = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
}
_JSON_TEXT: Final = pa.field("text", pa.string()).type
_DEPTH_MAX: Final = 50
_INT64_MAX: Final = (1 << 63) - 1


class JsonColumns:
    """Decodes JSON values into the columns of the reader's JSON Schema. A writer's schema has no effect, but it must
    exist."""

    def __init__(self, reader: RegisteredSchema) -> None:
        try:
            schemas = {name: json.loads(schema.text) for name, schema in reader.imported}
            root = json.loads(reader.schema.text)
        except ValueError as error:
            raise UnusableSchema(f"the schema is not JSON: {error}") from error
        self._shape = _ShapeReader(root, schemas).shape(root, 0)
        if not pa.types.is_struct(self._shape.type):
            raise UnusableSchema(
                "the schema is not of an object with properties, and only that can be columns"
            )
        self.type = self._shape.type
        # Arrow's reader can make neither maps nor columns of JSON text.
        self._is_plain = self._shape.is_plain

    def decoder(self, writer: RegisteredSchema, path: bytes) -> Any:
        return self.decode

    def decode(self, values: Any, skip: int) -> tuple[Any, Any]:
        """Returns the columns and errors of values, of which none is null, after their first `skip` bytes."""
        texts = values
        if skip and len(values):
            # The end is given, because without one Arrow slices too far and fails.
            texts = pc.binary_slice(values, skip, pc.max(pc.binary_length(values)).as_py())
        columns = self._by_arrow(texts) if self._is_plain and len(texts) else None
        return self._by_row(texts) if columns is None else (columns, pa.nulls(len(texts), pa.string()))

    def _by_arrow(self, texts: Any) -> Any:
        """Returns the columns; None if a value is not exactly one object that fits.

        Each value must begin and end with a brace. So no object can begin in one value and end in the next, and if
        there are as many objects as values, each value has exactly one.
        """
        try:
            checked = pc.ascii_trim_whitespace(texts.cast(pa.string()))
        except pa.ArrowInvalid:
            return None
        if not pc.all(pc.and_(pc.starts_with(checked, "{"), pc.ends_with(checked, "}"))).as_py():
            return None
        # Arrow accepts numbers that JSON does not have.
        if any(pc.any(pc.match_substring(checked, word)).as_py() for word in ("NaN", "Inf")):
            return None
        whole = pa.ListArray.from_arrays(pa.array([0, len(checked)], pa.int32()), checked)
        lines = pc.binary_join(whole, "\n")[0].as_buffer()
        try:
            table = pa_json.read_json(
                pa.BufferReader(lines),
                pa_json.ReadOptions(use_threads=False, block_size=lines.size + 1),
                pa_json.ParseOptions(
                    explicit_schema=pa.schema(list(self.type)), unexpected_field_behavior="ignore"
                ),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != len(texts):
            return None
        columns = [table.column(at).combine_chunks() for at in range(len(self.type))]
        return pa.StructArray.from_arrays(columns, fields=list(self.type))

    def _by_row(self, texts: Any) -> tuple[Any, Any]:
        rows: list[Any] = []
        errors: list[str | None] = []
        for data in texts.to_pylist():
            try:
                value = json.loads(data, parse_constant=_refuse)
                rows.append(self._shape.converted(value, ""))
                errors.append(None)
            except (ValueError, RecursionError) as error:
                rows.append(None)
                text = str(error)
                errors.append(
                    text if isinstance(error, UndecodableValue) else f"the value is not JSON: {text}"
                )
        return pa.array(rows, self.type), pa.array(errors, pa.string())


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class _Shape:
    """The type of a column, with the conversion of JSON values to it."""

    def __init__(
        self, type: Any, *, items: _Shape | None = None, fields: Mapping[str, _Shape] | None = None
    ) -> None:
        self.type = type
        self._items = items
        self._fields = fields

    @property
    def is_plain(self) -> bool:
        """True if Arrow's JSON reader can make the column."""
        if self._fields is not None:
            return all(each.is_plain for each in self._fields.values())
        if pa.types.is_map(self.type) or isinstance(self, _TextShape):
            return False
        return self._items is None or self._items.is_plain

    def converted(self, value: Any, place: str) -> Any:
        """Returns the value for pyarrow; raises UndecodableValue, which names the place."""
        if value is None:
            if not place:
                raise UndecodableValue("the value is null, and not an object")
            return None
        if self._fields is not None:
            _check(isinstance(value, dict), value, place, "an object")
            return {
                name: each.converted(value.get(name), f"{place}.{name}".lstrip("."))
                for name, each in self._fields.items()
            }
        if self._items is not None and pa.types.is_map(self.type):
            _check(isinstance(value, dict), value, place, "an object")
            return [(name, self._items.converted(each, f"{place}.{name}")) for name, each in value.items()]
        if self._items is not None:
            _check(isinstance(value, list), value, place, "an array")
            return [self._items.converted(each, f"{place}[{at}]") for at, each in enumerate(value)]
        return self._scalar(value, place)

    def _scalar(self, value: Any, place: str) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if self.type == pa.int64():
            is_whole = is_number and (isinstance(value, int) or value.is_integer())
            _check(is_whole and -_INT64_MAX - 1 <= value <= _INT64_MAX, value, place, "an integer of 64 bits")
            return int(value)
        if self.type == pa.float64():
            _check(is_number, value, place, "a number")
            try:
                return float(value)
            except OverflowError:
                raise UndecodableValue(f"{place}: the number is too large") from None
        if self.type == pa.bool_():
            _check(isinstance(value, bool), value, place, "a boolean")
            return value
        _check(isinstance(value, str), value, place, "a string")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UndecodableValue(f"{place}: half of a surrogate pair is not text") from None
        return value


class _TextShape(_Shape):
    """A column of JSON text."""

    def converted(self, value: Any, place: str) -> Any:
        return None if value is None else json.dumps(value, separators=(",", ":"))


def _check(is_right: bool, value: Any, place: str, what: str) -> None:
    if not is_right:
        raise UndecodableValue(f"{place or 'the value'} is not {what}: {str(value)[:100]}")


class _ShapeReader:
    """Reads the columns from a JSON Schema, following references."""

    def __init__(self, root: Any, imported: Mapping[str, Any]) -> None:
        self._root = root
        self._imported = imported

    def shape(self, node: Any, depth: int) -> _Shape:
        if depth > _DEPTH_MAX:
            raise UnusableSchema("the schema is within itself, or too deep: it cannot be columns")
        if not isinstance(node, dict):
            return _TextShape(_JSON_TEXT)
        if "$ref" in node:
            found, inside = self._referenced(str(node["$ref"]))
            return inside.shape(found, depth + 1)
        kind = node.get("type")
        for key in ("oneOf", "anyOf"):
            branches = [each for each in node.get(key, ()) if each != {"type": "null"}]
            if key in node:
                return self.shape(branches[0], depth + 1) if len(branches) == 1 else _TextShape(_JSON_TEXT)
        if isinstance(kind, list):
            kinds = [each for each in kind if each != "null"]
            kind = kinds[0] if len(kinds) == 1 else None
        if kind in _SCALARS:
            return _Shape(_SCALARS[kind])
        if kind == "array" and isinstance(node.get("items"), dict):
            items = self.shape(node["items"], depth + 1)
            return _Shape(pa.list_(items.type), items=items)
        if node.get("properties") and kind in ("object", None):
            fields = {name: self.shape(each, depth + 1) for name, each in node["properties"].items()}
            return _Shape(pa.struct([(name, each.type) for name, each in fields.items()]), fields=fields)
        if kind == "object" and isinstance(node.get("additionalProperties"), dict):
            items = self.shape(node["additionalProperties"], depth + 1)
            return _Shape(pa.map_(pa.string(), items.type), items=items)
        return _TextShape(_JSON_TEXT)

    def _referenced(self, reference: str) -> tuple[Any, _ShapeReader]:
        file, _, pointer = reference.partition("#")
        inside = self
        if file:
            if file not in self._imported:
                raise UnusableSchema(f"the schema refers to {file}, which it does not import")
            inside = _ShapeReader(self._imported[file], self._imported)
        node = inside._root
        try:
            for part in filter(None, pointer.split("/")):
                node = node[part.replace("~1", "/").replace("~0", "~")]
        except (KeyError, TypeError):
            raise UnusableSchema(f"the schema refers to {reference}, which is not there") from None
        return node, inside
