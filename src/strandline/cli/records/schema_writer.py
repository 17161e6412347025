"""`produce --schema`: JSON text becomes values with a schema of the registry."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from strandline.cli.records.rows import BadRow
from strandline.cli.schemas.connection import Refused, ask, in_path, read_schema
from strandline.cli.schemas.diff import parse

Encode = Callable[[bytes], bytes]


def schema_writer(options: argparse.Namespace) -> Encode:
    """Encodes a line of JSON, with the id of the schema in front. BadRow for one that does not fit; raises Refused if
    the registry has no such schema, or does not take it.

    `--schema latest` is the latest version of the subject; anything else is a file, which is registered.
    """
    subject = options.subject or f"{options.topic}-value"
    if options.schema == "latest":
        found = ask(options, "GET", f"/subjects/{in_path(subject)}/versions/latest")
    else:
        options.file, files = options.schema, options.file
        body = read_schema(options)
        options.file = files
        found = body | ask(options, "POST", f"/subjects/{in_path(subject)}/versions", body)
    schema = parse(options, {"schemaType": "AVRO", **found})
    header = b"\0" + int(found["id"]).to_bytes(4, "big")
    match schema.type:
        case "AVRO":
            encode = _avro(json.loads(schema.formatted("resolved")))
        case "JSON":
            encode = _json(schema)
        case _:
            from strandline.registry.formats.protobuf.messages import message_classes

            encode = _protobuf(message_classes(schema)[(0,)])

    def framed(line: bytes) -> bytes:
        try:
            return header + encode(line)
        except BadRow:
            raise
        except Exception as error:  # whatever an encoder raises is about the line
            raise BadRow(f"the value does not fit the schema {found['id']}: {error}") from error

    return framed


def _avro(schema: Any) -> Encode:
    from fastavro import parse_schema, schemaless_writer

    names: dict[str, Any] = {}
    writer = parse_schema(schema, named_schemas=names)

    def encode(line: bytes) -> bytes:
        made = io.BytesIO()
        schemaless_writer(made, writer, _value(json.loads(line), writer, names), strict=True)
        return made.getvalue()

    return encode


def _value(value: Any, schema: Any, names: dict[str, Any]) -> Any:
    """A value of JSON as its Avro type wants it: bytes, decimals and times are text in JSON."""
    if isinstance(schema, str):
        schema = names.get(schema, {"type": schema})
    if isinstance(schema, list):
        if value is None:
            return None
        branches = [each for each in schema if each != "null"]
        return _value(value, branches[0], names) if len(branches) == 1 else value
    kind, logical = schema["type"], schema.get("logicalType", "")
    if isinstance(value, str) and logical == "decimal":
        try:
            return Decimal(value)
        except InvalidOperation:
            raise BadRow(f"{value!r} is no decimal number") from None
    if isinstance(value, str) and "timestamp" in logical:
        return datetime.fromisoformat(value)
    if isinstance(value, str) and kind in ("bytes", "fixed"):
        return value.encode("latin-1")
    if isinstance(value, dict) and kind in ("record", "error"):
        types = {field["name"]: field["type"] for field in schema["fields"]}
        return {key: _value(each, types[key], names) if key in types else each for key, each in value.items()}
    if isinstance(value, list) and kind == "array":
        return [_value(each, schema["items"], names) for each in value]
    if isinstance(value, dict) and kind == "map":
        return {key: _value(each, schema["values"], names) for key, each in value.items()}
    return value


def _json(schema: Any) -> Encode:
    from strandline.cli.schemas.decoding import json_validator

    validate = json_validator(schema)

    def encode(line: bytes) -> bytes:
        validate(json.loads(line))
        return line

    return encode


def _protobuf(kind: Any) -> Encode:
    from google.protobuf.json_format import Parse

    def encode(line: bytes) -> bytes:
        # The first message of the file: an empty list of indexes.
        return b"\0" + bytes(Parse(line, kind()).SerializeToString())

    return encode


__all__ = ["Refused", "schema_writer"]
