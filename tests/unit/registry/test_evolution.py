"""A table of schema changes for each format, in all seven modes of compatibility, with Confluent's verdicts.

Each row says for a change whether the new schema reads old data (B), and whether old readers read new data (F). From
these follow the verdicts of all levels on a single step.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from strandline.registry.formats.levels import LEVELS, violations
from strandline.registry.formats.parsed import ParsedSchema
from strandline.registry.formats.parsing import parse_schema


def avro(*fields: dict[str, Any], name: str = "R") -> str:
    return json.dumps({"type": "record", "name": name, "fields": list(fields)})


def field(name: str, type: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


A = field("a", "string")
ENUM = {"type": "enum", "name": "E", "symbols": ["X", "Y"]}

# Avro: the change, before, after, backward, forward
AVRO = [
    ("add a field with a default", avro(A), avro(A, field("b", "int", default=0)), True, True),
    ("remove a field with a default", avro(A, field("b", "int", default=0)), avro(A), True, True),
    ("add a required field", avro(A), avro(A, field("b", "int")), False, True),
    ("remove a required field", avro(A, field("b", "int")), avro(A), True, False),
    ("change a type to another", avro(A), avro(field("a", "int")), False, False),
    ("promote int to long", avro(field("a", "int")), avro(field("a", "long")), True, False),
    ("promote float to double", avro(field("a", "float")), avro(field("a", "double")), True, False),
    ("string to bytes", avro(A), avro(field("a", "bytes")), True, True),
    ("make a field optional", avro(A), avro(field("a", ["null", "string"])), True, False),
    ("add a branch to a union", '["int","string"]', '["int","string","boolean"]', True, False),
    ("rename a field with an alias", avro(A), avro(field("b", "string", aliases=["a"])), True, False),
    ("rename a record", avro(A), avro(A, name="S"), False, False),
    ("add a symbol", json.dumps(ENUM), json.dumps(ENUM | {"symbols": ["X", "Y", "Z"]}), True, False),
    (
        "add a symbol to an enum with a default",
        json.dumps(ENUM | {"default": "X"}),
        json.dumps(ENUM | {"symbols": ["X", "Y", "Z"], "default": "X"}),
        True,
        True,
    ),
    (
        "change the size of a fixed",
        '{"type":"fixed","name":"F","size":4}',
        '{"type":"fixed","name":"F","size":8}',
        False,
        False,
    ),
]


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def opened(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


S = {"type": "string"}
I = {"type": "integer"}  # noqa: E741
JSON = [
    ("add a property to a closed model", closed(a=S), closed(a=S, b=I), True, False),
    ("add a property to an open model", opened(a=S), opened(a=S, b=I), False, True),
    ("remove a property from an open model", opened(a=S, b=I), opened(a=S), True, False),
    ("add a required property", closed(a=S), closed(a=S, b=I) | {"required": ["b"]}, False, False),
    (
        "add a required property with a default",
        closed(a=S),
        closed(a=S, b=I | {"default": 1}) | {"required": ["b"]},
        True,
        False,
    ),
    ("make a property required", opened(a=S), opened(a=S) | {"required": ["a"]}, False, True),
    ("open a closed model", closed(a=S), opened(a=S), True, False),
    ("integer to number", I, {"type": "number"}, True, False),
    ("string to integer", S, I, False, False),
    ("raise a maximum", I | {"maximum": 5}, I | {"maximum": 9}, True, False),
    ("add an alternative", {"type": ["string"]}, {"type": ["string", "null"]}, True, False),
    ("add an enum value", {"enum": ["a"]}, {"enum": ["a", "b"]}, True, False),
    ("add a pattern", S, S | {"pattern": "^a"}, False, True),
    ("change a title", S | {"title": "x"}, S | {"title": "y"}, True, True),
]


def proto(body: str, syntax: str = "proto3") -> str:
    return f'syntax = "{syntax}"; message M {{ {body} }}'


PROTOBUF = [
    ("add a field", proto("string a = 1;"), proto("string a = 1; int32 b = 2;"), True, True),
    ("remove a field", proto("string a = 1; int32 b = 2;"), proto("string a = 1;"), True, True),
    ("rename a field", proto("string a = 1;"), proto("string b = 1;"), True, True),
    ("string to int32", proto("string a = 1;"), proto("int32 a = 1;"), False, False),
    ("int32 to int64", proto("int32 a = 1;"), proto("int64 a = 1;"), True, True),
    ("int32 to sint32", proto("int32 a = 1;"), proto("sint32 a = 1;"), False, False),
    ("add a message", proto(""), proto("") + " message N {}", True, False),
    ("remove a message", proto("") + " message N {}", proto(""), False, True),
    (
        "add a required field",
        proto("optional string a = 1;", "proto2"),
        proto("optional string a = 1; required int32 b = 2;", "proto2"),
        False,
        False,
    ),
    ("change a package", proto(""), 'syntax = "proto3"; package x; message M {}', False, False),
    (
        "remove a field of a oneof",
        proto("oneof o { string a = 1; int32 b = 2; }"),
        proto("oneof o { string a = 1; }"),
        False,
        True,
    ),
    (
        "move fields into one oneof",
        proto("string a = 1; int32 b = 2;"),
        proto("oneof o { string a = 1; int32 b = 2; }"),
        False,
        True,
    ),
]
ROWS = [
    *(("AVRO", *row) for row in AVRO),
    *(
        ("JSON", change, json.dumps(old), json.dumps(new), back, ahead)
        for change, old, new, back, ahead in JSON
    ),
    *(("PROTOBUF", *row) for row in PROTOBUF),
]


def parsed(type: str, text: str) -> ParsedSchema:
    schema = parse_schema(type, text, (), {}, is_new=True)
    schema.check(is_strict=False)
    return schema


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[1]}")
@pytest.mark.parametrize("level", LEVELS)
def test_a_change_has_confluents_verdict(row: tuple[Any, ...], level: str) -> None:
    type, _, old, new, backward, forward = row
    direction = level.partition("_")[0]
    allowed = {
        "NONE": True, "BACKWARD": backward, "FORWARD": forward, "FULL": backward and forward,
    }[direction]  # fmt: skip
    found = violations(level, parsed(type, new), [(1, parsed(type, old))])
    assert (found == []) is allowed, found
    assert not any("%s" in message for message in found)


@pytest.mark.parametrize("level", LEVELS)
def test_a_transitive_level_looks_at_every_version(level: str) -> None:
    """A field goes and comes back with another type: the latest version does not show it."""
    versions = [avro(A, field("b", "int", default=0)), avro(A)]
    earlier = [(number, parsed("AVRO", text)) for number, text in enumerate(versions, 1)]
    found = violations(level, parsed("AVRO", avro(A, field("b", "string", default=""))), earlier)
    assert (found == []) is not level.endswith("_TRANSITIVE")
    if found:
        assert "{oldSchemaVersion: 1}" in found


def test_another_type_is_never_compatible() -> None:
    old = [(1, parsed("JSON", "{}"))]
    assert violations("BACKWARD", parsed("AVRO", '"int"'), old) == [
        "Incompatible because of different schema type"
    ]
