"""Decodes the newest records of a topic with a schema that is not registered yet."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.cli.connection import settings_of
from strandline.cli.schemas.connection import Refused, ask
from strandline.cli.schemas.diff import parse
from strandline.client.sync import Consumer
from strandline.registry.formats.parsed import InvalidSchema, ParsedSchema

_HEADER_BYTES: Final = 5  # a zero byte and an id of four bytes
_POLL_SECONDS: Final = 2.0


def decode_newest(
    options: argparse.Namespace, schema: dict[str, Any], progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """Returns the number of newest records that the schema decodes, and the records that it does not decode."""
    try:
        decoder = _decoder(options, parse(options, schema))
    except (InvalidSchema, ValueError) as error:
        raise Refused(f"the schema is invalid: {error}") from None
    result: dict[str, Any] = {"read": 0, "decoded": 0, "skipped": 0, "failed": []}
    settings = settings_of(options, "consumer") | {"enable.auto.commit": "false"}
    with Consumer(settings) as consumer:
        partitions = [
            TopicPartition(each.topic, each.partition) for each in consumer.partitions_for(options.topic)
        ]
        if not partitions:
            raise Refused(f"topic {options.topic} does not exist", 4)
        ends = consumer.end_offsets(partitions)
        starts = consumer.beginning_offsets(partitions)
        left = {}
        consumer.assign(partitions)
        for each in partitions:
            first = max(starts[each], ends[each] - options.records)
            consumer.seek(each, first)
            if first < ends[each]:
                left[each] = ends[each]
        total = sum(ends[each] - max(starts[each], ends[each] - options.records) for each in partitions)
        while left:
            records = consumer.poll(_POLL_SECONDS)
            for record in records:
                where = TopicPartition(record.topic, record.partition)
                if record.offset < ends[where]:
                    _decode(decoder, record, options.keys, result)
            progress(min(result["read"], total), total)
            left = {each: end for each, end in left.items() if consumer.position(each) < end}
    progress(total, total)
    return result


def _decode(
    decoder: Callable[[int, bytes], None], record: Any, of_keys: bool, result: dict[str, Any]
) -> None:
    result["read"] += 1
    data = record.key if of_keys else record.value
    if data is None or len(data) < _HEADER_BYTES or data[0] != 0:
        result["skipped"] += 1
        return
    id = int.from_bytes(data[1:_HEADER_BYTES], "big")
    try:
        decoder(id, data[_HEADER_BYTES:])
    except Refused as error:
        if error.code != 4:
            raise
        result["skipped"] += 1
    except Exception as error:  # any error of a decoder is the result
        result["failed"].append(
            {
                "partition": record.partition,
                "offset": record.offset,
                "id": id,
                "error": f"{type(error).__name__}: {error}"[:300],
            }
        )
    else:
        result["decoded"] += 1


def _decoder(options: argparse.Namespace, schema: ParsedSchema) -> Callable[[int, bytes], None]:
    match schema.type:
        case "AVRO":
            return _avro_decoder(options, schema)
        case "JSON":
            return _json_decoder(schema)
        case _:
            return _protobuf_decoder(schema)


def _avro_decoder(options: argparse.Namespace, schema: ParsedSchema) -> Callable[[int, bytes], None]:
    from fastavro import parse_schema, schemaless_reader

    reader = parse_schema(json.loads(schema.formatted("resolved")))
    writers: dict[int, Any] = {}

    def decode(id: int, data: bytes) -> None:
        if id not in writers:
            found = ask(options, "GET", f"/schemas/ids/{id}?format=resolved")
            writers[id] = parse_schema(json.loads(found["schema"]))
        source = io.BytesIO(data)
        schemaless_reader(source, writers[id], reader)
        if source.read(1):
            raise ValueError("bytes are left after the record")

    return decode


def json_validator(schema: ParsedSchema) -> Callable[[Any], None]:
    """Raises an error that names the place in a value that does not fit the schema."""
    from jsonschema import validators
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

    value = json.loads(schema.text)
    kind = validators.validator_for(value, default=validators.Draft7Validator)
    resources = [
        (name, Resource.from_contents(json.loads(text), default_specification=DRAFT7))
        for name, text in schema.resolved.items()
    ]
    validator = kind(value, registry=Registry().with_resources(resources))
    validate: Callable[[Any], None] = validator.validate
    return validate


def _json_decoder(schema: ParsedSchema) -> Callable[[int, bytes], None]:
    validate = json_validator(schema)
    return lambda id, data: validate(json.loads(data))


def _protobuf_decoder(schema: ParsedSchema) -> Callable[[int, bytes], None]:
    """Returns a decoder that uses the message of the new schema that a record's indexes name."""
    from strandline.registry.formats.protobuf.messages import message_classes

    classes = message_classes(schema)

    def decode(id: int, data: bytes) -> None:
        indexes, start = message_indexes(data)
        message = classes[indexes]()
        message.ParseFromString(data[start:])

    return decode


def message_indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """Returns the path to the message's type, and the position at which the message begins. The path is zigzag varints;
    a single zero stands for the first message."""
    length, position = _varint(data, 0)
    indexes = []
    for _ in range(length):
        index, position = _varint(data, position)
        indexes.append(index)
    return tuple(indexes or [0]), position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), position
