"""Values of a schema registry in a DataFrame: decoded where records are read, or in a column; and encoded again.

A task waits for a registry that does not respond, because that is no fault of the records. A value that cannot be
decoded becomes null, with a text that begins with the kind of the reason: `unknown-schema`, `not-framed`,
`unusable-schema` or `undecodable`. Pipelines make dead letters of these (`pipeline/plan/decoding.py`).
"""

from __future__ import annotations

import json
import logging
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from strandline.serde.errors import RegistryUnavailable, SerdeError, UnusableSchema
from strandline.serde.framing import id_prefix
from strandline.serde.protobuf_schemas import SERIALIZED
from strandline.serde.registry.client import SchemaRegistry
from strandline.serde.registry.schemas import AVRO, JSON, PROTOBUF, RegisteredSchema, Schema
from strandline.spark.options import RegistryValues

if TYPE_CHECKING:
    from pyspark.sql import Column

    from strandline.serde.columns.decoder import RegistryColumns

T = TypeVar("T")

_log = logging.getLogger(__name__)

# The columns after those of a record: the decoded fields, and the reason why there are none.
DECODED: Final = "decoded"
ERROR: Final = "decode_error"
DATA: Final = "data"
ENCODE_ERROR: Final = "encode_error"
_PAUSES_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
FORMATS: Final = {"avro": AVRO, "json": JSON, "protobuf": PROTOBUF}


def wait_for_registry(registry: SchemaRegistry, call: Callable[[SchemaRegistry], Any]) -> Any:
    """Returns the result of a call; while the registry is away the call is tried again."""
    return _waited(lambda: registry.blocking(call))


def _waited(attempt: Callable[[], T]) -> T:
    number = 0
    while True:
        try:
            return attempt()
        except RegistryUnavailable as error:
            pause_s = _PAUSES_S[min(number, len(_PAUSES_S) - 1)]
            _log.warning("waiting for the schema registry: %s", error)
            time.sleep(pause_s)
            number += 1


def resolve_reader(
    settings: str | Mapping[str, Any],
    *,
    subject: str | None = None,
    schema: Schema | None = None,
    message: str | None = None,
    waits: bool = True,
) -> RegistryValues:
    """Returns how values are decoded, with the latest schema of the subject as the reader's if none is given. Without
    `waits` a registry that is away is an error."""
    from strandline.serde.columns.decoder import reader_schema

    text = settings if isinstance(settings, str) else json.dumps(dict(settings))
    registry = SchemaRegistry(text)
    ask = wait_for_registry if waits else SchemaRegistry.blocking
    reader = ask(registry, lambda each: reader_schema(each, subject=subject, schema=schema))
    return RegistryValues(text, reader, message)


def spark_type(values: RegistryValues) -> Any:
    """Returns the type of the decoded column. Raises UnusableSchema."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(_decoder(values).type)


def source_schema(values: RegistryValues, *, include_headers: bool) -> Any:
    """Returns the columns of the source with DECODED and ERROR."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StringType

    from strandline.spark.columns import ARROW_SCHEMA, ARROW_SCHEMA_WITH_HEADERS

    columns = from_arrow_schema(ARROW_SCHEMA_WITH_HEADERS if include_headers else ARROW_SCHEMA)
    return columns.add(DECODED, spark_type(values)).add(ERROR, StringType())


def with_decoded(
    batches: Iterator[pa.RecordBatch], values: RegistryValues, *, keep_headers: bool
) -> Iterator[pa.RecordBatch]:
    """Yields batches with two more columns, DECODED and ERROR. The batches come with headers, which are dropped unless
    the user asked for them."""
    for batch in batches:
        decoded, errors = decode(values, batch.column("value"), batch.column("headers"))
        names = batch.schema.names if keep_headers else [n for n in batch.schema.names if n != "headers"]
        columns = [batch.column(name) for name in names]
        yield pa.RecordBatch.from_arrays([*columns, decoded, errors], names=[*names, DECODED, ERROR])


def decode(values: RegistryValues, data: Any, headers: Any) -> tuple[Any, Any]:
    """Returns the decoded column and the errors."""
    decoder = _decoder(values)
    found = _waited(lambda: decoder.decode_blocking(data, headers))
    if found.errors.null_count == len(found.errors):
        return found.columns, found.errors
    return found.columns, pc.binary_join_element_wise(found.kinds, found.errors, ": ")


def decode_column(value: str, headers: str, values: RegistryValues) -> Column:
    """Returns a column with a struct of DECODED and ERROR, from columns of values and headers."""
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import StringType, StructField, StructType

    def decode_rows(data: pa.Array, pairs: pa.Array) -> pa.Array:
        return pa.StructArray.from_arrays(decode(values, data, pairs), names=[DECODED, ERROR])

    result = StructType([StructField(DECODED, spark_type(values)), StructField(ERROR, StringType())])
    make_function: Any = arrow_udf
    # Otherwise Spark would copy the call into filters too, and decode everything twice.
    column: Column = make_function(decode_rows, result).asNondeterministic()(value, headers)
    return column


@cache
def _decoder(values: RegistryValues) -> RegistryColumns:
    """Returns the decoder of a reader's schema, one for all batches of a process."""
    from strandline.serde.columns.decoder import RegistryColumns

    return RegistryColumns(values.settings, values.reader, message=values.message)


# Writing


@dataclass(frozen=True, slots=True)
class RegistryWriter:
    """How values are encoded: with a schema that has its id."""

    schema: RegisteredSchema
    message: str | None = None


def resolve_writer(
    settings: str | Mapping[str, Any],
    subject: str,
    *,
    schema: Schema | None = None,
    message: str | None = None,
    is_trial: bool = False,
) -> RegistryWriter:
    """Returns how values are encoded: with a schema, which is registered, or with the latest of the subject. A trial
    registers nothing, and does not wait for a registry that is away; a schema that is not registered has the id 0."""
    text = settings if isinstance(settings, str) else json.dumps(dict(settings))
    registry = SchemaRegistry(text)

    async def place(each: SchemaRegistry) -> RegisteredSchema:
        if is_trial and schema is not None:
            return RegisteredSchema(schema=schema, id=0, imported=await each.imported(schema))
        found = await (each.latest(subject) if schema is None else each.register(subject, schema))
        if found.schema.type != PROTOBUF:
            return found
        assert found.id is not None
        described = await each.by_id(found.id, SERIALIZED)
        return RegisteredSchema(schema=described.schema, id=found.id, imported=described.imported)

    ask = SchemaRegistry.blocking if is_trial else wait_for_registry
    return RegistryWriter(ask(registry, place), message)


def to_registry(
    column: str | Column,
    *,
    registry: str | Mapping[str, Any],
    topic: str | None = None,
    subject: str | None = None,
    schema: str | Schema | None = None,
    format: str = "avro",
    message: str | None = None,
) -> Column:
    """Returns a binary column of values with a schema of the registry, from a column of structs.

    The subject is `<topic>-value` unless one is named. With `schema` that schema is registered; without one values are
    written with the latest schema of the subject. A row that does not fit fails the query with an error that names the
    field; null stays null.
    """
    from pyspark.sql import functions as f

    if format not in FORMATS:
        raise ValueError(f"format={format!r}: use {', '.join(FORMATS)}")
    if subject is None and topic is None:
        raise ValueError("the subject is missing: name the topic, or a subject")
    given = Schema(schema, FORMATS[format]) if isinstance(schema, str) else schema
    writer = resolve_writer(registry, subject or f"{topic}-value", schema=given, message=message)
    made = encode_column(column, writer)
    failed = f.raise_error(f.concat(f.lit("the value cannot be written: "), made[ENCODE_ERROR]))
    return f.when(made[ENCODE_ERROR].isNotNull(), failed.cast("binary")).otherwise(made[DATA])


def encode_column(column: str | Column, writer: RegistryWriter) -> Column:
    """Returns a column with a struct of DATA and ENCODE_ERROR, from a column of structs."""
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import BinaryType, StringType, StructField, StructType

    def encode_rows(rows: pa.Array) -> pa.Array:
        encode = _encoder(writer)
        data: list[bytes | None] = []
        errors: list[str | None] = []
        for row in _python_rows(rows):
            made = error = None
            if row is not None:
                try:
                    made = encode(row)
                except SerdeError as wrong:
                    error = f"{wrong.kind}: {wrong}"
            data.append(made)
            errors.append(error)
        return pa.StructArray.from_arrays(
            [pa.array(data, pa.binary()), pa.array(errors, pa.string())], names=[DATA, ENCODE_ERROR]
        )

    result = StructType([StructField(DATA, BinaryType()), StructField(ENCODE_ERROR, StringType())])
    make_function: Any = arrow_udf
    encoded: Column = make_function(encode_rows, result).asNondeterministic()(column)
    return encoded


@cache
def _encoder(writer: RegistryWriter) -> Callable[[Any], bytes]:
    """Returns the function that encodes a row, one for all batches of a process."""
    placed = writer.schema
    assert placed.id is not None, "a schema of a subject has an id"
    prefix = id_prefix(placed.id)
    if placed.schema.type == AVRO:
        from strandline.serde.avro import avro_encoder, parse_avro

        encode_avro = avro_encoder(parse_avro(placed))
        return lambda row: encode_avro(prefix, row)
    if placed.schema.type == JSON:
        from strandline.serde.json_schema import json_encoder

        encode_json = json_encoder(placed)
        return lambda row: encode_json(prefix, _json_ready(_without_nulls(row)))
    from strandline.serde.framing import write_indexes
    from strandline.serde.protobuf import message_encoder
    from strandline.serde.protobuf_schemas import message_classes

    for path, kind in message_classes(placed).items():
        if path == (0,) if writer.message is None else kind.DESCRIPTOR.full_name == writer.message:
            encode_message = message_encoder(kind)
            head = prefix + write_indexes(path)
            return lambda row: encode_message(head, _json_ready(_without_nulls(row)))
    raise UnusableSchema(f"the schema has no message {writer.message or ''}".rstrip())


def _python_rows(rows: pa.Array) -> list[Any]:
    return (
        [_with_dicts(each, rows.type) for each in rows.to_pylist()]
        if _has_map(rows.type)
        else rows.to_pylist()
    )


def _has_map(kind: Any) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_has_map(kind.field(at).type) for at in range(kind.num_fields))


def _with_dicts(value: Any, kind: Any) -> Any:
    """Returns the value with dicts where Arrow has lists of pairs."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: _with_dicts(each, kind.item_type) for key, each in value}
    if pa.types.is_struct(kind):
        return {field.name: _with_dicts(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_with_dicts(each, kind.value_type) for each in value]
    return value


def _without_nulls(value: Any) -> Any:
    """Returns the value without fields that are null: in JSON and Protobuf such a field is left out."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value


def _json_ready(value: Any) -> Any:
    """Returns the value in types of JSON: times as ISO 8601, decimals as text, bytes as base64."""
    if isinstance(value, dict):
        return {key: _json_ready(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_json_ready(each) for each in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    isoformat = getattr(value, "isoformat", None)
    return str(value) if isoformat is None else isoformat()


__all__ = [
    "RegistryValues",
    "RegistryWriter",
    "decode_column",
    "encode_column",
    "resolve_reader",
    "resolve_writer",
    "to_registry",
]
