"""The normal form of an Avro schema: properties and aliases are sorted, so that their order in the text does not
matter."""

from __future__ import annotations

from typing import Any

from strandline.registry.formats.avro.types import AvroField, AvroType


def normalize(root: AvroType) -> AvroType:
    return _Normalizer().type(root)


class _Normalizer:
    def __init__(self) -> None:
        self._made: dict[int, AvroType] = {}

    def type(self, each: AvroType) -> AvroType:
        made = self._made.get(id(each))
        if made is not None:
            return made
        made = self._made[id(each)] = AvroType(
            each.kind,
            name=each.name,
            namespace=each.namespace,
            doc=each.doc or None,
            aliases=tuple(sorted(each.aliases)),
            symbols=each.symbols,
            enum_default=each.enum_default,
            size=each.size,
            is_error=each.is_error,
            props=_ordered(each.props),
        )
        if each.items is not None:
            made.items = self.type(each.items)
        made.branches = tuple(self.type(branch) for branch in each.branches)
        made.fields = tuple(self._field(field) for field in each.fields)
        return made

    def _field(self, field: AvroField) -> AvroField:
        return AvroField(
            name=field.name,
            type=self.type(field.type),
            doc=field.doc,
            default=_default(field.default, field.type),
            order=field.order,
            aliases=tuple(sorted(field.aliases)),
            props={key: field.props[key] for key in sorted(field.props)},
        )


def _default(value: Any, type: AvroType) -> Any:
    """Returns a default in the form of its type: an integer that is the default of a float is written as a float."""
    match type.kind:
        case "float" | "double" if isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        case "array" if isinstance(value, list) and type.items is not None:
            return [_default(each, type.items) for each in value]
        case "map" if isinstance(value, dict) and type.items is not None:
            return {key: _default(value[key], type.items) for key in sorted(value)}
        case "record" if isinstance(value, dict):
            types = {field.name: field.type for field in type.fields}
            return {key: _default(value[key], types[key]) for key in sorted(value) if key in types}
        case "union" if type.branches:
            return _default(value, type.branches[0])
        case _:
            return _sorted_value(value)


def _ordered(props: dict[str, Any]) -> dict[str, Any]:
    """Returns the properties in order: the logical type, then its precision and scale, then the others by name."""
    first = (
        ["logicalType", "precision", "scale"] if props.get("logicalType") == "decimal" else ["logicalType"]
    )
    keys = [key for key in first if key in props]
    keys += [key for key in sorted(props) if key not in keys]
    return {key: props[key] for key in keys}


def _sorted_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted_value(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted_value(each) for each in value]
    return value
