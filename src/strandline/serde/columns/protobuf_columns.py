"""Decodes Protobuf messages into Arrow columns: Python's protobuf, whose core is C, parses each message, and fields are
taken column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from strandline.serde.errors import SerdeError, UnusableSchema
from strandline.serde.framing import GUID_BYTES, ID_BYTES, read_indexes
from strandline.serde.protobuf_schemas import message_classes
from strandline.serde.registry.schemas import RegisteredSchema

_DEPTH_MAX: Final = 50
_UINT64: Final = pa.decimal128(20, 0)
_MICROS: Final = pa.timestamp("us", tz="UTC")
# By the C++ type of a field, which says which kind of number it has.
_SCALARS: Final = {
    1: pa.int32(),
    2: pa.int64(),
    3: pa.int64(),  # uint32
    4: _UINT64,
    5: pa.float64(),
    6: pa.float32(),
    7: pa.bool_(),
}
_ENUM, _STRING, _MESSAGE = 8, 9, 10
_BYTES_TYPE: Final = 12
_WRAPPERS: Final = "google.protobuf."
_TIMESTAMP: Final = "google.protobuf.Timestamp"
# Messages without a fixed shape, which become JSON text.
_JSON_MESSAGES: Final = (
    "google.protobuf.Struct",
    "google.protobuf.Value",
    "google.protobuf.ListValue",
    "google.protobuf.Any",
)

Take = Callable[[Sequence[Any]], Any]


class ProtobufColumns:
    """Decodes messages of any writer's schema into the columns of one message of the reader's schema. Protobuf itself
    reads messages of other versions of a schema."""

    def __init__(self, reader: RegisteredSchema, message: str | None = None) -> None:
        """`message` is the full name of the message; without it the first message of the file is used."""
        classes = message_classes(reader)
        found = [
            each
            for path, each in classes.items()
            if (path == (0,) if message is None else each.DESCRIPTOR.full_name == message)
        ]
        if not found:
            raise UnusableSchema(f"the schema has no message {message or ''}".rstrip())
        self._class = found[0]
        self._name = self._class.DESCRIPTOR.full_name
        self.type, self._take = _struct(self._class.DESCRIPTOR, 0)

    def decoder(self, writer: RegisteredSchema, path: bytes) -> Any:
        """Returns a function of values and of the number of bytes to skip in each. `path` has the bytes of the path to
        the message if a header has it; they are empty if each value has its own."""
        names = {path: each.DESCRIPTOR.full_name for path, each in message_classes(writer).items()}
        in_header = read_indexes(path, 0)[0] if path else None

        def decode(values: Any, skip: int) -> tuple[Any, Any]:
            return self._decode(values.to_pylist(), skip, names, in_header)

        return decode

    def _decode(
        self,
        values: list[bytes],
        skip: int,
        names: dict[tuple[int, ...], str],
        in_header: tuple[int, ...] | None,
    ) -> tuple[Any, Any]:
        from google.protobuf.message import DecodeError

        messages: list[Any] = []
        errors: list[str | None] = []
        message_class, name = self._class, self._name
        first_is_ours = names.get((0,)) == name
        for data in values:
            error = None
            message = None
            try:
                if in_header is None and first_is_ours and len(data) > skip and not data[skip]:
                    start = skip + 1
                else:
                    path, start = (in_header, skip) if in_header is not None else read_indexes(data, skip)
                    if names.get(path) != name:
                        error = f"the value is a message {names.get(path, list(path))}, and not {name}"
                if error is None:
                    message = message_class()
                    message.ParseFromString(data[start:])
            except (DecodeError, SerdeError) as wrong:
                message, error = None, f"the value is not a message {name}: {wrong}"
            messages.append(message)
            errors.append(error)
        return self._take(messages), pa.array(errors, pa.string())


def _struct(descriptor: Any, depth: int) -> tuple[Any, Take]:
    """Returns the type of a message's column, and the function that makes the column from messages, where None becomes
    a row of nulls."""
    if depth > _DEPTH_MAX:
        raise UnusableSchema(f"the message {descriptor.full_name} is within itself: it cannot be columns")
    columns = [(field.name, *_field(field, depth)) for field in descriptor.fields]
    if not columns:
        raise UnusableSchema(f"the message {descriptor.full_name} has no fields: it cannot be columns")
    kind = pa.struct([(name, type) for name, type, _ in columns])

    def take(messages: Sequence[Any]) -> Any:
        return pa.StructArray.from_arrays([each(messages) for _, _, each in columns], fields=list(kind))

    return kind, take


def _masked(kind: Any, take: Take) -> Take:
    """Returns a function that makes a column of structs, which are null where there is no message."""

    def taken(messages: Sequence[Any]) -> Any:
        column = take(messages)
        is_null = np.array([each is None for each in messages], np.bool_)
        if not is_null.any():
            return column
        children = [column.field(at) for at in range(column.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=pa.array(is_null))

    return taken


def _field(field: Any, depth: int) -> tuple[Any, Take]:
    name = field.name
    if _is_repeated(field):
        return _repeated(field, depth)
    kind, make = _single(field, depth)
    if field.has_presence:

        def taken(messages: Sequence[Any]) -> Any:
            return make([getattr(m, name) if m is not None and m.HasField(name) else None for m in messages])
    else:

        def taken(messages: Sequence[Any]) -> Any:
            return make([None if m is None else getattr(m, name) for m in messages])

    return kind, taken


def _repeated(field: Any, depth: int) -> tuple[Any, Take]:
    name = field.name
    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
    if is_map:
        key, take_keys = _single(field.message_type.fields_by_name["key"], depth + 1)
        item, take_items = _single(field.message_type.fields_by_name["value"], depth + 1)
        kind = pa.map_(key, item)
    else:
        item, take_items = _single(field, depth + 1)
        kind = pa.list_(item)

    def taken(messages: Sequence[Any]) -> Any:
        lists = [None if m is None else getattr(m, name) for m in messages]
        ends = np.zeros(len(lists) + 1, np.int32)
        np.cumsum([0 if each is None else len(each) for each in lists], out=ends[1:])
        is_null = np.array([each is None for each in lists], np.bool_)
        mask = pa.array(is_null) if is_null.any() else None
        offsets = pa.array(ends)
        if is_map:
            # Protobuf promises no order of entries; they are sorted so that the same message gives the same column.
            pairs = [pair for each in lists if each is not None for pair in sorted(each.items(), key=_first)]
            keys, items = take_keys([k for k, _ in pairs]), take_items([v for _, v in pairs])
            bits = None if mask is None else pa.py_buffer(np.packbits(~is_null, bitorder="little"))
            entries = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
            return pa.Array.from_buffers(kind, len(lists), [bits, offsets.buffers()[1]], children=[entries])
        items = take_items([item for each in lists if each is not None for item in each])
        return pa.ListArray.from_arrays(offsets, items, type=kind, mask=mask)

    return kind, taken


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _single(field: Any, depth: int) -> tuple[Any, Take]:
    """Returns the type of one value of a field, and the function that makes a column of such values."""
    if field.cpp_type == _MESSAGE:
        return _message(field.message_type, depth)
    if field.cpp_type == _ENUM:
        names = {value.number: value.name for value in field.enum_type.values}
        return pa.string(), lambda values: pa.array(
            [None if each is None else names.get(each, str(each)) for each in values], pa.string()
        )
    kind = _SCALARS.get(field.cpp_type) or (pa.binary() if field.type == _BYTES_TYPE else pa.string())
    return kind, lambda values: pa.array(values, kind)


def _message(descriptor: Any, depth: int) -> tuple[Any, Take]:
    name = descriptor.full_name
    if name == _TIMESTAMP:
        return _MICROS, lambda values: pa.array(
            [None if each is None else each.seconds * 1_000_000 + each.nanos // 1000 for each in values],
            pa.int64(),
        ).cast(_MICROS)
    if name in _JSON_MESSAGES:
        from google.protobuf.json_format import MessageToJson

        return pa.string(), lambda values: pa.array(
            [None if each is None else MessageToJson(each, indent=None) for each in values], pa.string()
        )
    if name.startswith(_WRAPPERS) and name.endswith("Value") and "value" in descriptor.fields_by_name:
        kind, make = _single(descriptor.fields_by_name["value"], depth)
        return kind, lambda values: make([None if each is None else each.value for each in values])
    kind, take = _struct(descriptor, depth + 1)
    return kind, _masked(kind, take)


def _is_repeated(field: Any) -> bool:
    """True for a list or a map; older versions of protobuf have only the label."""
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


__all__ = ["GUID_BYTES", "ID_BYTES", "ProtobufColumns"]
