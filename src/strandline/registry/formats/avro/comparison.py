"""Decides whether a reader's Avro schema can read data of a writer's schema, by the rules of Java's
SchemaCompatibility.

| writer and reader | verdict |
| --- | --- |
| the same primitive type | fits |
| int → long, float, double; long → float, double; float → double; string ↔ bytes | fits: the value is promoted |
| two arrays, two maps | fit if their elements do |
| two fixed | same name, same size: the bytes have no length of their own |
| two enums | same name; every symbol of the writer is the reader's, or the reader has a default symbol |
| two records | same name or alias; a field that only the reader has needs a default |
| writer is a union | every branch must fit, since any of them may have been written |
| reader is a union | one branch that fits is enough |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from strandline.registry.formats.avro.printer import print_schema
from strandline.registry.formats.avro.types import AvroField, AvroType

_PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}


@dataclass(frozen=True, slots=True)
class AvroIncompatibility:
    """One reason, with the place in the reader's schema as a JSON pointer."""

    type: str
    path: str
    detail: str

    def __str__(self) -> str:
        return f"{{errorType:'{self.type}', description:'{_describe(self)}', additionalInfo:'{self.detail}'}}"


def _describe(found: AvroIncompatibility) -> str:
    path = found.path
    match found.type:
        case "FIXED_SIZE_MISMATCH":
            return (
                f"The size of FIXED type field at path '{path}' in the %s schema does not match with "
                "the %s schema"
            )
        case "TYPE_MISMATCH":
            return f"The type (path '{path}') of a field in the %s schema does not match with the %s schema"
        case "NAME_MISMATCH":
            return f"The name of the schema has changed (path '{path}')"
        case "MISSING_ENUM_SYMBOLS":
            return f"The %s schema is missing enum symbols '{found.detail}' at path '{path}' in the %s schema"
        case "MISSING_UNION_BRANCH":
            return f"The %s schema is missing a type inside a union field at path '{path}' in the %s schema"
        case "READER_FIELD_MISSING_DEFAULT_VALUE":
            return (
                f"The field '{found.detail}' at path '{path}' in the %s schema has no default value and "
                "is missing in the %s schema"
            )
        case _:
            raise AssertionError(found.type)


class AmbiguousField(Exception):
    """A field of the reader has, by its name and its aliases, several fields of the writer."""


def incompatibilities(reader: AvroType, writer: AvroType) -> list[AvroIncompatibility]:
    """Returns every reason why the reader cannot read the writer's data; empty if it can. Raises AmbiguousField."""
    return _AvroComparison().compare(reader, writer, ())


class _AvroComparison:
    def __init__(self) -> None:
        # The result for each pair of types. A pair that is being compared counts as compatible until its result is
        # known.
        self._known: dict[tuple[int, int], list[AvroIncompatibility]] = {}

    def compare(self, reader: AvroType, writer: AvroType, path: tuple[str, ...]) -> list[AvroIncompatibility]:
        pair = (id(reader), id(writer))
        known = self._known.get(pair)
        if known is None:
            self._known[pair] = []
            known = self._known[pair] = self._outcome(reader, writer, path)
        return known

    def _outcome(
        self, reader: AvroType, writer: AvroType, path: tuple[str, ...]
    ) -> list[AvroIncompatibility]:
        if reader.kind == writer.kind:
            return self._same_kind(reader, writer, path)
        if writer.kind == "union":
            return [
                each
                for number, branch in enumerate(writer.branches)
                for each in self.compare(reader, branch, (*path, str(number)))
            ]
        if reader.kind == "union":
            if any(not self.compare(branch, writer, ()) for branch in reader.branches):
                return []
            return [_found("MISSING_UNION_BRANCH", path, _lacking(writer))]
        if writer.kind in _PROMOTIONS.get(reader.kind, ()):
            return []
        detail = f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
        return [_found("TYPE_MISMATCH", path, detail)]

    def _same_kind(
        self, reader: AvroType, writer: AvroType, path: tuple[str, ...]
    ) -> list[AvroIncompatibility]:
        match reader.kind:
            case "array" | "map":
                assert reader.items is not None
                assert writer.items is not None
                token = "items" if reader.kind == "array" else "values"
                return self.compare(reader.items, writer.items, (*path, token))
            case "fixed":
                return _names(reader, writer, path) + _sizes(reader, writer, path)
            case "enum":
                return _names(reader, writer, path) + _symbols(reader, writer, path)
            case "record":
                return _names(reader, writer, path) + self._fields(reader, writer, path)
            case "union":
                return [
                    _found("MISSING_UNION_BRANCH", (*path, str(number)), _lacking(branch))
                    for number, branch in enumerate(writer.branches)
                    if self.compare(reader, branch, ())
                ]
            case _:
                return []

    def _fields(self, reader: AvroType, writer: AvroType, path: tuple[str, ...]) -> list[AvroIncompatibility]:
        found: list[AvroIncompatibility] = []
        by_name = {field.name: field for field in writer.fields}
        for number, field in enumerate(reader.fields):
            place = (*path, "fields", str(number))
            written = _writer_field(writer, by_name, field, number)
            if written is not None:
                found += self.compare(field.type, written.type, (*place, "type"))
            elif not field.has_default and field.type.enum_default is not None:
                # Java compares such an enum with the whole record of the writer, which never fits.
                found += self.compare(field.type, writer, (*place, "type"))
            elif not field.has_default:
                found.append(_found("READER_FIELD_MISSING_DEFAULT_VALUE", place, field.name))
        return found


def _writer_field(
    writer: AvroType, by_name: dict[str, AvroField], field: AvroField, place: int
) -> AvroField | None:
    found = [by_name[name] for name in (field.name, *field.aliases) if name in by_name]
    if len(found) > 1:
        raise AmbiguousField(
            f"Reader record field {field.name} type:{field.type.kind.upper()} pos:{place} matches multiple "
            f"fields in writer record schema {print_schema(writer)}"
        )
    return found[0] if found else None


def _names(reader: AvroType, writer: AvroType, path: tuple[str, ...]) -> list[AvroIncompatibility]:
    if reader.name == writer.name or writer.full_name in reader.aliases:
        return []
    return [_found("NAME_MISMATCH", (*path, "name"), f"expected: {writer.full_name}")]


def _sizes(reader: AvroType, writer: AvroType, path: tuple[str, ...]) -> list[AvroIncompatibility]:
    if reader.size == writer.size:
        return []
    detail = f"expected: {writer.size}, found: {reader.size}"
    return [_found("FIXED_SIZE_MISMATCH", (*path, "size"), detail)]


def _symbols(reader: AvroType, writer: AvroType, path: tuple[str, ...]) -> list[AvroIncompatibility]:
    missing = sorted(set(writer.symbols) - set(reader.symbols))
    if not missing or reader.enum_default is not None:
        return []
    return [_found("MISSING_ENUM_SYMBOLS", (*path, "symbols"), f"[{', '.join(missing)}]")]


def _lacking(writer: AvroType) -> str:
    return f"reader union lacking writer type: {writer.kind.upper()}"


def _found(type: str, path: tuple[str, ...], detail: str) -> AvroIncompatibility:
    pointer = "/".join(token.replace("~", "~0").replace("/", "~1") for token in path)
    return AvroIncompatibility(type, f"/{pointer}", detail)
