"""Large schemas: they are parsed and compared in another process. Python's threads share one interpreter lock, and some
calls hold it to their end: reading a megabyte of JSON, or collecting the garbage that it leaves, stops the loop for
that time. So only the text of a large schema is kept here, and every operation on it is a call in a process that ends
with the response.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from strandline.registry.formats.parsed import ParsedSchema, Reference
from strandline.registry.formats.parsing import parse_schema

# Characters, including all imports. A smaller schema is parsed within some milliseconds.
LARGE_MIN: Final[Mapping[str, int]] = {"AVRO": 32_768, "PROTOBUF": 32_768, "JSON": 8_192}
BODY_LARGE_MIN: Final = 65_536  # the size of a request, in bytes
_REST_MAX: Final = 65_536  # the most bytes of a large request beside its schema

Call = Callable[..., Any]  # runs a function of this module in another process, and returns its value


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """Everything that a schema is parsed from."""

    type: str
    text: str
    references: tuple[Reference, ...]
    resolved: tuple[tuple[str, str], ...]
    is_new: bool = False
    is_normalized: bool = False

    @property
    def is_large(self) -> bool:
        size = len(self.text) + sum(len(text) for _, text in self.resolved)
        return size >= LARGE_MIN.get(self.type, 0) > 0

    def parse(self) -> ParsedSchema:
        parsed = parse_schema(self.type, self.text, self.references, dict(self.resolved), is_new=self.is_new)
        return parsed.normalized() if self.is_normalized else parsed


class LargeSchema(ParsedSchema):
    def __init__(self, source: SchemaSource, call: Call) -> None:
        """Raises InvalidSchema if the text is no schema of its type."""
        described: tuple[str, tuple[Reference, ...]] = call(describe, source)
        self._text, references = described
        super().__init__(references, dict(source.resolved))
        self.type = source.type  # type: ignore[misc]  # one class for the three formats
        self.source = source
        self.call = call

    @property
    def text(self) -> str:
        return self._text

    def normalized(self) -> ParsedSchema:
        return LargeSchema(replace(self.source, is_normalized=True), self.call)

    def check(self, *, is_strict: bool) -> None:
        self.call(check, self.source, is_strict)

    def formatted(self, format: str) -> str:
        return str(self.call(formatted, self.source, format))

    def has_top_level_field(self, name: str) -> bool:
        return bool(self.call(has_top_level_field, self.source, name))

    def incompatibilities(self, previous: ParsedSchema, *, is_lenient: bool = False) -> list[str]:
        found: list[str] = self.call(compare, self.source, source_of(previous), is_lenient)
        return found

    def is_equivalent(self, other: ParsedSchema) -> bool:
        return self.text == other.text or bool(self.call(are_same, self.source, source_of(other)))


def find_incompatibilities(reader: ParsedSchema, writer: ParsedSchema, *, is_lenient: bool) -> list[str]:
    """Returns `reader.incompatibilities(writer)`, computed in another process if one of them is large."""
    if isinstance(writer, LargeSchema) and not isinstance(reader, LargeSchema):
        found: list[str] = writer.call(compare, source_of(reader), writer.source, is_lenient)
        return found
    return reader.incompatibilities(writer, is_lenient=is_lenient)


def are_equivalent(one: ParsedSchema, other: ParsedSchema) -> bool:
    """Returns `one.is_equivalent(other)`, computed in another process if one of them is large."""
    if isinstance(other, LargeSchema) and not isinstance(one, LargeSchema):
        return other.is_equivalent(one)
    return one.is_equivalent(other)


def source_of(schema: ParsedSchema) -> SchemaSource:
    if isinstance(schema, LargeSchema):
        return schema.source
    return SchemaSource(schema.type, schema.text, schema.references, tuple(schema.resolved.items()))


# These run in the other process.


def describe(source: SchemaSource) -> tuple[str, tuple[Reference, ...]]:
    parsed = source.parse()
    return parsed.text, parsed.references


def check(source: SchemaSource, is_strict: bool) -> None:
    source.parse().check(is_strict=is_strict)


def formatted(source: SchemaSource, format: str) -> str:
    return source.parse().formatted(format)


def has_top_level_field(source: SchemaSource, name: str) -> bool:
    return source.parse().has_top_level_field(name)


def compare(reader: SchemaSource, writer: SchemaSource, is_lenient: bool) -> list[str]:
    return reader.parse().incompatibilities(writer.parse(), is_lenient=is_lenient)


def are_same(one: SchemaSource, other: SchemaSource) -> bool:
    return one.parse().is_equivalent(other.parse())


def read_body(body: bytes) -> Any:
    """Returns the JSON of a large request. Raises ValueError if it is not JSON, or if it is large without a large
    schema."""
    value = json.loads(body)
    rest = {key: each for key, each in value.items() if key != "schema"} if isinstance(value, dict) else value
    if len(json.dumps(rest)) > _REST_MAX:
        raise ValueError(f"more than {_REST_MAX} bytes beside the schema")
    return value
