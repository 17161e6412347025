"""Compiles schemas into instructions for `kernels`, and describes the columns that these produce.

Values are read by their writer's schema and become columns of the reader's, by Avro's rules of schema resolution:
fields are matched by name or alias, fields of only the writer are skipped, fields of only the reader get their
defaults, numbers are widened, symbols are matched by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

from strandline.avro import kernels as k
from strandline.avro.schema import (
    DECIMAL_DIGITS_MAX,
    ArrayType,
    AvroType,
    EnumType,
    MapType,
    PrimitiveType,
    RecordField,
    RecordType,
    UnionType,
)

# By the writer's kind, the other kinds that the reader may have.
_WIDENED: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_NUMBERS: Final = {
    "boolean": k.BOOLEAN,
    "int": k.INT,
    "long": k.LONG,
    "float": k.FLOAT,
    "double": k.DOUBLE,
}
_PLAIN: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "fixed": pa.binary(),
}
# Times of the day stay numbers: Spark's own type for them is new, and off by default.
_LOGICAL: Final = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_MICROS_PER_MILLI: Final = 1000


class CannotResolveError(ValueError):
    """Values of the writer's schema cannot become columns of the reader's; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafColumn:
    """A column of single values. `read_as` is the kind of its words; `symbols` are those of an enum."""

    column: int
    type: Any
    read_as: str
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StructColumn:
    """A column of structs. `column` is -1 for the root, which is never null itself."""

    column: int
    type: Any
    children: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedColumn:
    """A column of lists of `items`, or of maps if they are a key and a value."""

    column: int
    type: Any
    items: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantColumn:
    """A column with the same value in every row: null, or a default."""

    type: Any
    value: Any


OutputColumn = LeafColumn | StructColumn | RepeatedColumn | ConstantColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The instructions for a schema, and its columns. `names` has the field that each instruction reads."""

    code: tuple[int, ...]
    tables: tuple[int, ...]
    names: tuple[str, ...]
    columns: int
    has_spans: tuple[bool, ...]  # by column: True if rows have a size too
    depth_max: int
    root: StructColumn


def arrow_type(of: AvroType) -> Any:
    """Returns the Arrow type of a column with this Avro type."""
    match of:
        case PrimitiveType(logical="decimal"):
            return pa.decimal128(of.precision, of.scale)
        case PrimitiveType():
            return _LOGICAL.get(of.logical or "", _PLAIN[of.kind])
        case EnumType():
            return pa.string()
        case UnionType():
            return arrow_type(of.inner)
        case ArrayType():
            return pa.list_(pa.field("element", arrow_type(of.items)))
        case MapType():
            return pa.map_(pa.string(), arrow_type(of.values))
        case RecordType():
            return pa.struct([pa.field(each.name, arrow_type(each.type)) for each in of.fields])


def compile_program(writer: RecordType, reader: RecordType | None = None) -> Program:
    """Returns the program that reads values of the writer as columns of the reader. Raises CannotResolveError."""
    return _ProgramCompiler().compile(writer, reader or writer)


class _ProgramCompiler:
    """Walks both schemas and emits the instructions."""

    def __init__(self) -> None:
        self._code: list[list[int]] = []
        self._names: list[str] = []
        self._tables: list[int] = []
        self._has_spans: list[bool] = []
        self._depth_max = 0

    def compile(self, writer: RecordType, reader: RecordType) -> Program:
        root = StructColumn(
            column=-1, type=arrow_type(reader), children=tuple(self._fields(writer, reader, "", 0))
        )
        return Program(
            code=tuple(number for each in self._code for number in each),
            tables=tuple(self._tables),
            names=tuple(self._names),
            columns=len(self._has_spans),
            has_spans=tuple(self._has_spans),
            depth_max=self._depth_max,
            root=root,
        )

    def _emit(self, name: str, op: int, column: int = -1, first: int = 0, second: int = 0) -> int:
        self._code.append([op, column, first, second])
        self._names.append(name)
        return len(self._code) - 1

    def _column(self, *, has_spans: bool = False) -> int:
        self._has_spans.append(has_spans)
        return len(self._has_spans) - 1

    # Types. If the reader is None, the value is skipped.

    def _type(self, writer: AvroType, reader: AvroType | None, name: str, depth: int) -> OutputColumn:
        if isinstance(writer, UnionType):
            return self._union(writer, reader, name, depth)
        if isinstance(reader, UnionType):
            reader = reader.inner
        match writer:
            case RecordType() if reader is None:
                for each in writer.fields:
                    self._type(each.type, None, f"{name}.{each.name}", depth)
                return _NOTHING
            case RecordType() if isinstance(reader, RecordType):
                column = self._column()
                self._emit(name, k.STRUCT, column)
                children = tuple(self._fields(writer, reader, f"{name}.", depth))
                return StructColumn(column=column, type=arrow_type(reader), children=children)
            case ArrayType() | MapType() if reader is None or type(reader) is type(writer):
                return self._repeated(writer, reader, name, depth)
            case EnumType() if reader is None or isinstance(reader, EnumType):
                return self._enum(writer, reader, name)
            case PrimitiveType() if reader is None or isinstance(reader, PrimitiveType):
                return self._primitive(writer, reader, name)
        raise CannotResolveError(f"{name} was written as {_words(writer)}, and is read as {_words(reader)}")

    def _union(self, writer: UnionType, reader: AvroType | None, name: str, depth: int) -> OutputColumn:
        inner = reader.inner if isinstance(reader, UnionType) else reader
        may_be_null = reader is None or (isinstance(reader, UnionType) and reader.null_index >= 0)
        if writer.inner == PrimitiveType(kind="null"):
            may_be_null = may_be_null or reader == writer.inner
        at = self._emit(name, k.UNION, int(may_be_null), writer.null_index)
        output = self._type(writer.inner, inner, name, depth)
        self._code[at][3] = len(self._code)
        return output

    def _fields(
        self, writer: RecordType, reader: RecordType, prefix: str, depth: int
    ) -> Sequence[OutputColumn]:
        outputs: dict[str, OutputColumn] = {}
        for each in writer.fields:
            name = f"{prefix}{each.name}"
            match = _matching(each, reader)
            output = self._type(each.type, match.type if match else None, name, depth)
            if match is not None:
                outputs[match.name] = output
        for each in reader.fields:
            if each.name not in outputs:
                outputs[each.name] = _default(each, f"{prefix}{each.name}")
        return [outputs[each.name] for each in reader.fields]

    def _repeated(
        self, writer: ArrayType | MapType, reader: AvroType | None, name: str, depth: int
    ) -> OutputColumn:
        self._depth_max = max(self._depth_max, depth + 1)
        column = -1 if reader is None else self._column()
        begin = self._emit(name, k.LIST, column)
        items: list[OutputColumn] = []
        if isinstance(writer, MapType):
            key = PrimitiveType(kind="string")
            items.append(self._primitive(key, None if reader is None else key, name))
        inner = writer.items if isinstance(writer, ArrayType) else writer.values
        reader_items = (
            reader.items
            if isinstance(reader, ArrayType)
            else reader.values
            if isinstance(reader, MapType)
            else None
        )
        items.append(self._type(inner, reader_items, name, depth + 1))
        end = self._emit(name, k.LIST_END, column, begin + 1)
        self._code[begin][2] = end + 1
        if reader is None:
            return _NOTHING
        return RepeatedColumn(column=column, type=arrow_type(reader), items=tuple(items))

    def _enum(self, writer: EnumType, reader: EnumType | None, name: str) -> OutputColumn:
        at = len(self._tables)
        if reader is None:
            self._tables += [len(writer.symbols), *(0 for _ in writer.symbols)]
            self._emit(name, k.ENUM, -1, at)
            return _NOTHING
        numbers = {symbol: number for number, symbol in enumerate(reader.symbols)}
        otherwise = -1 if reader.default is None else numbers[reader.default]
        self._tables += [len(writer.symbols), *(numbers.get(each, otherwise) for each in writer.symbols)]
        column = self._column()
        self._emit(name, k.ENUM, column, at)
        return LeafColumn(column=column, type=pa.string(), read_as="enum", symbols=reader.symbols)

    def _primitive(self, writer: PrimitiveType, reader: PrimitiveType | None, name: str) -> OutputColumn:
        if reader is not None:
            _check_primitives(writer, reader, name)
        if writer.kind == "null":
            return _NOTHING if reader is None else ConstantColumn(type=arrow_type(reader), value=None)
        is_number = writer.kind in _NUMBERS
        column = -1 if reader is None else self._column(has_spans=not is_number)
        if is_number:
            is_millis = reader is not None and (reader.logical or "").endswith("timestamp-millis")
            factor = _MICROS_PER_MILLI if is_millis else 1
            self._emit(name, _NUMBERS[writer.kind], column, factor)
        elif reader is not None and reader.logical == "decimal":
            size = writer.size if writer.kind == "fixed" else -1
            self._emit(name, k.DECIMAL, column, self._decimal_limits(reader.precision), size)
        elif writer.kind == "fixed":
            self._emit(name, k.FIXED, column, writer.size)
        else:
            wants_text = reader is not None and reader.kind == "string"
            self._emit(name, k.BYTES, column, int(wants_text))
        if reader is None:
            return _NOTHING
        kind = "decimal" if reader.logical == "decimal" else writer.kind
        return LeafColumn(column=column, type=arrow_type(reader), read_as=kind)

    def _decimal_limits(self, precision: int) -> int:
        at = len(self._tables)
        most = 10**precision - 1
        for limit in (-most, most):
            limbs = [(limit >> (32 * number)) & 0xFFFFFFFF for number in range(k.LIMBS - 1)]
            self._tables += [limit >> (32 * (k.LIMBS - 1)), *reversed(limbs)]
        return at


_NOTHING: Final = ConstantColumn(type=pa.null(), value=None)


def _matching(written: RecordField, reader: RecordType) -> RecordField | None:
    named = [each for each in reader.fields if each.name == written.name]
    aliased = [each for each in reader.fields if written.name in each.aliases]
    return next(iter([*named, *aliased]), None)


def _check_primitives(writer: PrimitiveType, reader: PrimitiveType, name: str) -> None:
    is_same = writer.kind == reader.kind and writer.size == reader.size
    scales = [each.scale for each in (writer, reader) if each.logical == "decimal"]
    is_scale_kept = len(set(scales)) < 2
    both_times = writer.logical is not None and reader.logical is not None and writer.kind == "long"
    is_unit_kept = not both_times or writer.logical == reader.logical
    if is_scale_kept and is_unit_kept and (is_same or reader.kind in _WIDENED.get(writer.kind, ())):
        return
    raise CannotResolveError(f"{name} was written as {_words(writer)}, and is read as {_words(reader)}")


def _words(of: AvroType | None) -> str:
    match of:
        case PrimitiveType(kind="fixed"):
            return f"fixed({of.size})"
        case PrimitiveType(logical="decimal"):
            return f"decimal({of.precision},{of.scale})"
        case PrimitiveType():
            return of.logical or of.kind
        case UnionType():
            return _words(of.inner)
    return type(of).__name__.removesuffix("Type").lower()


def _default(of: RecordField, name: str) -> ConstantColumn:
    if not of.has_default:
        raise CannotResolveError(f"{name} is not in what was written, and has no default")
    kind = arrow_type(of.type)
    try:
        plain = _plain_value(of.default, of.type)
        return ConstantColumn(type=kind, value=pa.scalar(plain, kind))
    except (ValueError, TypeError, KeyError, AttributeError, pa.ArrowException) as error:
        raise CannotResolveError(
            f"{name} has a default that does not fit its type: {of.default!r}"
        ) from error


def _plain_value(value: Any, of: AvroType) -> Any:
    """Returns a default in the form that pyarrow expects, from its JSON form."""
    match of:
        case UnionType():
            return None if value is None else _plain_value(value, of.inner)
        case EnumType():
            if value not in of.symbols:
                raise ValueError(value)
        case ArrayType():
            return [_plain_value(each, of.items) for each in value]
        case MapType():
            return [(key, _plain_value(each, of.values)) for key, each in value.items()]
        case RecordType():
            return {each.name: _plain_value(_field_default(value, each), each.type) for each in of.fields}
        case PrimitiveType(logical="decimal"):
            number = int.from_bytes(value.encode("latin-1"), "big", signed=True)
            return Decimal(number).scaleb(-of.scale, Context(prec=DECIMAL_DIGITS_MAX))
        case PrimitiveType(kind="bytes" | "fixed"):
            return value.encode("latin-1")
        case PrimitiveType() if (of.logical or "").endswith("timestamp-millis"):
            return value * _MICROS_PER_MILLI
    return value


def _field_default(value: Any, of: RecordField) -> Any:
    return of.default if of.has_default and of.name not in value else value[of.name]
