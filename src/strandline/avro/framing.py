"""The frame of an Avro value, which names the schema that it was written with: none, or a schema id before it.

A producer with a schema registry writes a zero byte, four bytes of the schema's id there, and the value. The
schemas by their ids are given; a registry client would fill the same mapping.
"""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.avro.decoding import AvroDecoder
from strandline.avro.program import arrow_type
from strandline.avro.schema import AvroSource, RecordType, read_schema

FRAME_BYTES: Final = 5
_NO_FRAME: Final = -1


def decoder_of(source: AvroSource) -> AvroDecoder | FramedDecoder:
    """The decoder of a source. Raises AvroSchemaError and CannotResolveError."""
    reader = read_schema(json.loads(source.reader))
    if source.framed is not None:
        writers = {schema_id: read_schema(json.loads(text)) for schema_id, text in source.framed}
        return FramedDecoder(reader, writers)
    writer = reader if source.writer is None else read_schema(json.loads(source.writer))
    return AvroDecoder(writer, reader)


class FramedDecoder:
    """Decodes values each of which begins with its schema's id."""

    def __init__(self, reader: RecordType, writers: dict[int, RecordType]) -> None:
        self.type = arrow_type(reader)
        self._decoders = {schema_id: AvroDecoder(writer, reader) for schema_id, writer in writers.items()}

    def decode(self, values: Any) -> tuple[Any, Any]:
        """Decodes as `AvroDecoder.decode` does."""
        schema_ids = _schema_ids(values)
        parts, errors, places = [], [], []
        for schema_id in np.unique(schema_ids):
            rows = np.flatnonzero(schema_ids == schema_id)
            mine = values.take(pa.array(rows))
            decoder = self._decoders.get(int(schema_id))
            if decoder is None:
                text = (
                    "the value does not begin with the number of a schema"
                    if schema_id == _NO_FRAME
                    else f"there is no schema {schema_id} among those that are given"
                )
                columns = pa.nulls(len(rows), self.type)
                reasons = pc.if_else(mine.is_valid(), pa.scalar(text), pa.scalar(None, pa.string()))
            else:
                columns, reasons = decoder.decode(mine, skip=FRAME_BYTES)
            parts.append(columns)
            errors.append(reasons)
            places.append(rows)
        if not parts:
            return pa.nulls(0, self.type), pa.nulls(0, pa.string())
        back = pa.array(np.argsort(np.concatenate(places)))
        return pa.concat_arrays(parts).take(back), pa.concat_arrays(errors).take(back)


def _schema_ids(values: Any) -> Any:
    """The schema ids by row; -1 where there is none, and where the value is null."""
    heads = pc.fill_null(pc.binary_slice(values, 0, FRAME_BYTES), b"")
    sizes = pc.binary_length(heads).to_numpy()
    padded = pc.binary_join_element_wise(heads, pa.scalar(b"\xff" * FRAME_BYTES), pa.scalar(b""))
    fixed = pc.binary_slice(padded, 0, FRAME_BYTES).cast(pa.binary(FRAME_BYTES))
    bytes_ = np.frombuffer(fixed.buffers()[1], np.uint8)[: len(values) * FRAME_BYTES].reshape(-1, FRAME_BYTES)
    schema_ids = bytes_[:, 1:].astype(np.int64) @ np.array([1 << 24, 1 << 16, 1 << 8, 1], np.int64)
    return np.where((sizes == FRAME_BYTES) & (bytes_[:, 0] == 0), schema_ids, _NO_FRAME)
