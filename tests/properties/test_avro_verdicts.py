"""A pair of Avro schemas that is declared compatible decodes; one that is declared incompatible has a counter-example.

fastavro is the judge: it writes values with one schema and reads them with the other.
"""

from __future__ import annotations

import io
import json
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.registry.formats.avro import AvroSchema

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
VALUES: dict[str, Any] = {
    "null": None, "boolean": True, "int": 7, "long": 2**40, "float": 0.5, "double": 0.25, "bytes": b"x",
    "string": "y",
}  # fmt: skip
DEFAULTS: dict[str, Any] = VALUES | {"bytes": "x"}

primitive = st.sampled_from(PRIMITIVES)
enum = st.sets(st.sampled_from("ABCD"), min_size=1).map(
    lambda symbols: {"type": "enum", "name": "E", "symbols": sorted(symbols)}
)
simple = st.one_of(
    primitive,
    primitive.map(lambda each: {"type": "array", "items": each}),
    primitive.map(lambda each: {"type": "map", "values": each}),
    st.sets(primitive, min_size=2, max_size=3).map(sorted),
)


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    fields = []
    for name in sorted(draw(st.sets(st.sampled_from("abc"), max_size=3))):
        type = draw(simple)
        field: dict[str, Any] = {"name": name, "type": type}
        first = type[0] if isinstance(type, list) else type
        if isinstance(first, str) and draw(st.booleans()):
            field["default"] = DEFAULTS[first]
        fields.append(field)
    if draw(st.booleans()):
        fields.append({"name": "e", "type": draw(enum)})
    return {"type": "record", "name": "R", "fields": fields}


schemas = st.one_of(simple, enum, records())


def witnesses(schema: Any) -> list[Any]:
    """Values that use every branch of a union and every symbol of an enum at least once."""
    if isinstance(schema, list):
        return [value for branch in schema for value in witnesses(branch)]
    if isinstance(schema, str):
        return [VALUES[schema]]
    match schema["type"]:
        case "array":
            return [[value] for value in witnesses(schema["items"])]
        case "map":
            return [{"k": value} for value in witnesses(schema["values"])]
        case "enum":
            return list(schema["symbols"])
        case _:
            choices = [(field["name"], witnesses(field["type"])) for field in schema["fields"]]
            count = max((len(values) for _, values in choices), default=1)
            return [
                {name: values[number % len(values)] for name, values in choices} for number in range(count)
            ]


def decodes(writer: Any, reader: Any, value: Any) -> bool:
    written = io.BytesIO()
    schemaless_writer(written, parse_schema(writer), value)
    try:
        schemaless_reader(io.BytesIO(written.getvalue()), parse_schema(writer), parse_schema(reader))
    except Exception:
        return False
    return True


@given(writer=schemas, reader=schemas)
@settings(max_examples=300, deadline=None)
def test_the_verdict_on_a_pair_is_what_a_reader_finds(writer: Any, reader: Any) -> None:
    old, new = (AvroSchema.parse(json.dumps(each), (), {}, is_new=True) for each in (writer, reader))
    found = new.incompatibilities(old)
    outcomes = [decodes(writer, reader, value) for value in witnesses(writer)]
    if found:
        assert not all(outcomes), f"no counter-example to {found}"
    else:
        assert all(outcomes), "declared compatible, and does not decode"


@given(schema=schemas)
@settings(max_examples=100, deadline=None)
def test_canonical_text_is_a_fixed_point_and_reads_itself(schema: Any) -> None:
    once = AvroSchema.parse(json.dumps(schema), (), {}, is_new=True)
    again = AvroSchema.parse(once.text, (), {}, is_new=True)
    assert again.text == once.text
    assert once.normalized().normalized().text == once.normalized().text
    assert again.incompatibilities(once) == []
