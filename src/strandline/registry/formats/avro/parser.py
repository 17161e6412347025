"""Reads the JSON of an Avro schema by the rules of Java's Schema.Parser.

Names are checked, redefinitions are refused, and the defaults of a new schema are checked against their types.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from strandline.registry.formats.avro.defaults import is_valid_default
from strandline.registry.formats.avro.types import NAMED, NO_DEFAULT, PRIMITIVES, AvroField, AvroType
from strandline.registry.formats.parsed import InvalidSchema

_SCHEMA_RESERVED: Final = {
    "doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases",
}  # fmt: skip
_ENUM_RESERVED: Final = _SCHEMA_RESERVED | {"default"}
_FIELD_RESERVED: Final = {"default", "doc", "name", "order", "type", "aliases"}
_STRICT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LENIENT_NAME: Final = re.compile(r"[^\W\d]\w*\Z")
_ORDERS: Final = ("ascending", "descending", "ignore")
DEPTH_MAX: Final = 200  # the most levels of nested types; Java's JSON reader stops at 1,000 levels


class AvroParser:
    """Reads one schema after another; each may use the names that earlier ones defined."""

    def __init__(self, *, is_new: bool) -> None:
        self._is_new = is_new
        self.names: dict[str, AvroType] = {}

    def parse(self, text: str) -> AvroType:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidSchema(f"the schema is not JSON: {error}") from None
        return self._type(value, None, 0)

    def _type(self, value: Any, space: str | None, depth: int) -> AvroType:
        if depth > DEPTH_MAX:
            raise InvalidSchema(f"types are nested more than {DEPTH_MAX} deep")
        if isinstance(value, str):
            return self._by_name(value, space)
        if isinstance(value, list):
            return self._union(value, space, depth)
        if isinstance(value, dict):
            return self._from_object(value, space, depth)
        raise InvalidSchema(f"Schema not yet supported: {json.dumps(value)}")

    def _by_name(self, name: str, space: str | None) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = name if "." in name or not space else f"{space}.{name}"
        found = self.names.get(full)
        if found is None and "." not in name:
            found = self.names.get(name)
        if found is None:
            raise InvalidSchema(
                f'Undefined schema: "{name}" is not a defined name. '
                'The type must be a defined name or a {"type": ...} expression.'
            )
        return found

    def _union(self, value: list[Any], space: str | None, depth: int) -> AvroType:
        branches: list[AvroType] = []
        seen: set[str] = set()
        for each in value:
            branch = self._type(each, space, depth + 1)
            if branch.kind == "union":
                raise InvalidSchema(f"Nested union: {json.dumps(value)}")
            if branch.full_name in seen:
                raise InvalidSchema(f"Duplicate in union:{branch.full_name}")
            seen.add(branch.full_name)
            branches.append(branch)
        return AvroType("union", branches=tuple(branches))

    def _from_object(self, value: dict[str, Any], space: str | None, depth: int) -> AvroType:
        kind = value.get("type")
        if not isinstance(kind, str):
            raise InvalidSchema(f"No type: {json.dumps(value)}")
        if kind in PRIMITIVES:
            made = AvroType(kind)
        elif kind in ("record", "error", "enum", "fixed"):
            return self._named(kind, value, space, depth)
        elif kind in ("array", "map"):
            inner = value.get("items" if kind == "array" else "values")
            if inner is None:
                missing = "items" if kind == "array" else "values"
                raise InvalidSchema(f"{kind.capitalize()} has no {missing} type: {json.dumps(value)}")
            made = AvroType(kind, items=self._type(inner, space, depth + 1))
        else:
            return self._by_name(kind, space)
        made.props = {key: each for key, each in value.items() if key not in _SCHEMA_RESERVED}
        return made

    def _named(self, kind: str, value: dict[str, Any], space: str | None, depth: int) -> AvroType:
        name, namespace = self._full_name(value, space)
        made = AvroType(
            "record" if kind == "error" else kind,
            name=name,
            namespace=namespace,
            doc=_optional_text(value, "doc"),
            is_error=kind == "error",
        )
        made.aliases = tuple(self._alias(alias, namespace) for alias in _aliases(value))
        if made.full_name in self.names:
            raise InvalidSchema(f"Can't redefine: {made.full_name}")
        if made.name in PRIMITIVES and not namespace:
            raise InvalidSchema(f"Schemas may not be named after primitive types: {made.name}")
        self.names[made.full_name] = made
        reserved = _SCHEMA_RESERVED
        if kind == "enum":
            self._fill_enum(made, value)
            reserved = _ENUM_RESERVED
        elif kind == "fixed":
            size = value.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise InvalidSchema(f"Invalid or no size: {json.dumps(value)}")
            made.size = size
        else:
            self._fill_record(made, value, depth)
        made.props = {key: each for key, each in value.items() if key not in reserved}
        return made

    def _full_name(self, value: dict[str, Any], space: str | None) -> tuple[str, str | None]:
        name = value.get("name")
        if not isinstance(name, str):
            raise InvalidSchema(f"No name in schema: {json.dumps(value)}")
        namespace = value.get("namespace", space)
        if namespace is not None and not isinstance(namespace, str):
            raise InvalidSchema(f"The namespace is not text: {json.dumps(value)}")
        if "." in name:
            namespace, _, name = name.rpartition(".")
        self._check_name(name)
        if namespace and self._is_new:
            for part in namespace.split("."):
                self._check_name(part)
        return name, namespace or None

    def _alias(self, alias: str, namespace: str | None) -> str:
        return alias if "." in alias or not namespace else f"{namespace}.{alias}"

    def _check_name(self, name: str) -> None:
        if not name:
            raise InvalidSchema("Empty name")
        pattern = _STRICT_NAME if self._is_new else _LENIENT_NAME
        if pattern.match(name) is None:
            if pattern.match(name[0]) is None:
                raise InvalidSchema(f"Illegal initial character: {name}")
            raise InvalidSchema(f"Illegal character in: {name}")

    def _fill_enum(self, made: AvroType, value: dict[str, Any]) -> None:
        symbols = value.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
            raise InvalidSchema(f"Enum has no symbols: {json.dumps(value)}")
        for symbol in symbols:
            self._check_name(symbol)
        if len(set(symbols)) != len(symbols):
            double = next(each for each in symbols if symbols.count(each) > 1)
            raise InvalidSchema(f"Duplicate enum symbol: {double}")
        made.symbols = tuple(symbols)
        default = value.get("default")
        if default is not None:
            if default not in symbols:
                raise InvalidSchema(
                    f"The Enum Default: {default} is not in the enum symbol set: {json.dumps(symbols)}"
                )
            made.enum_default = default

    def _fill_record(self, made: AvroType, value: dict[str, Any], depth: int) -> None:
        fields = value.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"Record has no fields: {json.dumps(value)}")
        seen: set[str] = set()
        read: list[AvroField] = []
        for each in fields:
            parsed = self._field(each, made, depth)
            if parsed.name in seen:
                raise InvalidSchema(f"Duplicate field {parsed.name} in record {made.full_name}")
            seen.add(parsed.name)
            read.append(parsed)
        made.fields = tuple(read)

    def _field(self, value: Any, owner: AvroType, depth: int) -> AvroField:
        if not isinstance(value, dict):
            raise InvalidSchema(f"No field name: {json.dumps(value)}")
        name = value.get("name")
        if not isinstance(name, str):
            raise InvalidSchema(f"No field name: {json.dumps(value)}")
        self._check_name(name)
        kind = value.get("type")
        if kind is None:
            raise InvalidSchema(f"No field type: {json.dumps(value)}")
        order = str(value.get("order", "ascending")).lower()
        if order not in _ORDERS:
            raise InvalidSchema(f"No enum constant Order: {order}")
        field = AvroField(
            name=name,
            type=self._type(kind, owner.namespace, depth + 1),
            doc=_optional_text(value, "doc"),
            default=value.get("default", NO_DEFAULT),
            order=order,
            aliases=tuple(_aliases(value)),
            props={key: each for key, each in value.items() if key not in _FIELD_RESERVED},
        )
        if self._is_new and field.has_default and not is_valid_default(field.type, field.default):
            raise InvalidSchema(
                f"Invalid default for field {name}: {json.dumps(field.default)} not a "
                f'"{field.type.full_name}"'
            )
        return field


def _optional_text(value: dict[str, Any], key: str) -> str | None:
    found = value.get(key)
    return found if isinstance(found, str) else None


def _aliases(value: dict[str, Any]) -> list[str]:
    aliases = value.get("aliases")
    if aliases is None:
        return []
    if not isinstance(aliases, list) or not all(isinstance(each, str) for each in aliases):
        raise InvalidSchema(f"aliases not an array of names: {json.dumps(value)}")
    return list(dict.fromkeys(aliases))


def walk_named(root: AvroType) -> dict[str, AvroType]:
    """Returns every named type below `root`, by full name."""
    found: dict[str, AvroType] = {}
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if each.kind in NAMED:
            if each.full_name in found:
                continue
            found[each.full_name] = each
        if each.items is not None:
            waiting.append(each.items)
        waiting.extend(each.branches)
        waiting.extend(field.type for field in each.fields)
    return found
