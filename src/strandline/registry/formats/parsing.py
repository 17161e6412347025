"""Parses a schema of any type. The modules of a format are imported when its first schema is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.registry.formats.parsed import InvalidSchema, ParsedSchema, Reference

SCHEMA_TYPES: Final = ("JSON", "PROTOBUF", "AVRO")


def parse_schema(
    type: str, text: str, references: tuple[Reference, ...], resolved: Mapping[str, str], *, is_new: bool
) -> ParsedSchema:
    """Returns the parsed schema. Raises InvalidSchema with the reason. With `is_new` the strict rules apply, which
    stored schemas need not meet."""
    match type:
        case "AVRO":
            from strandline.registry.formats.avro import AvroSchema

            return AvroSchema.parse(text, references, resolved, is_new=is_new)
        case "JSON":
            from strandline.registry.formats.json_schema import JsonSchema

            return JsonSchema.parse(text, references, resolved)
        case "PROTOBUF":
            from strandline.registry.formats.protobuf import ProtobufSchema

            return ProtobufSchema.parse(text, references, resolved)
        case _:
            raise InvalidSchema(f"Invalid schema type {type}")
