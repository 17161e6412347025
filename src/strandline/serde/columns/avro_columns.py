"""Decodes Avro values into Arrow columns, by the compiled decoder."""

from __future__ import annotations

import json
from typing import Any

from strandline.avro.decoding import AvroDecoder
from strandline.avro.program import CannotResolveError, arrow_type
from strandline.avro.schema import AvroSchemaError, RecordType, read_schema
from strandline.serde.errors import UnusableSchema
from strandline.serde.registry.schemas import RegisteredSchema


class AvroColumns:
    """Decodes values of any writer's schema into the columns of one reader's."""

    def __init__(self, reader: RegisteredSchema) -> None:
        self._reader = _parsed(reader)
        self.type = arrow_type(self._reader)

    def decoder(self, writer: RegisteredSchema, path: bytes) -> Any:
        """Returns a function of values and of the number of bytes to skip in each. Raises UnusableSchema."""
        try:
            decoder = AvroDecoder(_parsed(writer), self._reader)
        except CannotResolveError as error:
            raise UnusableSchema(f"the schema does not fit the reader's: {error}") from error

        def decode(values: Any, skip: int) -> tuple[Any, Any]:
            return decoder.decode(values, skip=skip)

        return decode


def _parsed(registered: RegisteredSchema) -> RecordType:
    try:
        imported = [json.loads(schema.text) for _, schema in registered.imported]
        return read_schema(json.loads(registered.schema.text), imported)
    except (AvroSchemaError, ValueError) as error:
        raise UnusableSchema(f"the schema cannot be columns: {error}") from error
