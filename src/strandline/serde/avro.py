"""Avro values with a schema of a registry, by fastavro."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any, ClassVar

from strandline.serde.avro_ranges import int_check
from strandline.serde.errors import UndecodableValue, UnusableSchema, ValueDoesNotFit
from strandline.serde.framing import Frame
from strandline.serde.registry.schemas import AVRO, RegisteredSchema, Schema
from strandline.serde.schema_serializer import Decode, Encode, SchemaDeserializer, SchemaSerializer


class AvroSerializer(SchemaSerializer):
    """Writes values as Avro: dicts for records, and what fastavro takes for other types; `to_dict` turns objects into
    those."""

    type: ClassVar[str] = AVRO

    def _record_name(self) -> str | None:
        if self._schema is None:
            return None
        schema = parse_avro(RegisteredSchema(schema=self._schema), tolerates_unknown=True)
        return schema.get("name") if isinstance(schema, dict) else None

    def _encoder(self, registered: RegisteredSchema) -> Encode:
        return avro_encoder(parse_avro(registered))


class AvroDeserializer(SchemaDeserializer):
    """Reads Avro values, as they were written or resolved against the reader's schema; `from_dict` turns them into
    objects."""

    type: ClassVar[str] = AVRO

    def _decoder(
        self, writer: RegisteredSchema, reader: RegisteredSchema | None, rest: bytes, frame: Frame
    ) -> Decode:
        parsed = None if reader is None else parse_avro(reader)
        return avro_decoder(parse_avro(writer), parsed, frame.name)


def avro_encoder(schema: Any) -> Encode:
    """Returns the function that writes values of a parsed schema."""
    from fastavro import schemaless_writer

    check_ints = int_check(schema)

    def encode(prefix: bytes, value: Any) -> bytes:
        if check_ints is not None:
            check_ints(value)
        buffer = BytesIO()
        buffer.write(prefix)
        try:
            schemaless_writer(buffer, schema, value)
        except Exception as error:  # fastavro raises whatever Python does with the value
            raise ValueDoesNotFit(_why(value, schema, error)) from error
        return buffer.getvalue()

    return encode


def _why(value: Any, schema: Any, error: Exception) -> str:
    """Says which field does not fit. This is found out after a failure only, because it takes longer than writing."""
    from fastavro.validation import ValidationError, validate

    try:
        validate(value, schema, raise_errors=True)
    except ValidationError as found:
        return "; ".join(map(_mistake, found.errors))
    except Exception:  # the value cannot be validated at all: the writer's error is the best there is
        pass
    return _text_of(error)


def _text_of(error: Exception) -> str:
    """Returns why reading or writing failed; many of fastavro's errors have no text, or one that says little alone."""
    if isinstance(error, EOFError):
        return "its bytes end too early"
    if isinstance(error, UnicodeDecodeError):
        return "a string is not UTF-8"
    return str(error) or f"fastavro raised {type(error).__name__}"


def _mistake(error: Any) -> str:
    """Returns the text for one mistake that fastavro has found: a value, a schema and a field, which is empty for the
    value itself."""
    schema = error.schema
    kind = schema.get("name", schema.get("type")) if isinstance(schema, dict) else schema
    return f"{error.field or 'the value'} is {repr(error.datum)[:100]}, and not {kind}"


def avro_decoder(writer: Any, reader: Any, name: str) -> Decode:
    """Returns the function that reads values of the writer's parsed schema, resolved against the reader's if there is
    one."""
    from fastavro import schemaless_reader
    from fastavro.read import SchemaResolutionError

    def decode(data: bytes, start: int) -> Any:
        source = BytesIO(data)
        source.seek(start)
        try:
            value = schemaless_reader(source, writer, reader)
        except SchemaResolutionError as error:
            raise UnusableSchema(f"{name} cannot be read with the reader's schema: {error}") from error
        except Exception as error:  # fastavro raises whatever Python does with the bytes
            raise UndecodableValue(f"the value is not Avro of {name}: {_text_of(error)}") from error
        if source.tell() != len(data):
            raise UndecodableValue(
                f"the value is not Avro of {name}: {len(data) - source.tell()} bytes are left after it"
            )
        return value

    return decode


def parse_avro(
    registered: RegisteredSchema, *, tolerates_unknown: bool = False, names: dict[str, Any] | None = None
) -> Any:
    """Returns a schema as fastavro takes it, with the types that it imports. Raises UnusableSchema. `tolerates_unknown`
    is for callers who only need its name. The schema's named types are added to `names`."""
    from fastavro import parse_schema
    from fastavro.schema import SchemaParseException, UnknownType

    names = {} if names is None else names
    try:
        for _, imported in registered.imported:
            parse_schema(_loaded(imported), named_schemas=names)
        return parse_schema(_loaded(registered.schema), named_schemas=names)
    except UnknownType as error:
        if tolerates_unknown:
            return _named(_loaded(registered.schema))
        raise UnusableSchema(f"the schema names the type {error.name}, which it does not import") from error
    except (SchemaParseException, TypeError, KeyError, ValueError) as error:
        raise UnusableSchema(f"the schema is not an Avro schema: {error}") from error


def _loaded(schema: Schema) -> Any:
    try:
        return json.loads(schema.text)
    except ValueError:
        return schema.text  # the name of a primitive type may stand without quotes


def _named(node: Any) -> Any:
    """Returns a schema with only its full name, which can be read without the types that the schema imports."""
    if not isinstance(node, dict) or "name" not in node:
        return node
    name, namespace = str(node["name"]), node.get("namespace")
    return {"name": name if "." in name or not namespace else f"{namespace}.{name}"}
