"""Large schemas are parsed and compared in another process, with the same outcome."""

from __future__ import annotations

import json
from typing import Any

import pytest

from strandline.node.subprocess_call import call_in_subprocess
from strandline.registry.formats.large import (
    LargeSchema,
    SchemaSource,
    are_equivalent,
    find_incompatibilities,
    read_body,
)
from strandline.registry.formats.parsed import InvalidSchema
from tests.registry.conftest import Rest


def avro(count: int, type: str = "string") -> str:
    fields = [{"name": f"field_{n}", "type": type if n == 7 else "long"} for n in range(count)]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def json_schema(count: int, type: str = "string") -> str:
    return json.dumps({"properties": {f"p{n}": {"type": type if n == 7 else "number"} for n in range(count)}})


def protobuf(count: int, type: str = "string") -> str:
    fields = "".join(f"  {type if n == 7 else 'int64'} field_{n} = {n + 1};\n" for n in range(count))
    return f'syntax = "proto3";\n\nmessage M {{\n{fields}}}\n'


FORMATS = [("AVRO", avro, "int"), ("JSON", json_schema, "boolean"), ("PROTOBUF", protobuf, "double")]


@pytest.mark.parametrize(("type", "text", "other"), FORMATS)
def test_a_large_schema_is_as_a_small_one(type: str, text: Any, other: str) -> None:
    source = SchemaSource(type, text(1500), (), ())
    changed = SchemaSource(type, text(1500, other), (), ())
    assert source.is_large
    assert not SchemaSource(type, text(10), (), ()).is_large
    here, there = source.parse(), LargeSchema(source, call_in_subprocess)
    changed_here, changed_there = changed.parse(), LargeSchema(changed, call_in_subprocess)
    assert (there.type, there.text) == (here.type, here.text)
    assert there.normalized().text == here.normalized().text
    assert there.formatted("resolved") == here.formatted("resolved")
    found = changed_here.incompatibilities(here)
    assert found
    for new, old in ((changed_there, there), (changed_here, there), (changed_there, here)):
        assert find_incompatibilities(new, old, is_lenient=False) == found
    for one in (here, there):
        assert are_equivalent(there, one)
        assert are_equivalent(one, there)
        assert not are_equivalent(one, changed_there)
        assert not are_equivalent(changed_there, one)
    there.check(is_strict=False)


def test_an_error_of_the_other_process_is_raised_here() -> None:
    with pytest.raises(InvalidSchema, match="No type"):
        LargeSchema(SchemaSource("AVRO", "{" + " " * 40_000 + "}", (), ()), call_in_subprocess)
    with pytest.raises(ValueError, match="beside the schema"):
        call_in_subprocess(read_body, json.dumps({"schema": "x", "more": ["x"] * 30_000}).encode())


@pytest.mark.parametrize(("type", "text", "other"), FORMATS)
def test_large_schemas_are_registered_found_and_refused(
    rest: Rest, subject: str, type: str, text: Any, other: str
) -> None:
    status, made = rest.register(subject, text(1500), schemaType=type)
    assert status == 200
    assert rest.register(subject, text(1500), schemaType=type)[1]["id"] == made["id"]
    assert rest("POST", f"/subjects/{subject}", {"schema": text(1500), "schemaType": type})[1]["version"] == 1
    assert rest.register(subject, text(1500, other), schemaType=type)[1]["error_code"] == 40901
    assert rest.register(subject, "x" * 1_000_001, schemaType=type)[1]["error_code"] == 42209
