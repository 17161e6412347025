"""Avro: what a schema may be, what is said of values that do not decode, and how one schema is read as another."""

from __future__ import annotations

import io
import json
from decimal import Context, Decimal
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")

import fastavro  # noqa: E402

from strandline.avro.compiled import kernels  # noqa: E402
from strandline.avro.decoding import AvroDecoder  # noqa: E402
from strandline.avro.framing import decoder_of  # noqa: E402
from strandline.avro.program import CannotResolveError, compile_program  # noqa: E402
from strandline.avro.schema import AvroSchemaError, AvroSource, read_schema  # noqa: E402

BOTH = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
DIGITS = Context(prec=38)


def record(*fields: Any, name: str = "Order") -> dict[str, Any]:
    """Returns a schema; a field is a name and a type, and perhaps more keys."""
    listed = [{"name": each[0], "type": each[1], **(each[2] if len(each) > 2 else {})} for each in fields]
    return {"type": "record", "name": name, "fields": listed}


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def decoded(schema: Any, values: list[bytes | None], compiled: bool = True) -> tuple[list[Any], list[Any]]:
    decoder = AvroDecoder(read_schema(schema), avro_kernels=kernels(compiled))
    found, errors = decoder.decode(pa.array(values, pa.binary()))
    found.validate(full=True)
    return found.to_pylist(), errors.to_pylist()


@pytest.mark.parametrize(
    ("schema", "path", "text"),
    [
        (
            record(("next", ["null", "Order"])),
            ("fields", 0, "type", 1),
            "Order is within itself: a recursive type cannot be columns",
        ),
        (record(("id", ["int", "string"])), ("fields", 0, "type"), "may have one type and null"),
        (record(("id", "strng")), ("fields", 0, "type"), "there is no type 'strng' before this"),
        (record(("id", {"type": "array"})), ("fields", 0, "type"), "array without `items`"),
        (
            record(("id", {"type": "array", "items": "null"})),
            ("fields", 0, "type", "items"),
            "an array of items that take no bytes",
        ),
        (
            record(("id", {"type": "bytes", "logicalType": "decimal", "precision": 39})),
            ("fields", 0, "type"),
            "1 to 38 digits",
        ),
        (record(("id", "int"), ("id", "int")), ("fields", 1), "the field id is there twice"),
        (record(), (), "record Order without `fields`"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, ("symbols",), "has a symbol twice"),
        (7, (), "7 is no type"),
    ],
)
def test_a_schema_that_cannot_be_columns_is_refused_with_its_place(schema: Any, path: Any, text: str) -> None:
    with pytest.raises(AvroSchemaError, match=text) as raised:
        read_schema(schema)
    assert raised.value.path == path


@BOTH
@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        ("int", b"\xff\xff\xff\xff\x1f", "an int beyond 32 bits"),
        ("long", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "the value ends too early"),
        ("boolean", b"\x02", "a boolean that is neither true nor false"),
        ("string", b"\x04\xff\xfe", "text that is not UTF-8"),
        ("string", b"\x06\xed\xa0\x80", "text that is not UTF-8"),
        ("string", b"\x01", "a size that is impossible"),
        ("string", b"\x7fab", "a size that is impossible"),
        ("bytes", b"\x08ab", "the value ends too early"),
        ("double", b"\x00" * 7, "the value ends too early"),
        (["null", "int"], b"\x04\x02", "a branch that the union does not have"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "a symbol that the enum does not have"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1},
            b"\x04\x03\xe8",  # 1000
            "a decimal with more digits than its type has",
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            b"\xfe" + b"\xff" * 8 + b"\x01",
            "a time beyond",
        ),
        ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\x0f", "a size that is impossible"),
        ("int", b"\x02\x02", "bytes after the end of the value"),
        ("int", b"", "the value ends too early"),
    ],
)
def test_a_value_that_does_not_decode_says_why(compiled: bool, kind: Any, value: bytes, error: str) -> None:
    rows, errors = decoded(record(("it", kind)), [value], compiled)
    assert rows == [{"it": None}]
    assert errors[0].startswith(f"it: {error}")


@BOTH
def test_decimals_of_any_size_are_exact(compiled: bool) -> None:
    schema = record(("it", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}))
    numbers = [0, 1, -1, 255, -256, 10**20, -(10**20), 10**38 - 1, -(10**38) + 1]
    sizes = [1, 9, 17, 20]
    values, expected = [], []
    for number in numbers:
        for size in sizes:
            if (number if number >= 0 else ~number).bit_length() < size * 8:
                values.append(written("bytes", number.to_bytes(size, "big", signed=True)))
                expected.append(Decimal(number).scaleb(-2, DIGITS))
    too_large = [written("bytes", number.to_bytes(17, "big", signed=True)) for number in (10**38, -(10**38))]
    rows, errors = decoded(schema, [*values, *too_large, b"\x00"], compiled)
    assert [row["it"] for row in rows] == [*expected, None, None, Decimal("0.00")]
    assert [error is None for error in errors] == [True] * len(values) + [False] * 2 + [True]


OLD = record(
    ("id", "int"),
    ("name", "string"),
    ("gone", {"type": "array", "items": ["null", record(("x", "string"), name="Inner")]}),
    ("state", {"type": "enum", "name": "State", "symbols": ["NEW", "PAID", "LOST"]}),
    ("at", ["null", record(("city", "string"), name="Place")]),
)
NEW = record(
    ("added", {"type": "map", "values": "int"}, {"default": {"a": 1}}),
    ("title", ["null", "string"], {"aliases": ["name"]}),
    ("id", "long"),
    ("state", {"type": "enum", "name": "State", "symbols": ["UNKNOWN", "PAID", "NEW"], "default": "UNKNOWN"}),
    (
        "at",
        [
            "null",
            record(
                ("zip", "string", {"default": "none"}),
                ("city", "string"),
                (
                    "fee",
                    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
                    {"default": "\x01"},
                ),
                name="Place",
            ),
        ],
    ),
    ("since", {"type": "long", "logicalType": "timestamp-millis"}, {"default": 1500}),
)


@BOTH
def test_values_of_an_older_schema_become_columns_of_the_new_one(compiled: bool) -> None:
    old = [
        {"id": 1, "name": "a", "gone": [None, {"x": "y"}], "state": "NEW", "at": {"city": "Ulm"}},
        {"id": 2, "name": "b", "gone": [], "state": "LOST", "at": None},
    ]
    values = pa.array([written(OLD, row) for row in old], pa.binary())
    decoder = AvroDecoder(read_schema(OLD), read_schema(NEW), avro_kernels=kernels(compiled))
    found, errors = decoder.decode(values)
    found.validate(full=True)
    assert errors.null_count == 2
    first, second = found.to_pylist()
    assert first["since"].timestamp() == 1.5
    assert [list(row.values())[:5] for row in (first, second)] == [
        [[("a", 1)], "a", 1, "NEW", {"zip": "none", "city": "Ulm", "fee": Decimal("0.01")}],
        [[("a", 1)], "b", 2, "UNKNOWN", None],
    ]


@BOTH
def test_an_int_of_an_older_schema_is_as_many_milliseconds_as_a_long(compiled: bool) -> None:
    seconds = 2_000_000
    time = {"type": "long", "logicalType": "timestamp-millis"}
    older, newer = record(("at", "int"), ("gone", "int")), record(("at", time))
    values = [written(older, {"at": number * 1000, "gone": number}) for number in (0, seconds, -seconds)]
    found, errors = AvroDecoder(
        read_schema(older), read_schema(newer), avro_kernels=kernels(compiled)
    ).decode(pa.array([*values, written(newer, {"at": 1 << 31}) + b"\x00"], pa.binary()))
    assert [row["at"].timestamp() for row in found.to_pylist()[:3]] == [0, seconds, -seconds]
    assert errors.to_pylist() == [None, None, None, "at: an int beyond 32 bits"]


@pytest.mark.parametrize(
    ("writer", "reader", "text"),
    [
        ("string", "int", "it was written as string, and is read as int"),
        ("long", "int", "it was written as long, and is read as int"),
        ({"type": "array", "items": "int"}, "int", "it was written as array, and is read as int"),
    ],
)
def test_a_value_that_cannot_be_read_as_another_schema_is_an_error_that_says_so(
    writer: Any, reader: Any, text: str
) -> None:
    with pytest.raises(CannotResolveError, match=text):
        compile_program(read_schema(record(("it", writer))), read_schema(record(("it", reader))))


def test_a_field_without_default_cannot_be_added() -> None:
    with pytest.raises(CannotResolveError, match="more is not in what was written, and has no default"):
        compile_program(
            read_schema(record(("it", "int"))), read_schema(record(("it", "int"), ("more", "int")))
        )


def test_null_is_an_error_where_the_reader_has_no_null() -> None:
    decoder = AvroDecoder(read_schema(record(("it", ["null", "int"]))), read_schema(record(("it", "long"))))
    found, errors = decoder.decode(pa.array([b"\x00", b"\x02\x08"]))
    assert found.to_pylist() == [{"it": None}, {"it": 4}]
    assert errors[0].as_py().startswith("it: null, which")


def test_a_schema_number_in_front_of_a_value_chooses_its_schema() -> None:
    first, second = record(("id", "int")), record(("id", "long"), ("name", "string"))
    reader = record(("id", "long"), ("name", "string", {"default": "nobody"}))
    source = AvroSource(
        reader=json.dumps(reader), framed=((7, json.dumps(first)), (1 << 30, json.dumps(second)))
    )
    assert AvroSource.from_json(source.to_json()) == source
    values = [
        b"\0\0\0\0\x07" + written(first, {"id": 1}),
        b"\0\x40\0\0\0" + written(second, {"id": 2, "name": "ann"}),
        None,
        b"\0\0\0\0\x08" + written(first, {"id": 3}),
        written(first, {"id": 4}),
        b"\0\0\0\0\x07" + written(first, {"id": 5}),
    ]
    found, errors = decoder_of(source).decode(pa.array(values, pa.binary()))
    assert [row and (row["id"], row["name"]) for row in found.to_pylist()] == [
        (1, "nobody"),
        (2, "ann"),
        None,
        None,
        None,
        (5, "nobody"),
    ]
    assert errors.to_pylist() == [
        None,
        None,
        None,
        "schema 8 is not among the schemas of this source",
        "the value does not begin with the number of a schema",
        None,
    ]


def test_a_value_that_is_no_record_is_the_column_value() -> None:
    assert decoded("string", [b"\x04ab"]) == ([{"value": "ab"}], [None])
