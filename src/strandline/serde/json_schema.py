"""Serializers of JSON values, which are checked against a JSON Schema of a registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar, Final

from strandline.serde.errors import SerdeError, UndecodableValue, UnusableSchema, ValueDoesNotFit
from strandline.serde.framing import Frame
from strandline.serde.registry.schemas import JSON, RegisteredSchema
from strandline.serde.schema_serializer import Decode, Encode, SchemaDeserializer, SchemaSerializer

_ERROR_CHARACTERS_MAX: Final = 300


class JsonSchemaSerializer(SchemaSerializer):
    """Writes values as JSON; `to_dict` turns objects into types that JSON has. With `validate=False` nothing is
    checked."""

    type: ClassVar[str] = JSON

    def __init__(self, *arguments: Any, validate: bool = True, **options: Any) -> None:
        self._validate = validate
        super().__init__(*arguments, **options)

    def _record_name(self) -> str | None:
        if self._schema is None:
            return None
        schema = _loaded(self._schema.text)
        return schema.get("title") if isinstance(schema, dict) else None

    def _encoder(self, registered: RegisteredSchema) -> Encode:
        return json_encoder(registered, validate=self._validate)


class JsonSchemaDeserializer(SchemaDeserializer):
    """Reads JSON values and checks them against the reader's schema, or against the writer's if there is no
    reader's."""

    type: ClassVar[str] = JSON

    def __init__(self, *arguments: Any, validate: bool = True, **options: Any) -> None:
        self._validate = validate
        super().__init__(*arguments, **options)

    def _decoder(
        self, writer: RegisteredSchema, reader: RegisteredSchema | None, rest: bytes, frame: Frame
    ) -> Decode:
        check = json_check(reader or writer, UndecodableValue) if self._validate else None

        def decode(data: bytes, start: int) -> Any:
            try:
                value = json.loads(data[start:])
            except (ValueError, RecursionError) as error:
                raise UndecodableValue(f"the value is not JSON: {error}") from error
            if check is not None:
                check(value)
            return value

        return decode


def json_encoder(registered: RegisteredSchema, *, validate: bool = True) -> Encode:
    """Returns the function that writes values of a schema. Raises UnusableSchema."""
    check = json_check(registered, ValueDoesNotFit) if validate else None
    encode_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

    def encode(prefix: bytes, value: Any) -> bytes:
        if check is not None:
            check(value)
        try:
            return prefix + encode_text(value).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueDoesNotFit(f"the value cannot be JSON: {error}") from error

    return encode


def json_check(registered: RegisteredSchema, error: type[SerdeError]) -> Callable[[Any], None]:
    """Returns a function that raises `error`, with the place in the value, for a value that does not fit a schema.
    Raises UnusableSchema."""
    from jsonschema import SchemaError, validators
    from jsonschema.exceptions import best_match
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

    schema = _loaded(registered.schema.text)
    validator_class = validators.validator_for(schema, default=validators.Draft7Validator)
    try:
        validator_class.check_schema(schema)
    except SchemaError as wrong:
        raise UnusableSchema(f"the schema is not a JSON Schema: {wrong.message}") from wrong
    resources = [
        (name, Resource.from_contents(_loaded(imported.text), default_specification=DRAFT7))
        for name, imported in registered.imported
    ]
    validator = validator_class(schema, registry=Registry().with_resources(resources))
    mistakes = validator.iter_errors

    def check(value: Any) -> None:
        try:
            for _ in mistakes(value):
                break
            else:
                return
            found = best_match(mistakes(value))
        except Exception as wrong:  # a reference to a schema that does not exist is found only now
            raise UnusableSchema(f"the schema cannot be used: {wrong}") from wrong
        place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in found.absolute_path)
        raise error(f"{place.removeprefix('.') or 'the value'}: {found.message[:_ERROR_CHARACTERS_MAX]}")

    return check


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UnusableSchema(f"the schema is not JSON: {error}") from error
