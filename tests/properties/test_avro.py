"""Avro values of random schemas, written by fastavro, come out as columns with what was written, compiled and plain;
with damaged values among them the others stay as they are."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.avro.compiled import kernels
from strandline.avro.decoding import AvroDecoder
from strandline.avro.schema import read_schema
from tests.properties.effort import effort

BOTH = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
DIGITS = Context(prec=38)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLIS = st.integers(-(10**13), 10**13)
INT = st.integers(-(1 << 31), (1 << 31) - 1)
LONG = st.integers(-(1 << 63), (1 << 63) - 1)
DOUBLE = st.floats(allow_nan=False)
FLOAT = st.floats(width=32, allow_nan=False)
SYMBOLS = ("NORTH", "SOUTH", "east")

# A schema, what fastavro is to write, and what is to come out of it.
Case = tuple[Any, Any]


def decimal_values(precision: int, scale: int) -> Any:
    most = 10**precision - 1
    return st.integers(-most, most).map(lambda number: Decimal(number).scaleb(-scale, DIGITS))


@st.composite
def leaf_schemas(draw: Any, number: int) -> tuple[Any, Any]:
    """Returns a type and a strategy of its values, in the form in which they are written and come out."""
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    decimal = {"logicalType": "decimal", "precision": precision, "scale": scale}
    return draw(
        st.sampled_from(
            [
                ("null", st.none()),
                ("boolean", st.booleans()),
                ("int", INT),
                ("long", LONG),
                ("float", FLOAT),
                ("double", DOUBLE),
                ("bytes", st.binary(max_size=40)),
                ("string", st.text(max_size=40)),
                (
                    {"type": "fixed", "name": f"fixed{number}", "size": 5},
                    st.binary(min_size=5, max_size=5),
                ),
                (
                    {"type": "enum", "name": f"enum{number}", "symbols": list(SYMBOLS)},
                    st.sampled_from(SYMBOLS),
                ),
                ({"type": "int", "logicalType": "date"}, st.dates(date(1700, 1, 1), date(2300, 1, 1))),
                ({"type": "int", "logicalType": "unknown"}, INT),
                (
                    {"type": "long", "logicalType": "timestamp-millis"},
                    MILLIS.map(lambda ms: EPOCH + timedelta(milliseconds=ms)),
                ),
                (
                    {"type": "long", "logicalType": "timestamp-micros"},
                    MILLIS.map(lambda us: EPOCH + timedelta(microseconds=us)),
                ),
                (
                    {"type": "long", "logicalType": "local-timestamp-micros"},
                    MILLIS.map(lambda us: (EPOCH + timedelta(microseconds=us)).replace(tzinfo=None)),
                ),
                ({"type": "bytes", **decimal}, decimal_values(precision, scale)),
                (
                    {"type": "fixed", "name": f"decimal{number}", "size": 17, **decimal},
                    decimal_values(precision, scale),
                ),
            ]
        )
    )


@st.composite
def schemas(draw: Any, depth: int, number: int) -> tuple[Any, Any]:
    kind = draw(
        st.sampled_from(["leaf", "leaf", "nullable", "record", "array", "map"] if depth else ["leaf"])
    )
    if kind == "leaf":
        return draw(leaf_schemas(number))
    if kind == "record":
        return draw(records(depth - 1, number))
    inner, values = draw(schemas(depth - 1, number * 10 + 1))
    if kind == "nullable":
        if inner == "null" or isinstance(inner, list):
            return inner, values
        order = draw(st.permutations(["null", inner]))
        return list(order), st.none() | values
    if kind == "array":
        if inner == "null":
            return inner, values
        return {"type": "array", "items": inner}, st.lists(values, max_size=4)
    return {"type": "map", "values": inner}, st.dictionaries(st.text(max_size=5), values, max_size=3)


@st.composite
def records(draw: Any, depth: int, number: int) -> tuple[Any, Any]:
    inside = [draw(schemas(depth, number * 10 + at)) for at in range(draw(st.integers(1, 4)))]
    # A record of nothing but nulls takes no bytes, and may not be in a list.
    inside.append(("int", INT))
    fields = [{"name": f"f{at}", "type": kind} for at, (kind, _) in enumerate(inside)]
    schema = {"type": "record", "name": f"record{number}", "fields": fields}
    return schema, st.fixed_dictionaries({f"f{at}": values for at, (_, values) in enumerate(inside)})


@st.composite
def tables(draw: Any) -> tuple[Any, list[Any]]:
    schema, values = draw(records(3, 1))
    return schema, draw(st.lists(values, max_size=6))


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def comparable(value: Any) -> Any:
    """Arrow gives a map as a list of pairs."""
    if isinstance(value, dict):
        return {name: comparable(each) for name, each in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(each, tuple) for each in value):
            return {name: comparable(each) for name, each in value}
        return [comparable(each) for each in value]
    return value


def emptied(value: Any) -> Any:
    """An empty map and an empty list are the same in what Arrow gives."""
    if isinstance(value, dict):
        return {name: emptied(each) for name, each in value.items()} or []
    if isinstance(value, list):
        return [emptied(each) for each in value]
    return value


@BOTH
@effort(60)
@given(tables())
def test_values_that_fastavro_writes_are_read(compiled: bool, table: tuple[Any, list[Any]]) -> None:
    schema, rows = table
    parsed = fastavro.parse_schema(schema)
    values = [written(parsed, row) for row in rows]
    # In the middle, so that positions are not those of the buffer's beginning.
    column = pa.array([b"before", *values, None], pa.binary())[1:]
    found, errors = AvroDecoder(read_schema(schema), avro_kernels=kernels(compiled)).decode(column)
    found.validate(full=True)
    assert errors.to_pylist() == [None] * (len(rows) + 1)
    *rest, last = found.to_pylist()
    assert [emptied(comparable(row)) for row in rest] == [emptied(row) for row in rows]
    assert set(last.values()) == {None}


@effort(80)
@given(tables(), st.data())
def test_a_damaged_value_harms_nobody_else(table: tuple[Any, list[Any]], data: Any) -> None:
    schema, rows = table
    parsed = fastavro.parse_schema(schema)
    good = [written(parsed, row) for row in rows]
    bad = data.draw(st.binary(max_size=30))
    if good:
        whole = data.draw(st.sampled_from(good))
        bad = data.draw(st.sampled_from([bad, whole[:-1], whole + bad, bad + whole]))
    column = pa.array([*good, bad, *good], pa.binary())
    results = []
    for compiled in (True, False):
        found, errors = AvroDecoder(read_schema(schema), avro_kernels=kernels(compiled)).decode(column)
        found.validate(full=True)
        results.append((found, errors))
    (found, errors), (plain_found, plain_errors) = results
    assert errors.equals(plain_errors)
    assert repr(found.to_pylist()) == repr(plain_found.to_pylist())  # nan is not equal to itself
    others = [row for at, row in enumerate(found.to_pylist()) if at != len(good)]
    assert [emptied(comparable(row)) for row in others] == [emptied(row) for row in rows] * 2
    if errors[len(good)].as_py() is not None:
        assert set(found[len(good)].as_py().values()) == {None}
