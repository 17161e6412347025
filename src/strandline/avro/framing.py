"""How Avro values say which schema they were written with: not at all, or by a schema's number in front of them.

A producer with a schema registry writes a zero byte, four bytes of the schema's number there, and the value. The
schemas by their numbers are given; a registry that is asked for them would fill the same mapping.
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
    """Raises AvroSchemaError and CannotResolveError."""
    reader = read_schema(json.loads(source.reader))
    if source.framed is not None:
        writers = {number: read_schema(json.loads(text)) for number, text in source.framed}
        return FramedDecoder(reader, writers)
    writer = reader if source.writer is None else read_schema(json.loads(source.writer))
    return AvroDecoder(writer, reader)


class FramedDecoder:
    """Of values each of which says its schema's number."""

    def __init__(self, reader: RecordType, writers: dict[int, RecordType]) -> None:
        self.type = arrow_type(reader)
        self._decoders = {number: AvroDecoder(writer, reader) for number, writer in writers.items()}

    def decode(self, values: Any) -> tuple[Any, Any]:
        """As `AvroDecoder.decode`."""
        numbers = _schema_numbers(values)
        parts, errors, places = [], [], []
        for number in np.unique(numbers):
            rows = np.flatnonzero(numbers == number)
            mine = values.take(pa.array(rows))
            decoder = self._decoders.get(int(number))
            if decoder is None:
                text = (
                    "the value does not begin with the number of a schema"
                    if number == _NO_FRAME
                    else f"there is no schema {number} among those that are given"
                )
                found = pa.nulls(len(rows), self.type)
                reasons = pc.if_else(mine.is_valid(), pa.scalar(text), pa.scalar(None, pa.string()))
            else:
                found, reasons = decoder.decode(mine, skip=FRAME_BYTES)
            parts.append(found)
            errors.append(reasons)
            places.append(rows)
        if not parts:
            return pa.nulls(0, self.type), pa.nulls(0, pa.string())
        back = pa.array(np.argsort(np.concatenate(places)))
        return pa.concat_arrays(parts).take(back), pa.concat_arrays(errors).take(back)


def _schema_numbers(values: Any) -> Any:
    """By row; -1 where there is none, and where the value is null."""
    heads = pc.fill_null(pc.binary_slice(values, 0, FRAME_BYTES), b"")
    sizes = pc.binary_length(heads).to_numpy()
    padded = pc.binary_join_element_wise(heads, pa.scalar(b"\xff" * FRAME_BYTES), pa.scalar(b""))
    fixed = pc.binary_slice(padded, 0, FRAME_BYTES).cast(pa.binary(FRAME_BYTES))
    bytes_ = np.frombuffer(fixed.buffers()[1], np.uint8)[: len(values) * FRAME_BYTES].reshape(-1, FRAME_BYTES)
    numbers = bytes_[:, 1:].astype(np.int64) @ np.array([1 << 24, 1 << 16, 1 << 8, 1], np.int64)
    return np.where((sizes == FRAME_BYTES) & (bytes_[:, 0] == 0), numbers, _NO_FRAME)
