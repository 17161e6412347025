"""`consume --registry`: values with a schema of the registry become JSON text."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from strandline.cli.failures import say_error
from strandline.cli.schemas.connection import Refused, ask
from strandline.cli.schemas.decoding import message_indexes
from strandline.cli.schemas.diff import parse

if TYPE_CHECKING:
    from strandline.client.consumer.record_decoder import ConsumerRecord

_ID_BYTES: Final = 5  # a zero, and an id
_GUID_BYTES: Final = 17  # a one, and a guid
_HEADERS: Final = {"key": "__key_schema_id", "value": "__value_schema_id"}

Decode = Callable[[bytes, bytes], bytes]  # what names the message in a header, and the data; JSON text


class SchemaReader:
    """Looks each schema up once. Bytes without a schema stay as they are; so do those that do not decode, and the
    first of them for each schema is told."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._decoders: dict[str, Decode | None] = {}

    def read(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        return [
            record._replace(key=self._text(record, "key"), value=self._text(record, "value"))
            for record in records
        ]

    def _text(self, record: ConsumerRecord, part: str) -> bytes | None:
        data: bytes | None = getattr(record, part)
        if data is None:
            return None
        named = next((value for name, value in record.headers if name == _HEADERS[part]), None)
        if named is not None and len(named) >= _GUID_BYTES and named[0] == 1:
            guid = UUID(bytes=bytes(named[1:_GUID_BYTES]))
            return self._decoded(f"/schemas/guids/{guid}", bytes(named[_GUID_BYTES:]), data, record)
        if len(data) >= _ID_BYTES and data[0] == 0:
            id = int.from_bytes(data[1:_ID_BYTES], "big")
            return self._decoded(f"/schemas/ids/{id}", b"", data[_ID_BYTES:], record, data)
        return data

    def _decoded(
        self, path: str, indexes: bytes, data: bytes, record: ConsumerRecord, whole: bytes | None = None
    ) -> bytes:
        if path not in self._decoders:
            self._decoders[path] = self._decoder(path)
        decode = self._decoders[path]
        if decode is not None:
            try:
                return decode(indexes, data)
            except Exception as error:  # whatever a decoder raises is about the data
                self._decoders[path] = None
                place = f"{record.topic}-{record.partition} offset {record.offset}"
                say_error(f"{place} does not decode with the schema {path}: {type(error).__name__}: {error}")
        return data if whole is None else whole

    def _decoder(self, path: str) -> Decode | None:
        try:
            found = ask(self._options, "GET", path)
            schema = parse(self._options, {"schemaType": "AVRO", **found})
        except Refused as error:
            if error.code != 4:
                raise
            say_error(f"the registry has no {path}: its records are printed as they are")
            return None
        match schema.type:
            case "AVRO":
                return _avro(json.loads(schema.formatted("resolved")))
            case "JSON":
                return lambda _, data: data
            case _:
                from strandline.registry.formats.protobuf.messages import message_classes

                return _protobuf(message_classes(schema))


def _avro(schema: Any) -> Decode:
    from fastavro import parse_schema, schemaless_reader

    writer = parse_schema(schema)

    def decode(_: bytes, data: bytes) -> bytes:
        source = io.BytesIO(data)
        value = schemaless_reader(source, writer, None)
        if source.read(1):
            raise ValueError("bytes are left after the value")
        return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":")).encode()

    return decode


def _plain(value: Any) -> Any:
    """A value that JSON has no type for: bytes as Avro's own JSON has them, times by ISO 8601, others as text."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    isoformat = getattr(value, "isoformat", None)
    return str(value) if isoformat is None else isoformat()


def _protobuf(classes: dict[tuple[int, ...], Any]) -> Decode:
    from google.protobuf.json_format import MessageToDict

    def decode(indexes: bytes, data: bytes) -> bytes:
        path, start = message_indexes(indexes or data)
        message = classes[path]()
        message.ParseFromString(data if indexes else data[start:])
        value = MessageToDict(message, preserving_proto_field_name=True)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    return decode
