"""Decodes values with schemas of a registry into Arrow columns, whichever schemas they were written with.

    columns = await RegistryColumns.open("http://localhost:8081", subject="orders-value")
    table = await consumer.poll_table()
    orders = await columns.decode(table["value"], table["headers"])
    orders.columns, orders.errors, orders.kinds

The columns are those of the reader's schema and do not change. Each row may have another writer's schema; the registry
is asked for each schema once. A row that cannot be decoded is null: `errors` has the reason as text, and `kinds` as one
of the words `not-framed`, `unknown-schema`, `unusable-schema` and `undecodable` (the `kind` of a SerdeError). If the
registry does not respond, SchemaRegistryError is raised and no row is to blame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from strandline.serde.bounded_cache import BoundedCache
from strandline.serde.columns.avro_columns import AvroColumns
from strandline.serde.columns.frames import FramedRows, SchemaKey
from strandline.serde.columns.json_columns import JsonColumns
from strandline.serde.columns.protobuf_columns import ProtobufColumns
from strandline.serde.errors import NotFramed, SerdeError, UndecodableValue, UnusableSchema
from strandline.serde.framing import GUID_BYTES, HEADERS, ID_BYTES, read_frame
from strandline.serde.protobuf_schemas import SERIALIZED
from strandline.serde.real_ports import run_blocking
from strandline.serde.registry.client import SchemaRegistry
from strandline.serde.registry.schemas import AVRO, JSON, PROTOBUF, RegisteredSchema, Schema
from strandline.serde.schema_serializer import registry_of

_NO_FRAME: Final = "the value names no schema: neither an id in front of it, nor a GUID in a header"
# The registry is asked again for a schema that it did not know, or that was unusable, after this time.
_FAILED_S: Final = 30.0


class DecodedColumns(NamedTuple):
    """A struct column, and for each row that has no value the reason and its kind."""

    columns: Any
    errors: Any
    kinds: Any


class RegistryColumns:
    """Decodes columns of framed values into columns of one reader's schema."""

    def __init__(
        self,
        registry: SchemaRegistry | str | Mapping[str, Any],
        reader: RegisteredSchema,
        *,
        message: str | None = None,
        part: str = "value",
    ) -> None:
        """Raises UnusableSchema for a schema that cannot be columns. `message` names a message of a Protobuf file."""
        self.registry = registry_of(registry)
        self._header = HEADERS[part]
        self._type = reader.schema.type
        self._format: Any = _columns_of(reader, message)
        self.type = self._format.type
        entries_max = self.registry.settings.entries_max
        self._decoders: BoundedCache[SchemaKey, Any] = BoundedCache(entries_max)
        self._failures: BoundedCache[SchemaKey, tuple[SerdeError, float]] = BoundedCache(entries_max)

    @classmethod
    async def open(
        cls,
        registry: SchemaRegistry | str | Mapping[str, Any],
        *,
        subject: str | None = None,
        schema: Schema | None = None,
        message: str | None = None,
        part: str = "value",
    ) -> RegistryColumns:
        """Returns a decoder whose reader's schema is `schema`, or the latest one of a subject."""
        registry = registry_of(registry)
        reader = await reader_schema(registry, subject=subject, schema=schema)
        return cls(registry, reader, message=message, part=part)

    async def decode(self, values: Any, headers: Any = None) -> DecodedColumns:
        """Returns the columns of framed values; `headers` are those of the same rows. Raises SchemaRegistryError."""
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        rows = FramedRows(values, headers, self._header)
        for key in rows.keys:
            await self._look_up(key)
        return DecodedColumns(*rows.decode(self.type, self._decode_values))

    def decode_blocking(self, values: Any, headers: Any = None) -> DecodedColumns:
        """Does the same as `decode` for code that blocks: the registry is asked on the loop thread, and values are
        decoded on the caller's."""
        rows = FramedRows(values, headers, self._header)
        missing = [key for key in rows.keys if key not in self._decoders]
        if missing:
            run_blocking(self._look_up_all(missing))
        return DecodedColumns(*rows.decode(self.type, self._decode_values))

    async def _look_up_all(self, keys: list[SchemaKey]) -> None:
        for key in keys:
            await self._look_up(key)

    async def _look_up(self, key: SchemaKey) -> None:
        """Makes the decoder of a schema. A schema that is unknown or unusable is remembered as a failure, which becomes
        the error of its rows."""
        if key is None or key in self._decoders:
            return
        now = self.registry.clock.monotonic()
        failed = self._failures.get(key)
        if failed is not None and now < failed[1]:
            return
        try:
            self._decoders.put(key, await self._decoder(key))
            self._failures.pop(key, None)
        except SerdeError as error:
            self._failures.put(key, (error, now + _FAILED_S))

    async def _decoder(self, key: int | bytes) -> Any:
        format = SERIALIZED if self._type == PROTOBUF else ""
        path = b""
        if isinstance(key, bytes):
            frame = read_frame(key)
            assert frame.guid is not None
            path = key[GUID_BYTES:]
            writer = await self.registry.by_guid(frame.guid, format)
        else:
            writer = await self.registry.by_id(key, format)
        if writer.schema.type != self._type:
            raise UnusableSchema(f"the schema is one of {writer.schema.type}, and not of {self._type}")
        return self._format.decoder(writer, path)

    def _decode_values(self, key: SchemaKey, values: Any) -> tuple[Any, Any, Any]:
        """Returns the columns, errors and kinds of errors of values that name the same schema."""
        if key is None:
            return self._failed(len(values), _NO_FRAME, NotFramed.kind)
        decode = self._decoders.get(key)
        if decode is None:
            error, _ = self._failures.get(key) or (UnusableSchema("cache.capacity is too small"), 0.0)
            return self._failed(len(values), f"{_name(key)}: {error}", error.kind)
        columns, errors = decode(values, 0 if isinstance(key, bytes) else ID_BYTES)
        if errors.null_count == len(errors):
            return columns, errors, pa.nulls(len(errors), pa.string())
        # Fields with a default have it in every row, and a row that was not decoded must be null.
        children = [columns.field(at) for at in range(self.type.num_fields)]
        columns = pa.StructArray.from_arrays(children, fields=list(self.type), mask=errors.is_valid())
        kinds = pc.if_else(errors.is_valid(), pa.scalar(UndecodableValue.kind), pa.scalar(None, pa.string()))
        return columns, errors, kinds

    def _failed(self, count: int, text: str, kind: str) -> tuple[Any, Any, Any]:
        return pa.nulls(count, self.type), pa.repeat(text, count), pa.repeat(kind, count)


async def reader_schema(
    registry: SchemaRegistry, *, subject: str | None = None, schema: Schema | None = None
) -> RegisteredSchema:
    """Returns the reader's schema, in the form in which columns need it: `schema`, or the latest one of a subject."""
    if schema is not None:
        return RegisteredSchema(schema=schema, imported=await registry.imported(schema))
    if subject is None:
        raise ValueError("a reader's schema is missing: give a subject, or a schema")
    latest = await registry.latest(subject)
    if latest.schema.type != PROTOBUF:
        return latest
    assert latest.version is not None, "a version of a subject has its number"
    return await registry.by_version(subject, latest.version, SERIALIZED)


def _name(key: int | bytes) -> str:
    return f"schema id {key}" if isinstance(key, int) else read_frame(key).name


def _columns_of(reader: RegisteredSchema, message: str | None) -> Any:
    match reader.schema.type:
        case type if type == AVRO:
            return AvroColumns(reader)
        case type if type == JSON:
            return JsonColumns(reader)
        case type if type == PROTOBUF:
            return ProtobufColumns(reader, message)
    raise UnusableSchema(f"{reader.schema.type} is not a supported type of schema")
