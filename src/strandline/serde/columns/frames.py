"""Finds the schema of each row of a column: by the id in front of the value, or by the GUID in a header."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.avro.framing import NO_FRAME, schema_ids
from strandline.serde.framing import GUID_BYTES

# The key of a schema: its id, or the content of the header that names it; None for rows that name no schema.
SchemaKey = int | bytes | None

# Each row has a number: the id of its schema, NO_FRAME (-1), _NULL for a null value, or for the GUID in place n of
# `_guids` the number _FIRST_GUID - n.
_NULL: Final = -2
_FIRST_GUID: Final = -3


class FramedRows:
    """The rows of one binary column, grouped by schema. `keys` has the key of each schema once."""

    def __init__(self, values: Any, headers: Any, header_name: str) -> None:
        """`headers` is a column of lists of (key, value), or None."""
        self.values = values
        ids = schema_ids(values)
        numbers = ids.copy()
        self._guids: list[bytes] = []
        if headers is not None:
            self._number_by_header(numbers, headers, header_name)
        if values.null_count:
            numbers[~values.is_valid().to_numpy(zero_copy_only=False)] = _NULL
        self._numbers = numbers
        distinct = np.unique(numbers) if len(numbers) and (numbers != numbers[0]).any() else numbers[:1]
        self._distinct = [int(each) for each in distinct]
        self.keys: list[SchemaKey] = [self._key(each) for each in self._distinct if each != _NULL]

    def _number_by_header(self, numbers: Any, headers: Any, name: str) -> None:
        """Replaces the numbers of rows that have a header with a GUID."""
        if isinstance(headers, pa.ChunkedArray):
            headers = headers.combine_chunks()
        items = headers.flatten()
        if not len(items):
            return
        contents = items.field(1)
        is_frame = pc.and_(
            pc.equal(items.field(0), name),
            pc.and_(
                pc.greater_equal(pc.binary_length(contents), GUID_BYTES),
                pc.equal(pc.binary_slice(contents, 0, 1), pa.scalar(b"\x01")),
            ),
        )
        places = np.flatnonzero(pc.fill_null(is_frame, False).to_numpy(zero_copy_only=False))
        if not len(places):
            return
        rows = pc.list_parent_indices(headers).to_numpy()[places]
        texts = contents.take(pa.array(places)).cast(pa.binary()).dictionary_encode()
        self._guids = texts.dictionary.to_pylist()
        # A row with several such headers has the number of the last one, which is assigned last.
        numbers[rows] = _FIRST_GUID - texts.indices.to_numpy()

    def _key(self, number: int) -> SchemaKey:
        if number <= _FIRST_GUID:
            return self._guids[_FIRST_GUID - number]
        return None if number == NO_FRAME else number

    def decode(
        self, kind: Any, decode_values: Callable[[SchemaKey, Any], tuple[Any, Any, Any]]
    ) -> tuple[Any, Any, Any]:
        """Returns the columns, errors and kinds of errors of all rows, in their order; null values are null in all
        three. `decode_values` decodes the values of one schema, frames included. `kind` is the type of the columns."""
        if len(self._distinct) == 1 and self._distinct[0] != _NULL:
            return decode_values(self._key(self._distinct[0]), self.values)
        parts, places = [], []
        for number in self._distinct:
            rows = np.flatnonzero(self._numbers == number)
            places.append(rows)
            if number == _NULL:
                nulls = pa.nulls(len(rows), pa.string())
                parts.append((pa.nulls(len(rows), kind), nulls, nulls))
            else:
                parts.append(decode_values(self._key(number), self.values.take(pa.array(rows))))
        if not parts:
            return pa.nulls(0, kind), pa.nulls(0, pa.string()), pa.nulls(0, pa.string())
        back = pa.array(np.argsort(np.concatenate(places)))
        columns, errors, kinds = (
            pa.concat_arrays(list(each)).take(back) for each in zip(*parts, strict=True)
        )
        return columns, errors, kinds
