"""`produce --schema`: converts JSON text to values with a schema of the registry."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from strandline.cli.exit_codes import FAILED, NOT_FOUND
from strandline.cli.records.rows import BadRow
from strandline.cli.schemas.connection import Refused, read_schema, registry_client, registry_result
from strandline.serde.errors import SerdeError, UnknownSchema
from strandline.serde.framing import id_prefix, write_indexes
from strandline.serde.registry.schemas import AVRO, JSON, RegisteredSchema, Schema

Encode = Callable[[bytes], bytes]


def schema_writer(options: argparse.Namespace) -> Encode:
    """Returns a function that encodes a line of JSON with the id of the schema in front; it raises BadRow for a line
    that does not fit. Raises Refused if the registry does not have the schema, or refuses it. `--schema latest` is the
    latest version of the subject; anything else is a file, whose schema is registered.
    """
    subject = options.subject or f"{options.topic}-value"
    registry = registry_client(options)
    try:
        if options.schema == "latest":
            found = registry_result(registry, lambda each: each.latest(subject))
        else:
            schema = _schema_of(options)
            found = registry_result(registry, lambda each: each.register(subject, schema))
        encode = _encoder(registry, found)
    except UnknownSchema as error:
        raise Refused(str(error), NOT_FOUND) from None
    except SerdeError as error:
        raise Refused(str(error), FAILED) from None

    def framed(line: bytes) -> bytes:
        try:
            return encode(line)
        except BadRow:
            raise
        except (ValueError, TypeError) as error:  # not JSON, or a value that does not fit
            raise BadRow(f"the value does not fit the schema {found.id}: {error}") from error

    return framed


def _schema_of(options: argparse.Namespace) -> Schema:
    options.file, files = options.schema, options.file
    body = read_schema(options)
    options.file = files
    return Schema.from_json(body)


def _encoder(registry: Any, found: RegisteredSchema) -> Encode:
    assert found.id is not None, "a version of a subject has an id"
    prefix = id_prefix(found.id)
    if found.schema.type == AVRO:
        return _avro(found, prefix)
    if found.schema.type == JSON:
        from strandline.serde.errors import ValueDoesNotFit
        from strandline.serde.json_schema import json_check

        check = json_check(found, ValueDoesNotFit)

        def encode_json(line: bytes) -> bytes:
            check(json.loads(line))
            return prefix + line

        return encode_json
    return _protobuf(registry, found.id, prefix)


def _avro(found: RegisteredSchema, prefix: bytes) -> Encode:
    from strandline.serde.avro import avro_encoder, parse_avro

    names: dict[str, Any] = {}
    writer = parse_avro(found, names=names)
    write = avro_encoder(writer)
    return lambda line: write(prefix, _value(json.loads(line), writer, names))


def _value(value: Any, schema: Any, names: dict[str, Any]) -> Any:
    """Returns a JSON value in its Avro type: bytes, decimals and times are text in JSON."""
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
            raise BadRow(f"{value!r} is not a decimal number") from None
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


def _protobuf(registry: Any, id: int, prefix: bytes) -> Encode:
    from strandline.serde.protobuf import message_encoder
    from strandline.serde.protobuf_schemas import SERIALIZED, message_classes

    described = registry_result(registry, lambda each: each.by_id(id, SERIALIZED))
    first = message_classes(described).get((0,))
    if first is None:
        raise Refused(f"the schema {id} has no message")
    write = message_encoder(first)
    head = prefix + write_indexes((0,))
    return lambda line: write(head, json.loads(line))


__all__ = ["Refused", "schema_writer"]
