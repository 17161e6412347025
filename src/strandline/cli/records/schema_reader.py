"""`consume --registry`: converts values with a schema of the registry to JSON text."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from strandline.cli.failures import say_error
from strandline.cli.schemas.connection import registry_client, registry_result
from strandline.serde.errors import NotFramed, SerdeError, UndecodableValue, UnknownSchema
from strandline.serde.framing import GUID_BYTES, HEADERS, Frame, header_frame, read_frame, read_indexes
from strandline.serde.registry.schemas import AVRO, JSON

if TYPE_CHECKING:
    from strandline.client.consumer.record_decoder import ConsumerRecord

Decode = Callable[[bytes, int], bytes]  # from the data and the position of the value in it, to JSON text


class SchemaReader:
    """Looks each schema up once. Bytes without a schema are returned unchanged, and so are bytes that cannot be
    decoded; the first of these for each schema is reported."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._registry = registry_client(options)
        self._decoders: dict[bytes, Decode | None] = {}

    def read(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        return [
            record._replace(key=self._text(record, "key"), value=self._text(record, "value"))
            for record in records
        ]

    def _text(self, record: ConsumerRecord, part: str) -> bytes | None:
        data: bytes | None = getattr(record, part)
        if data is None:
            return None
        in_header = header_frame(record.headers, HEADERS[part])
        framed = data if in_header is None else in_header
        try:
            frame = read_frame(framed)
        except NotFramed:
            return data
        if in_header is None and frame.guid is not None:
            return data  # a GUID is in the header
        key = framed[: frame.size] if in_header is None else framed
        if key not in self._decoders:
            self._decoders[key] = self._decoder(frame, framed)
        decode = self._decoders[key]
        if decode is not None:
            try:
                return decode(data, 0 if in_header is not None else frame.size)
            except SerdeError as error:
                place = f"{record.topic}-{record.partition} offset {record.offset}"
                say_error(f"{place} does not decode with {frame.name}: {error}")
        return data

    def _decoder(self, frame: Frame, framed: bytes) -> Decode | None:
        """Returns the function that reads values of a schema; None if the registry does not have the schema, which is
        reported."""
        try:
            found = registry_result(self._registry, lambda each: _schema(each, frame))
            return _decode_function(found, frame, framed[frame.size :])
        except UnknownSchema:
            say_error(f"the registry has no {frame.name}: its records are printed as they are")
        except SerdeError as error:
            say_error(f"{frame.name} cannot be used: {error}; its records are printed as they are")
        return None


async def _schema(registry: Any, frame: Frame, format: str = "") -> Any:
    from strandline.serde.protobuf_schemas import SERIALIZED

    found = await (
        registry.by_id(frame.id, format) if frame.guid is None else registry.by_guid(frame.guid, format)
    )
    if found.schema.type in (AVRO, JSON) or format:
        return found
    return await _schema(registry, frame, SERIALIZED)


def _decode_function(found: Any, frame: Frame, after: bytes) -> Decode:
    if found.schema.type == JSON:
        return lambda data, start: data[start:]
    if found.schema.type == AVRO:
        from strandline.serde.avro import avro_decoder, parse_avro

        read = avro_decoder(parse_avro(found), None, frame.name)
        return lambda data, start: json.dumps(
            read(data, start), default=_plain, ensure_ascii=False, separators=(",", ":")
        ).encode()
    from strandline.serde.protobuf_schemas import message_classes

    return _protobuf(message_classes(found), frame, after)


def _plain(value: Any) -> Any:
    """Returns a value for which JSON has no type: bytes as in Avro's own JSON, times as ISO 8601, others as text."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    isoformat = getattr(value, "isoformat", None)
    return str(value) if isoformat is None else isoformat()


def _protobuf(classes: dict[tuple[int, ...], Any], frame: Frame, after: bytes) -> Decode:
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError

    in_header = read_indexes(after, 0)[0] if frame.size == GUID_BYTES else None

    def decode(data: bytes, start: int) -> bytes:
        path, start = (in_header, start) if in_header is not None else read_indexes(data, start)
        if path not in classes:
            raise UndecodableValue(f"there is no message at {list(path)}")
        message = classes[path]()
        try:
            message.ParseFromString(data[start:])
        except DecodeError as error:
            raise UndecodableValue(str(error)) from error
        value = MessageToDict(message, preserving_proto_field_name=True)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    return decode
