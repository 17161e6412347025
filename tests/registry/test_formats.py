"""References, output formats and equality in JSON Schema and Protobuf."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

from google.protobuf import descriptor_pb2

from strandline.registry.formats.parsing import parse_schema
from tests.registry.conftest import Rest

ADDRESS = {"type": "object", "properties": {"street": {"type": "string"}}, "additionalProperties": False}
PERSON = {"type": "object", "properties": {"home": {"$ref": "address.json"}}, "additionalProperties": False}
INNER = 'syntax = "proto3";\npackage a;\n\nmessage Inner {\n  string x = 1;\n}\n'
OUTER = 'syntax = "proto3";\npackage a;\n\nimport "inner.proto";\n\nmessage Outer {\n  Inner inner = 1;\n}\n'


def test_a_json_schema_is_compared_through_its_references(rest: Rest, subject: str) -> None:
    rest.register(f"{subject}-a", ADDRESS, schemaType="JSON")
    reference = {"name": "address.json", "subject": f"{subject}-a", "version": 1}
    status, made = rest.register(subject, PERSON, schemaType="JSON", references=[reference])
    assert (status, made["references"]) == (200, [reference])
    assert rest.register(f"{subject}-x", PERSON, schemaType="JSON")[1]["error_code"] == 42201
    narrower = ADDRESS | {"required": ["street"]}
    rest("PUT", f"/config/{subject}-a", {"compatibility": "NONE"})
    assert rest.register(f"{subject}-a", narrower, schemaType="JSON")[1]["version"] == 2
    newer = reference | {"version": 2}
    status, error = rest.register(subject, PERSON, schemaType="JSON", references=[newer])
    assert (status, error["error_code"]) == (409, 40901)
    assert "#/required/street" in error["message"] or "#/properties/home/required/street" in error["message"]


def test_a_protobuf_schema_imports_others_and_well_known_types(rest: Rest, subject: str) -> None:
    rest.register(f"{subject}-i", INNER, schemaType="PROTOBUF")
    reference = {"name": "inner.proto", "subject": f"{subject}-i", "version": -1}
    status, made = rest.register(subject, OUTER, schemaType="PROTOBUF", references=[reference])
    assert status == 200
    assert made["references"][0]["version"] == 1
    assert made["schema"] == OUTER
    known = (
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; '
        "message M { google.protobuf.Timestamp at = 1; }"
    )
    assert rest.register(f"{subject}-t", known, schemaType="PROTOBUF")[0] == 200


def test_a_descriptor_is_found_equal_to_its_text(rest: Rest, subject: str) -> None:
    text = (
        'syntax = "proto3"; package a; message M { string some_name = 1; N n = 2; '
        "map<string, N> by = 3; message N { int32 v = 1; } }"
    )
    made = rest.register(subject, text, schemaType="PROTOBUF")[1]
    serialized = rest("GET", f"/schemas/ids/{made['id']}?format=serialized")[1]["schema"]
    described = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(serialized))
    assert [message.name for message in described.message_type] == ["M"]
    body = {"schema": serialized, "schemaType": "PROTOBUF"}
    found = rest("POST", f"/subjects/{subject}", body)[1]
    assert (found["id"], found["version"]) == (made["id"], 1)
    assert rest.register(subject, serialized, schemaType="PROTOBUF")[1]["id"] == made["id"]


def test_normal_forms_do_not_depend_on_the_order(rest: Rest, subject: str) -> None:
    path = f"/subjects/{subject}/versions?normalize=true"
    for type, one, other in (
        ("JSON", '{"type":"object","title":"x"}', '{"title":"x","type":"object"}'),
        (
            "PROTOBUF",
            'syntax = "proto3"; message M { int32 a = 1; M b = 2; }',
            'syntax = "proto3"; message M { .M b = 2; int32 a = 1; }',
        ),
    ):
        rest("PUT", f"/config/{subject}", {"compatibility": "NONE"})
        first = rest("POST", path, {"schema": one, "schemaType": type})[1]
        assert rest("POST", path, {"schema": other, "schemaType": type})[1]["id"] == first["id"]


def test_references_stay_inside_of_a_context(rest: Rest, context: str) -> None:
    rest.register(f"{context}a", ADDRESS, schemaType="JSON")
    reference = {"name": "address.json", "subject": "a", "version": 1}
    status, made = rest.register(f"{context}p", PERSON, schemaType="JSON", references=[reference])
    assert (status, made["references"]) == (200, [reference])
    path = f"/subjects/{quote(context + 'p', safe='')}/versions/1"
    qualified = rest("GET", f"{path}?referenceFormat=qualified")[1]["references"]
    assert qualified == [reference | {"subject": f"{context}a"}]


def test_the_text_of_a_json_schema_keeps_its_order(rest: Rest, subject: str) -> None:
    text = '{"title":"ü","type":"object","$schema":"http://json-schema.org/draft-07/schema#"}'
    made = rest.register(subject, json.dumps(json.loads(text), indent=4), schemaType="JSON")[1]
    assert made["schema"] == text


def test_numbers_of_json_schema_keep_their_spelling() -> None:
    """As Java's BigDecimal writes them: another spelling would be another text, and another guid."""
    text = '{"a": 1.0, "b": 1e2, "c": 12345678901234567890, "d": 0.10, "e": [1E-7, "0.10"]}'
    parsed = parse_schema("JSON", text, (), {}, is_new=True)
    assert parsed.text == '{"a":1.0,"b":1E+2,"c":12345678901234567890,"d":0.10,"e":[1E-7,"0.10"]}'
    parsed.check(is_strict=False)
    assert parse_schema("JSON", parsed.text, (), {}, is_new=False).text == parsed.text
