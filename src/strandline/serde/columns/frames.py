"""The schemas that the rows of a table name: by the id in front of a value, or by the GUID in a header."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.avro.framing import NO_FRAME, schema_ids
from strandline.serde.framing import GUID_BYTES

# The key of a schema: its id, or the content of the header that names it; None for rows that name none.
SchemaKey = int | bytes | None

_NULL: Final = -2  # among the numbers of keys: the value is null


class FramedRows:
    """The rows of one binary column by the schemas that they name. `keys` has each of those once."""

    def __init__(self, values: Any, headers: Any, header_name: str) -> None:
        """`headers` is a column of lists of (key, value), or None."""
        self.values = values
        ids = schema_ids(values)
        numbers = ids.copy()
        self._guids: list[bytes] = []
        if headers is not None:
            self._note_headers(numbers, headers, header_name)
        if values.null_count:
            numbers[~values.is_valid().to_numpy(zero_copy_only=False)] = _NULL
        self._numbers = numbers
        found = np.unique(numbers) if len(numbers) and (numbers != numbers[0]).any() else numbers[:1]
        self._found = [int(each) for each in found]
        self.keys: list[SchemaKey] = [self._key(each) for each in self._found if each != _NULL]

    def _note_headers(self, numbers: Any, headers: Any, name: str) -> None:
        """Gives the rows with such a header numbers below those of all ids."""
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
        numbers[rows] = (
            -3 - texts.indices.to_numpy()
        )  # the last header of a row counts, as it is assigned last

    def _key(self, number: int) -> SchemaKey:
        if number <= -3:
            return self._guids[-3 - number]
        return None if number == NO_FRAME else number

    def decode(
        self, kind: Any, part: Callable[[SchemaKey, Any], tuple[Any, Any, Any]]
    ) -> tuple[Any, Any, Any]:
        """Columns, errors and kinds of errors of all rows, in their order. `part` decodes the rows of one schema, and
        is given their values as they are; null rows are null in all three."""
        if len(self._found) == 1 and self._found[0] != _NULL:
            return part(self._key(self._found[0]), self.values)
        parts, places = [], []
        for number in self._found:
            rows = np.flatnonzero(self._numbers == number)
            places.append(rows)
            if number == _NULL:
                nulls = pa.nulls(len(rows), pa.string())
                parts.append((pa.nulls(len(rows), kind), nulls, nulls))
            else:
                parts.append(part(self._key(number), self.values.take(pa.array(rows))))
        if not parts:
            return pa.nulls(0, kind), pa.nulls(0, pa.string()), pa.nulls(0, pa.string())
        back = pa.array(np.argsort(np.concatenate(places)))
        columns, errors, kinds = (
            pa.concat_arrays(list(each)).take(back) for each in zip(*parts, strict=True)
        )
        return columns, errors, kinds
