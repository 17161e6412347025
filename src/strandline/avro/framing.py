"""The frame of an Avro value, which names the schema that it was written with: none, or a schema id before it.

A producer with a schema registry writes a zero byte, four bytes of the schema's id there, and the value. The caller
passes the schemas by id; a registry client would fill the same mapping.
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
ID_BYTES: Final = 4
NO_FRAME: Final = -1


def decoder_of(source: AvroSource) -> AvroDecoder | FramedDecoder:
    """Returns the decoder of a source. Raises AvroSchemaError and CannotResolveError."""
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
        ids = schema_ids(values)
        parts, errors, places = [], [], []
        for schema_id in np.unique(ids):
            rows = np.flatnonzero(ids == schema_id)
            mine = values if len(rows) == len(values) else values.take(pa.array(rows))
            decoder = self._decoders.get(int(schema_id))
            if decoder is None:
                text = (
                    "the value does not begin with the number of a schema"
                    if schema_id == NO_FRAME
                    else f"schema {schema_id} is not among the schemas of this source"
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


def schema_ids(values: Any) -> Any:
    """Returns the schema id of each row; NO_FRAME for a value without one, and for null."""
    count = len(values)
    bits = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    _, ends, data = values.buffers()
    if not count or data is None:
        return np.full(count, NO_FRAME, np.int64)
    bounds = np.frombuffer(ends, bits, count + 1, values.offset * np.dtype(bits).itemsize)
    is_framed = np.diff(bounds) >= FRAME_BYTES
    if values.null_count:
        is_framed &= values.is_valid().to_numpy(zero_copy_only=False)
    if not is_framed.any():
        return np.full(count, NO_FRAME, np.int64)
    bytes_ = np.frombuffer(data, np.uint8)
    starts = bounds[:-1] if is_framed.all() else np.where(is_framed, bounds[:-1], 0)
    # Every byte except the first begins a number of four bytes, so one lookup for each row is enough.
    numbers = np.ndarray(len(bytes_) - ID_BYTES, ">u4", bytes_, 1, (1,))
    ids = numbers[starts].astype(np.int64)
    return np.where(is_framed & (bytes_[starts] == 0), ids, NO_FRAME)
