"""Decodes a column of Avro values into Arrow columns, without a Python object for each row.

    decoder = AvroDecoder(read_schema(json.loads(text)))
    columns, errors = decoder.decode(values)

A value that does not decode has null in every column, and its error in `errors`; the others are not affected. Bytes
after the end of a value are an error too: the value was written with another schema.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from strandline.avro.compiled import AvroKernels, kernels
from strandline.avro.kernels import ERRORS, LIMBS
from strandline.avro.program import (
    ConstantColumn,
    LeafColumn,
    OutputColumn,
    RepeatedColumn,
    StructColumn,
    compile_program,
)
from strandline.avro.schema import RecordType

# The numpy type of a column of words, by the kind that was read.
_WORDS: Final[dict[str, Any]] = {
    "boolean": lambda words: words.astype(np.bool_),
    "int": lambda words: words.astype(np.int32),
    "long": lambda words: words,
    "float": lambda words: words.astype(np.uint32).view(np.float32),
    "double": lambda words: words.view(np.float64),
    "enum": lambda words: words.astype(np.int32),
}


class AvroDecoder:
    """Decodes values that were written with one schema into columns of the same or another one."""

    def __init__(
        self, writer: RecordType, reader: RecordType | None = None, *, avro_kernels: AvroKernels | None = None
    ) -> None:
        """Resolves the writer's schema against the reader's. Raises CannotResolveError."""
        self._program = compile_program(writer, reader)
        self._kernels = avro_kernels or kernels()
        self._code = _numbers(self._program.code)
        self._tables = _numbers(self._program.tables or (0,))

    @property
    def type(self) -> Any:
        """Returns the struct type of the columns."""
        return self._program.root.type

    def decode(self, values: Any, *, skip: int = 0) -> tuple[Any, Any]:
        """Returns a struct column of the values after their first `skip` bytes, and a string column of errors. A null
        value has null in both."""
        rows = _Values(values, skip)
        errors = np.zeros(rows.count, np.int64)
        places = np.zeros(rows.count, np.int64)
        try:
            columns = self._run(rows, errors, places, checks_text=False)
        except pa.ArrowInvalid:
            # Some text is not UTF-8. Its row is searched only now, because this is rare.
            errors[:] = 0
            columns = self._run(rows, errors, places, checks_text=True)
        return columns, self._errors(errors, places)

    def _run(self, rows: _Values, errors: Any, places: Any, *, checks_text: bool) -> Any:
        program = self._program
        counts = np.full(program.columns, rows.count, np.int64)
        if program.depth_max:
            # A first walk counts the items and writes nothing.
            empty = _Columns(np.zeros(program.columns, np.int64), program.has_spans)
            self._walk(rows, empty, errors, places, writes=False, checks_text=checks_text)
            counts = empty.state[: program.columns]
        columns = _Columns(counts, program.has_spans)
        self._walk(rows, columns, errors, places, writes=True, checks_text=checks_text)
        return _ColumnAssembler(columns, rows.data, self._kernels).struct(program.root, rows.count)

    def _walk(
        self,
        rows: _Values,
        columns: _Columns,
        errors: Any,
        places: Any,
        *,
        writes: bool,
        checks_text: bool,
    ) -> None:
        view = self._kernels.view
        stack = np.zeros(self._program.depth_max + 1, np.int64)
        self._kernels.decode_values(
            *map(view, (rows.data, rows.ends)),
            rows.skip,
            *map(view, (rows.present, self._code, self._tables)),
            tuple(map(view, (columns.state, columns.room, stack, columns.words, columns.valid))),
            *map(view, (np.zeros_like(columns.state), errors, places)),
            writes,
            checks_text,
        )

    def _errors(self, errors: Any, places: Any) -> Any:
        if not errors.any():
            return pa.nulls(len(errors), pa.string())
        pairs = errors * len(self._program.names) + places
        found, numbers = np.unique(pairs, return_inverse=True)
        texts = [self._text_of(*divmod(int(each), len(self._program.names))) for each in found]
        return pa.array(texts, pa.string()).take(pa.array(numbers))

    def _text_of(self, error: int, place: int) -> str | None:
        return f"{self._program.names[place]}: {ERRORS[error]}" if error else None


class _Values:
    """A binary column in the form of the kernels: the ends of the values, and the bytes of all of them."""

    def __init__(self, values: Any, skip: int) -> None:
        self.skip = skip
        self.count = len(values)
        bits = np.int64 if pa.types.is_large_binary(values.type) else np.int32
        _, ends, data = values.buffers()
        size = self.count + 1
        self.ends = (
            np.frombuffer(ends, bits, size, values.offset * np.dtype(bits).itemsize).astype(np.int64)
            if self.count
            else np.zeros(1, np.int64)
        )
        self.data = np.frombuffer(data if data is not None and data.size else b"\0", np.uint8)
        self.present = (
            np.ones(self.count, np.uint8)
            if values.null_count == 0
            else values.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8)
        )
        for each in (self.ends, self.data, self.present):
            each.flags.writeable = False  # so that the kernels are compiled for only one kind of array


class _Columns:
    """Room for so many rows of each column, one column after the other."""

    def __init__(self, counts: Any, has_spans: tuple[bool, ...]) -> None:
        lanes = np.where(np.array(has_spans, np.bool_), 2, 1) if has_spans else np.zeros(0, np.int64)
        self.starts = np.concatenate([[0], np.cumsum(counts * lanes)]).astype(np.int64)
        self.state = np.concatenate([self.starts[:-1], np.zeros(len(counts), np.int64)])
        self.room = counts.astype(np.int64)
        # A kernel's views need memory, even for no rows.
        self.words = np.empty(max(1, int(self.starts[-1])), np.int64)
        self.valid = np.empty(max(1, int(self.starts[-1])), np.uint8)

    def words_of(self, column: int) -> Any:
        start = self.starts[column]
        return self.words[start : start + self.room[column]]

    def sizes_of(self, column: int) -> Any:
        start = self.starts[column] + self.room[column]
        return self.words[start : start + self.room[column]]

    def validity_of(self, column: int) -> Any:
        """Returns the validity bits in Arrow's format; None if every row is valid."""
        start = self.starts[column]
        valid = self.valid[start : start + self.room[column]]
        return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))

    def items_of(self, column: int) -> int:
        """Returns the number of items of all lists of a column."""
        return int(self.state[len(self.room) + column])


class _ColumnAssembler:
    """Builds Arrow columns over the memory that the kernels have written."""

    def __init__(self, columns: _Columns, data: Any, avro_kernels: AvroKernels) -> None:
        self._columns = columns
        self._data = data
        self._kernels = avro_kernels

    def struct(self, of: StructColumn, rows: int) -> Any:
        children = [self._output(each, rows) for each in of.children]
        bits = None if of.column < 0 else self._columns.validity_of(of.column)
        return pa.Array.from_buffers(of.type, rows, [bits], children=children)

    def _output(self, of: OutputColumn, rows: int) -> Any:
        match of:
            case ConstantColumn(value=None):
                return pa.nulls(rows, of.type)
            case ConstantColumn():
                return pa.repeat(of.value, rows)
            case StructColumn():
                return self.struct(of, rows)
            case RepeatedColumn():
                return self._repeated(of, rows)
            case LeafColumn():
                return self._leaf(of, rows)

    def _repeated(self, of: RepeatedColumn, rows: int) -> Any:
        ends = np.zeros(rows + 1, np.int32)
        ends[1:] = self._columns.words_of(of.column)
        items = self._columns.items_of(of.column)
        children = [self._output(each, items) for each in of.items]
        inner = children[0]
        if pa.types.is_map(of.type):
            entry = pa.struct([of.type.key_field, of.type.item_field])
            inner = pa.Array.from_buffers(entry, items, [None], children=children)
        buffers = [self._columns.validity_of(of.column), pa.py_buffer(ends)]
        return pa.Array.from_buffers(of.type, rows, buffers, children=[inner])

    def _leaf(self, of: LeafColumn, rows: int) -> Any:
        bits = self._columns.validity_of(of.column)
        words = self._columns.words_of(of.column)
        if of.read_as == "decimal":
            return self._decimals(of, rows, bits)
        if of.read_as not in _WORDS:
            return self._spans(of, rows, bits)
        values = _WORDS[of.read_as](words)
        if of.read_as == "enum":
            numbers = pa.Array.from_buffers(pa.int32(), rows, [bits, pa.py_buffer(values)])
            return pa.array(of.symbols, pa.string()).take(numbers)
        if of.read_as == "boolean":
            packed = pa.py_buffer(np.packbits(values, bitorder="little"))
            return pa.Array.from_buffers(pa.bool_(), rows, [bits, packed])
        dtype = of.type.to_pandas_dtype() if pa.types.is_floating(of.type) else None
        if dtype is not None:
            values = values.astype(dtype)
        elif of.type.bit_width != values.itemsize * 8:
            values = words
        return pa.Array.from_buffers(of.type, rows, [bits, pa.py_buffer(np.ascontiguousarray(values))])

    def _spans(self, of: LeafColumn, rows: int, bits: Any) -> Any:
        """Returns a column of bytes or text. Positions never go back from row to row, so the values and the gaps
        between them are the elements of one binary column, of which every second one is used."""
        if rows == 0:
            return pa.array([], of.type)
        starts = self._columns.words_of(of.column)
        edges = np.empty(2 * rows, np.int32)
        edges[0::2] = starts
        edges[1::2] = starts + self._columns.sizes_of(of.column)
        both = pa.Array.from_buffers(
            pa.binary(), 2 * rows - 1, [None, pa.py_buffer(edges), pa.py_buffer(self._data)]
        )
        taken = both.take(pa.array(np.arange(0, 2 * rows, 2)))
        _, ends, data = taken.buffers()
        values = pa.Array.from_buffers(pa.binary(), rows, [bits, ends, data])
        return values.cast(of.type)

    def _decimals(self, of: LeafColumn, rows: int, bits: Any) -> Any:
        out = np.empty(rows * LIMBS, np.uint32)
        view = self._kernels.view
        spans = self._columns.words_of(of.column), self._columns.sizes_of(of.column)
        self._kernels.read_decimals(view(self._data), *map(view, spans), view(out))
        return pa.Array.from_buffers(of.type, rows, [bits, pa.py_buffer(out)])


def _numbers(values: tuple[int, ...]) -> Any:
    numbers = np.array(values, np.int64)
    numbers.flags.writeable = False
    return numbers
