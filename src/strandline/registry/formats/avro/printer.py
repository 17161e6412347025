"""Prints an Avro schema as Java's Schema.toString does: this text is what the registry stores.

The order of attributes is fixed, and user properties keep their order. A type is written out where its name first
occurs, and later only by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from strandline.registry.formats.avro.types import PRIMITIVES, AvroField, AvroType


def print_schema(root: AvroType, known: Iterable[str] = ()) -> str:
    """Returns the text of a schema. The names in `known` are defined elsewhere, and are only named."""
    return json.dumps(_AvroPrinter(set(known)).value(root, None), separators=(",", ":"), ensure_ascii=False)


class _AvroPrinter:
    def __init__(self, known: set[str]) -> None:
        self._known = known

    def value(self, each: AvroType, space: str | None) -> Any:
        match each.kind:
            case "union":
                return [self.value(branch, space) for branch in each.branches]
            case "array" | "map":
                assert each.items is not None
                inner = self.value(each.items, space)
                return {
                    "type": each.kind,
                    ("items" if each.kind == "array" else "values"): inner,
                } | each.props
            case "record" | "enum" | "fixed":
                if each.full_name in self._known:
                    return _qualified(each.full_name, space)
                self._known.add(each.full_name)
                return self._named(each, space)
            case _:
                return {"type": each.kind} | each.props if each.props else each.kind

    def _named(self, each: AvroType, space: str | None) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "error" if each.is_error else each.kind, "name": each.name}
        if each.namespace is not None:
            if each.namespace != space:
                made["namespace"] = each.namespace
        elif space is not None:
            made["namespace"] = ""
        if each.doc is not None:
            made["doc"] = each.doc
        if each.kind == "record":
            made["fields"] = [self._field(field, each.namespace) for field in each.fields]
        elif each.kind == "enum":
            made["symbols"] = list(each.symbols)
            if each.enum_default is not None:
                made["default"] = each.enum_default
        else:
            made["size"] = each.size
        made |= each.props
        if each.aliases:
            made["aliases"] = [_qualified(alias, each.namespace) for alias in each.aliases]
        return made

    def _field(self, field: AvroField, space: str | None) -> dict[str, Any]:
        made: dict[str, Any] = {"name": field.name, "type": self.value(field.type, space)}
        if field.doc is not None:
            made["doc"] = field.doc
        if field.has_default:
            made["default"] = field.default
        if field.order != "ascending":
            made["order"] = field.order
        if field.aliases:
            made["aliases"] = list(field.aliases)
        return made | field.props


def _qualified(full_name: str, space: str | None) -> str:
    namespace, _, name = full_name.rpartition(".")
    if namespace and namespace == space and name not in PRIMITIVES:
        return name
    return full_name
