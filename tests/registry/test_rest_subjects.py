"""Registration, lookup, versions and deletion, with the statuses, codes and shapes of Confluent's registry."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tests.registry.conftest import Rest

STRING = '"string"'


def record(*fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


A = {"name": "a", "type": "string"}
B = {"name": "b", "type": "int", "default": 0}


def test_a_registration_returns_the_schema(rest: Rest, subject: str) -> None:
    status, made = rest.register(subject, {"type": "string"})
    assert status == 200
    assert made["schema"] == STRING  # a primitive type in its short form
    assert set(made) == {"id", "version", "guid", "schemaType", "schema"}
    assert rest.register(subject, {"type": "string"}) == (200, made)


def test_the_same_schema_has_one_id_in_all_subjects(rest: Rest, subject: str) -> None:
    text = record(A, name=f"Shared{subject[8:]}")
    first, second = rest.register(subject, text)[1], rest.register(f"{subject}-2", text)[1]
    assert first["id"] == second["id"]
    id = first["id"]
    assert rest("GET", f"/schemas/ids/{id}/subjects") == (200, [subject, f"{subject}-2"])
    assert rest("GET", f"/schemas/ids/{id}/versions") == (
        200,
        [{"subject": subject, "version": 1}, {"subject": f"{subject}-2", "version": 1}],
    )
    assert rest("GET", f"/schemas/guids/{first['guid']}")[1]["schema"] == first["schema"]
    assert rest("GET", f"/schemas/guids/{first['guid']}/ids") == (200, [{"context": ".", "id": id}])


def test_versions_are_found_by_number_and_as_latest(rest: Rest, subject: str) -> None:
    rest.register(subject, record(A))
    rest.register(subject, record(A, B))
    path = f"/subjects/{subject}/versions"
    assert rest("GET", path) == (200, [1, 2])
    newest = rest("GET", f"{path}/2")
    assert rest("GET", f"{path}/latest") == rest("GET", f"{path}/-1") == newest
    assert set(newest[1]) == {
        "subject", "version", "id", "guid", "schemaType", "schema", "ts", "deleted",
    }  # fmt: skip
    assert rest("GET", f"{path}/2/schema")[1] == record(A, B)
    assert rest("GET", f"{path}/3") == (404, {"error_code": 40402, "message": "Version 3 not found."})
    for bad in ("0", "-2", "x", "2147483648"):
        status, error = rest("GET", f"{path}/{bad}")
        assert (status, error["error_code"]) == (422, 42202)
    assert rest("GET", "/subjects/nobody/versions") == (
        404,
        {"error_code": 40401, "message": "Subject 'nobody' not found."},
    )


def test_a_lookup_finds_the_version(rest: Rest, subject: str) -> None:
    body = {"schema": '{"type":"string"}'}
    assert rest("POST", f"/subjects/{subject}", body)[1]["error_code"] == 40401
    rest.register(subject, STRING)
    status, found = rest("POST", f"/subjects/{subject}", body)
    assert (status, found["version"], found["subject"]) == (200, 1, subject)
    assert rest("POST", f"/subjects/{subject}", {"schema": '"int"'}) == (
        404,
        {"error_code": 40403, "message": "Schema not found"},
    )


def test_a_subject_is_deleted_softly_and_then_for_good(rest: Rest, subject: str) -> None:
    id = rest.register(subject, record(A, name="Gone"))[1]["id"]
    path = f"/subjects/{subject}"
    status, error = rest("DELETE", f"{path}?permanent=true")
    assert (status, error["error_code"]) == (404, 40405)
    assert rest("DELETE", path) == (200, [1])
    assert rest("DELETE", path)[1]["error_code"] == 40404
    assert subject not in rest("GET", "/subjects")[1]
    assert subject in rest("GET", "/subjects?deleted=true")[1]
    assert rest("GET", f"/subjects?deletedOnly=true&subjectPrefix={subject}") == (200, [subject])
    assert rest("GET", f"{path}/versions")[0] == 404
    assert rest("GET", f"{path}/versions?deleted=true") == (200, [1])
    assert rest("GET", f"{path}/versions/1?deleted=true")[1]["deleted"] is True
    assert rest("GET", f"/schemas/ids/{id}")[0] == 200  # data that was written can still be read
    assert rest("DELETE", f"{path}?permanent=true") == (200, [1])
    assert rest("DELETE", f"{path}?permanent=true")[1]["error_code"] == 40401
    assert rest("GET", f"/schemas/ids/{id}")[1]["error_code"] == 40403


def test_a_version_is_deleted_softly_and_then_for_good(rest: Rest, subject: str) -> None:
    rest.register(subject, record(A))
    rest.register(subject, record(A, B))
    path = f"/subjects/{subject}/versions"
    assert rest("DELETE", f"{path}/2?permanent=true")[1]["error_code"] == 40407
    assert rest("DELETE", f"{path}/latest") == (200, 2)
    assert rest("DELETE", f"{path}/2")[1]["error_code"] == 40406
    assert rest("GET", path) == (200, [1])
    assert rest("GET", f"{path}?deleted=true") == (200, [1, 2])
    assert rest("GET", f"{path}?deletedOnly=true") == (200, [2])
    assert rest("GET", f"{path}?deletedAsNegative=true") == (200, [1, -2])
    assert rest("DELETE", f"{path}/2?permanent=true") == (200, 2)
    assert rest("GET", f"{path}?deleted=true") == (200, [1])
    assert rest("DELETE", f"{path}/9")[1]["error_code"] == 40402
    assert rest("DELETE", "/subjects/nobody/versions/1")[1]["error_code"] == 40401


def test_a_deleted_schema_gets_a_new_version_and_its_old_id(rest: Rest, subject: str) -> None:
    made = rest.register(subject, record(A))[1]
    rest("DELETE", f"/subjects/{subject}")
    again = rest.register(subject, record(A))[1]
    assert (again["id"], again["version"]) == (made["id"], 2)
    assert rest("GET", f"/subjects/{subject}/versions?deleted=true") == (200, [2])


def test_the_highest_id_is_never_given_out_again(rest: Rest, subject: str) -> None:
    context = f":.floor-{subject}:"
    id = rest.register(f"{context}s", record(A))[1]["id"]
    rest("DELETE", f"/subjects/{quote(context, safe='')}s")
    rest("DELETE", f"/subjects/{quote(context, safe='')}s?permanent=true")
    assert rest.register(f"{context}s", record(A, B))[1]["id"] == id + 1


def test_referenced_schemas_cannot_be_deleted(rest: Rest, subject: str) -> None:
    rest.register(f"{subject}-a", record(A, name="Inner"))
    reference = {"name": "Inner", "subject": f"{subject}-a", "version": 1}
    outer = record({"name": "i", "type": "Inner"}, name="Outer")
    made = rest.register(subject, outer, references=[reference])[1]
    assert made["references"] == [reference]
    path = f"/subjects/{subject}-a"
    assert rest("GET", f"{path}/versions/1/referencedby") == (200, [made["id"]])
    for refused in (rest("DELETE", path), rest("DELETE", f"{path}/versions/1")):
        assert (refused[0], refused[1]["error_code"]) == (422, 42206)
    resolved = rest("GET", f"/schemas/ids/{made['id']}/schema?format=resolved")[1]
    assert resolved["fields"][0]["type"]["name"] == "Inner"
    rest("DELETE", f"/subjects/{subject}")
    assert rest("GET", f"{path}/versions/1/referencedby") == (200, [])
    assert rest("GET", f"{path}/versions/1/referencedby?deleted=true") == (200, [made["id"]])
    assert rest("DELETE", path) == (200, [1])


def test_an_unknown_reference_is_refused(rest: Rest, subject: str) -> None:
    reference = {"name": "Inner", "subject": "nobody", "version": 1}
    status, error = rest.register(subject, '"Inner"', references=[reference])
    assert (status, error["error_code"]) == (422, 42201)
    assert "No schema reference found" in error["message"]
    assert rest("GET", f"/subjects/{subject}/versions")[0] == 404


def test_subjects_may_have_any_name(rest: Rest, subject: str) -> None:
    for name in (f"{subject}/with/slashes", f"{subject} ü%", f"{subject}?&#"):
        assert rest.register(name, STRING)[0] == 200
        assert rest("GET", f"/subjects/{quote(name, safe='')}/versions") == (200, [1])
    status, error = rest.register(f"{subject}\n", STRING)
    assert (status, error["error_code"]) == (422, 42208)


def test_a_schema_is_normalized_on_request(rest: Rest, subject: str) -> None:
    one = {"type": "record", "name": "N", "fields": [A | {"z": 1, "b": 2}], "p": 1, "a": 2}
    other = {"a": 2, "p": 1, "type": "record", "name": "N", "fields": [{"b": 2, "z": 1} | A]}
    path = f"/subjects/{subject}/versions?normalize=true"
    first = rest("POST", path, {"schema": json.dumps(one)})[1]
    assert rest("POST", path, {"schema": json.dumps(other)})[1]["id"] == first["id"]


def test_invalid_schemas_are_refused_and_nothing_is_stored(rest: Rest, subject: str) -> None:
    for text, type in (
        ('{"type":"nope"}', "AVRO"),
        ("{", "AVRO"),
        ('{"type":"record","name":"1","fields":[]}', "AVRO"),
        ('{"type":"nope"}', "JSON"),
        ("[1]", "JSON"),
        ('{"$ref":"#/definitions/none"}', "JSON"),
        ("message {", "PROTOBUF"),
        ('syntax = "proto3"; message A { B b = 1; }', "PROTOBUF"),
        ("{}", "THRIFT"),
        ("", "AVRO"),
    ):
        status, error = rest.register(subject, text, schemaType=type)
        assert (status, error["error_code"]) == (422, 42201), text
    assert rest("GET", f"/subjects/{subject}/versions")[0] == 404
