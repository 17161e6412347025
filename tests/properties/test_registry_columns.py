"""Framed values of several writers' schemas come out as columns with what fastavro, json and protobuf read from them;
what does not decode is told apart, and leaves the other rows as they are."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import fastavro
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from strandline.ports.web import WebResponse
from strandline.serde import SchemaRegistry
from strandline.serde.columns.decoder import RegistryColumns
from strandline.serde.framing import guid_header, id_prefix, write_indexes
from strandline.serde.protobuf_schemas import descriptor_text
from tests.properties.effort import effort

GUID = "00000000-0000-0000-0000-00000000000{}"
UNKNOWN = 99


class StoredWeb:
    """A registry with some schemas, by id and by a GUID that ends with the id."""

    def __init__(self, type: str, texts: dict[int, str]) -> None:
        self.type = type
        self.texts = texts

    async def request(self, method: str, url: str, **more: Any) -> WebResponse:
        name = url.partition("?")[0].rpartition("/")[2]
        id = max(self.texts) if name == "latest" else int(name[-2:].lstrip("0") or 0)
        if id not in self.texts:
            return WebResponse(404, {}, b'{"error_code":40403,"message":"Schema not found"}')
        body = {"id": id, "version": id, "schemaType": self.type, "schema": self.texts[id]}
        return WebResponse(200, {}, json.dumps(body).encode())


def columns_of(type: str, texts: dict[int, str]) -> RegistryColumns:
    registry = SchemaRegistry("http://stored", web=StoredWeb(type, texts))
    return asyncio.run(RegistryColumns.open(registry, subject="s"))


def decoded(columns: RegistryColumns, rows: list[tuple[bytes | None, bytes | None]]) -> list[Any]:
    """Rows of value and header content; each comes out as its struct, or as the kind of its error."""
    values = pa.array([value for value, _ in rows], pa.binary())
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array(
        [[] if name is None else [{"key": "__value_schema_id", "value": name}] for _, name in rows], kind
    )

    found = asyncio.run(columns.decode(values, headers))
    assert len(found.columns) == len(found.errors) == len(found.kinds) == len(rows)
    made = []
    for row, error, word in zip(
        found.columns.to_pylist(), found.errors.to_pylist(), found.kinds.to_pylist(), strict=True
    ):
        assert (error is None) == (word is None)
        if error is not None:
            assert row is None
        made.append(row if word is None else word)
    return made


AVRO = {
    1: [{"name": "a", "type": "int"}],
    2: [{"name": "b", "type": ["null", "string"]}, {"name": "a", "type": "long"}],
    3: [
        {"name": "a", "type": "double"},
        {"name": "b", "type": ["null", "string"], "default": None},
        {"name": "c", "type": {"type": "array", "items": "long"}, "default": [7]},
    ],
}
AVRO_SCHEMAS = {id: {"type": "record", "name": "R", "fields": fields} for id, fields in AVRO.items()}
AVRO_PARSED = {id: fastavro.parse_schema(schema) for id, schema in AVRO_SCHEMAS.items()}
AVRO_VALUES = {
    1: st.fixed_dictionaries({"a": st.integers(-(1 << 31), (1 << 31) - 1)}),
    2: st.fixed_dictionaries({"a": st.integers(-(1 << 53), 1 << 53), "b": st.none() | st.text()}),
    3: st.fixed_dictionaries(
        {
            "a": st.floats(allow_nan=False),
            "b": st.none() | st.text(),
            "c": st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=5),
        }
    ),
}
BAD: Any = st.sampled_from(
    [
        (None, None, None),
        (b"", None, "not-framed"),
        (b"\0\0\0", None, "not-framed"),
        (b"\x02\0\0\0\x01x", None, "not-framed"),
        (id_prefix(UNKNOWN) + b"x", None, "unknown-schema"),
        (b"x", guid_header("00000000-0000-0000-0000-000000000099"), "unknown-schema"),
    ]
)


@st.composite
def avro_row(draw: Any) -> tuple[bytes | None, bytes | None, Any]:
    if draw(st.integers(0, 5)) == 0:
        return draw(BAD)  # type: ignore[no-any-return]
    id = draw(st.sampled_from([1, 2, 3]))
    value = draw(AVRO_VALUES[id])
    out = io.BytesIO()
    fastavro.schemaless_writer(out, AVRO_PARSED[id], value)
    data = out.getvalue()
    expected = fastavro.schemaless_reader(io.BytesIO(data), AVRO_PARSED[id], AVRO_PARSED[3])
    if draw(st.integers(0, 9)) == 0:
        return id_prefix(id) + data + b"\0", None, "undecodable"
    if draw(st.booleans()):
        return data, guid_header(GUID.format(id)), expected
    return id_prefix(id) + data, None, expected


AVRO_COLUMNS = columns_of("AVRO", {id: json.dumps(schema) for id, schema in AVRO_SCHEMAS.items()})


@effort(100)
@given(st.lists(avro_row(), max_size=30))
def test_avro_of_several_writers_is_what_fastavro_reads(rows: list[Any]) -> None:
    expected = [want for _, _, want in rows]
    assert decoded(AVRO_COLUMNS, [(v, h) for v, h, _ in rows]) == expected


JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "n": {"type": "number"},
        "t": {"type": ["string", "null"]},
        "f": {"type": "boolean"},
        "l": {"type": "array", "items": {"type": "integer"}},
        "o": {"type": "object", "properties": {"x": {"type": "string"}}},
    },
}
JSON_MAPS = {
    **JSON_SCHEMA,
    "properties": {
        **JSON_SCHEMA["properties"],
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "u": {"type": ["integer", "string"]},
    },
}  # type: ignore[dict-item]
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
JSON_VALUES: Any = st.fixed_dictionaries(
    {},
    optional={
        "i": INT64,
        "n": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(1 << 53), 1 << 53),
        "t": st.none() | st.text(),
        "f": st.booleans(),
        "l": st.lists(INT64, max_size=4),
        "o": st.fixed_dictionaries({}, optional={"x": st.text()}),
        "other": st.none() | st.text() | INT64,
    },
)
JSON_COLUMNS = columns_of("JSON", {1: json.dumps(JSON_SCHEMA)})
JSON_MAP_COLUMNS = columns_of("JSON", {1: json.dumps(JSON_MAPS)})
BAD_JSON = st.sampled_from(
    [
        *(
            b'{"i":1.5}',
            b'{"i":true}',
            b'{"i":9223372036854775808}',
            b'{"t":5}',
            b'{"f":1}',
            b'{"l":5}',
            b'{"n":NaN}',
        ),
        *(
            b'{"o":[]}',
            b"[]",
            b"5",
            b"null",
            b"",
            b"{}{}",
            b'{"i":1',
            b'{"t":"\xff"}',
            b"{} x",
            b'{"t":"\n"}',
        ),
    ]
)


def json_expected(value: dict[str, Any]) -> dict[str, Any]:
    made = {name: value.get(name) for name in JSON_SCHEMA["properties"]}  # type: ignore[attr-defined]
    if made["n"] is not None:
        made["n"] = float(made["n"])
    if made["o"] is not None:
        made["o"] = {"x": made["o"].get("x")}
    return made


@st.composite
def json_row(draw: Any) -> tuple[bytes | None, bytes | None, Any]:
    match draw(st.integers(0, 11)):
        case 0:
            return draw(BAD)  # type: ignore[no-any-return]
        case 1:
            return id_prefix(1) + draw(BAD_JSON), None, "undecodable"
        case _:
            value = draw(JSON_VALUES)
            text = json.dumps(
                value, indent=draw(st.sampled_from([None, 1])), ensure_ascii=draw(st.booleans())
            )
            return id_prefix(1) + text.encode("utf-8", "surrogatepass"), None, json_expected(value)


@effort(150)
@given(st.lists(json_row(), max_size=12))
def test_json_is_what_json_reads(rows: list[Any]) -> None:
    expected = [want for _, _, want in rows]
    assert decoded(JSON_COLUMNS, [(v, h) for v, h, _ in rows]) == expected


@effort(50)
@given(st.lists(JSON_VALUES, max_size=5), st.dictionaries(st.text(), INT64), INT64 | st.text())
def test_json_with_maps_and_types_of_several_is_what_json_reads(values: Any, map: Any, either: Any) -> None:
    rows = [(id_prefix(1) + json.dumps({**value, "m": map, "u": either}).encode(), None) for value in values]
    found = decoded(JSON_MAP_COLUMNS, rows)
    for row, value in zip(found, values, strict=True):
        assert dict(row.pop("m")) == map
        assert json.loads(row.pop("u")) == either
        assert row == json_expected(value)


def proto_class() -> Any:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="p", syntax="proto3")
    message = file.message_type.add(name="Other")
    message.field.add(name="z", number=1, type=field.TYPE_STRING, label=1)
    message = file.message_type.add(name="M")
    kinds = {"a": field.TYPE_INT32, "b": field.TYPE_UINT64, "c": field.TYPE_DOUBLE, "d": field.TYPE_BOOL}
    kinds |= {"e": field.TYPE_STRING, "f": field.TYPE_BYTES, "g": field.TYPE_SINT64, "h": field.TYPE_FLOAT}
    for number, (name, type) in enumerate(kinds.items(), 1):
        message.field.add(name=name, number=number, type=type, label=1)
    message.field.add(name="l", number=20, type=field.TYPE_INT64, label=3)
    message.field.add(name="s", number=21, type=field.TYPE_MESSAGE, type_name=".p.Other", label=1)
    message.field.add(name="r", number=22, type=field.TYPE_MESSAGE, type_name=".p.Other", label=3)
    message.field.add(name="m", number=23, type=field.TYPE_MESSAGE, type_name=".p.M.MEntry", label=3)
    entry = message.nested_type.add(name="MEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=field.TYPE_INT32, label=1)
    message.oneof_decl.add(name="_o")
    message.field.add(
        name="o", number=24, type=field.TYPE_INT32, label=1, oneof_index=0, proto3_optional=True
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.M"))


M = proto_class()
PROTO_TEXT = descriptor_text(M.DESCRIPTOR.file)
PROTO_REGISTRY = SchemaRegistry("http://stored", web=StoredWeb("PROTOBUF", {1: PROTO_TEXT}))
PROTO_COLUMNS = asyncio.run(RegistryColumns.open(PROTO_REGISTRY, subject="s", message="p.M"))
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
PROTO_VALUES = st.fixed_dictionaries(
    {},
    optional={
        "a": INT32,
        "b": st.integers(0, (1 << 64) - 1),
        "c": st.floats(allow_nan=False),
        "d": st.booleans(),
        "e": st.text(),
        "f": st.binary(),
        "g": INT64,
        "h": st.floats(width=32, allow_nan=False),
        "l": st.lists(INT64, max_size=4),
        "s": st.fixed_dictionaries({"z": st.text()}),
        "r": st.lists(st.fixed_dictionaries({"z": st.text()}), max_size=3),
        "m": st.dictionaries(st.text(), INT32, max_size=3),
        "o": INT32,
    },
)


def proto_expected(message: Any) -> dict[str, Any]:
    return {
        **{name: getattr(message, name) for name in "abcdefgh"},
        "l": list(message.l),
        "s": {"z": message.s.z} if message.HasField("s") else None,
        "r": [{"z": each.z} for each in message.r],
        "m": sorted(message.m.items()),
        "o": message.o if message.HasField("o") else None,
    }


@st.composite
def proto_row(draw: Any) -> tuple[bytes | None, bytes | None, Any]:
    match draw(st.integers(0, 9)):
        case 0:
            return draw(BAD)  # type: ignore[no-any-return]
        case 1:
            wrong = draw(st.sampled_from([b"\0", b"\x02\x08", b"\x02\x02\x0a\x05x", b"\x80", b""]))
            return id_prefix(1) + wrong, None, "undecodable"
        case _:
            message = M(**draw(PROTO_VALUES))
            data = message.SerializeToString()
            if draw(st.booleans()):
                return data, guid_header(GUID.format(1)) + write_indexes((1,)), proto_expected(message)
            return id_prefix(1) + write_indexes((1,)) + data, None, proto_expected(message)


@effort(100)
@given(st.lists(proto_row(), max_size=12))
def test_protobuf_is_what_protobuf_reads(rows: list[Any]) -> None:
    expected = [want for _, _, want in rows]
    assert decoded(PROTO_COLUMNS, [(v, h) for v, h, _ in rows]) == expected
