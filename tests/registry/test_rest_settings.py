"""Configs, modes, contexts, metadata and rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.registry.conftest import Rest

A = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
A_AND_B = {"type": "record", "name": "R", "fields": [*A["fields"], {"name": "b", "type": "int"}]}  # type: ignore[misc]


@pytest.fixture(autouse=True)
def global_settings_as_before(rest: Rest) -> Iterator[None]:
    yield
    rest("DELETE", "/config")
    rest("DELETE", "/mode?recursive=true")


def test_a_config_is_global_or_of_a_subject(rest: Rest, subject: str) -> None:
    path = f"/config/{subject}"
    assert rest("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
    status, error = rest("GET", path)
    assert (status, error["error_code"]) == (404, 40408)
    assert rest("GET", f"{path}?defaultToGlobal=true") == (200, {"compatibilityLevel": "BACKWARD"})
    assert rest("PUT", "/config", {"compatibility": "full"}) == (200, {"compatibility": "FULL"})
    assert rest("GET", f"{path}?defaultToGlobal=true") == (200, {"compatibilityLevel": "FULL"})
    assert rest("PUT", path, {"compatibility": "NONE"}) == (200, {"compatibility": "NONE"})
    assert rest("GET", path) == (200, {"compatibilityLevel": "NONE"})
    status, error = rest("PUT", path, {"compatibility": "SIDEWARD"})
    assert (status, error["error_code"]) == (422, 42203)
    assert rest("DELETE", path) == (200, {"compatibilityLevel": "NONE"})
    assert rest("DELETE", path)[1]["error_code"] == 40401
    assert rest("DELETE", "/config") == (200, {"compatibilityLevel": "FULL"})


def test_a_level_of_a_subject_is_its_own(rest: Rest, subject: str) -> None:
    rest.register(subject, A)
    assert rest.register(subject, A_AND_B)[1]["error_code"] == 40901
    rest("PUT", f"/config/{subject}", {"compatibility": "FORWARD"})
    assert rest.register(subject, A_AND_B)[0] == 200


def test_verbose_checks_name_the_mistake_and_its_place(rest: Rest, subject: str) -> None:
    rest.register(subject, A)
    body = {"schema": json.dumps(A_AND_B)}
    path = f"/compatibility/subjects/{subject}/versions"
    assert rest("POST", f"{path}/latest", body) == (200, {"is_compatible": False})
    status, found = rest("POST", f"{path}/1?verbose=true", body)
    assert (status, found["is_compatible"]) == (200, False)
    assert found["messages"][0] == (
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path '/fields/1' in the "
        "new schema has no default value and is missing in the old schema', additionalInfo:'b'}"
    )
    assert found["messages"][1] == "{oldSchemaVersion: 1}"
    assert found["messages"][2].startswith("{oldSchema: '")
    assert found["messages"][3] == "{validateFields: 'false', compatibility: 'BACKWARD'}"
    assert rest("POST", f"{path}?verbose=true", {"schema": json.dumps(A)}) == (
        200,
        {"is_compatible": True, "messages": []},
    )
    assert rest("POST", f"{path}/7", body)[1]["error_code"] == 40402
    assert rest("POST", f"{path}/x", body)[1]["error_code"] == 42202
    assert rest("POST", f"{path}/latest", {"schema": "{"})[1]["error_code"] == 42201
    nobody = "/compatibility/subjects/nobody/versions"
    assert rest("POST", f"{nobody}/latest", body) == (200, {"is_compatible": True})
    assert rest("POST", nobody, body) == (200, {"is_compatible": True})


def test_a_read_only_subject_refuses_changes(rest: Rest, subject: str) -> None:
    rest.register(subject, A)
    assert rest("PUT", f"/mode/{subject}", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
    for status, error in (
        rest.register(subject, '"int"'),
        rest("DELETE", f"/subjects/{subject}"),
        rest("PUT", f"/config/{subject}", {"compatibility": "NONE"}),
    ):
        assert (status, error["error_code"]) == (422, 42205)
    assert rest.register(subject, A)[0] == 200  # it is there already
    assert rest("DELETE", f"/mode/{subject}") == (200, {"mode": "READONLY"})
    assert rest("DELETE", f"/mode/{subject}")[1]["error_code"] == 40401
    status, error = rest("GET", f"/mode/{subject}")
    assert (status, error["error_code"]) == (404, 40409)
    assert rest("GET", f"/mode/{subject}?defaultToGlobal=true") == (200, {"mode": "READWRITE"})
    status, error = rest("PUT", f"/mode/{subject}", {"mode": "SOMETIMES"})
    assert (status, error["error_code"]) == (422, 42204)


def test_an_import_brings_its_own_ids(rest: Rest, context: str) -> None:
    path = quote(f"{context}s", safe="")
    assert rest.register(f"{context}s", A, id=70, version=3)[1]["error_code"] == 42205
    assert rest("PUT", f"/mode/{path}", {"mode": "IMPORT"})[0] == 200
    assert rest.register(f"{context}s", '"int"')[1]["error_code"] == 42205
    status, made = rest.register(f"{context}s", A, id=70, version=3)
    assert (status, made["id"], made["version"]) == (200, 70, 3)
    assert rest.register(f"{context}s", '"int"', id=70, version=4)[1]["error_code"] == 42205
    rest("DELETE", f"/mode/{path}")
    assert rest.register(f"{context}t", A_AND_B)[1]["id"] == 71  # the counter goes on after an import
    assert rest("PUT", f"/mode/{path}", {"mode": "IMPORT"})[1]["error_code"] == 42205
    assert rest("PUT", f"/mode/{path}?force=true", {"mode": "IMPORT"})[0] == 200


def test_contexts_have_subjects_ids_and_settings_of_their_own(rest: Rest, context: str) -> None:
    name = context[1:-1]
    subject = f"{context}orders"
    path = quote(subject, safe="")
    assert rest.register(subject, A)[1]["id"] == 1
    assert name in rest("GET", "/contexts")[1]
    assert rest("GET", f"/contexts/{name}/subjects") == (200, [subject])
    assert rest("GET", f"/contexts/{name}/subjects/orders/versions/1")[1]["subject"] == subject
    assert rest("GET", f"/contexts/{name}/schemas/ids/1")[1]["subject"] == subject
    assert rest("GET", f"/schemas/ids/1?subject={path}")[1]["version"] == 1
    assert rest("GET", f"/subjects?subjectPrefix={quote(context, safe='')}") == (200, [subject])
    assert rest("PUT", f"/contexts/{name}/config", {"compatibility": "NONE"})[0] == 200
    assert rest("GET", f"/config/{path}?defaultToGlobal=true") == (200, {"compatibilityLevel": "NONE"})
    assert rest("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
    assert rest("DELETE", f"/contexts/{name}")[1]["error_code"] == 42211
    rest("DELETE", f"/subjects/{path}")
    rest("DELETE", f"/subjects/{path}?permanent=true")
    assert rest("DELETE", f"/contexts/{name}") == (204, None)
    assert name not in rest("GET", "/contexts")[1]


def test_metadata_and_rules_are_kept_and_inherited(rest: Rest, subject: str) -> None:
    metadata = {"properties": {"owner": "ann"}, "tags": {"a": ["PII", "B"]}, "sensitive": ["s"]}
    rules = {"domainRules": [{"name": "r", "type": "CEL", "kind": "CONDITION", "mode": "WRITE"}]}
    made = rest.register(subject, A, metadata=metadata, ruleSet=rules)[1]
    assert made["metadata"] == metadata | {"tags": {"a": ["B", "PII"]}}
    assert made["ruleSet"]["domainRules"][0]["disabled"] is False
    latest = rest("GET", f"/subjects/{subject}/metadata?key=owner&value=ann")[1]
    assert latest["version"] == 1
    more = {
        "type": "record",
        "name": "R",
        "fields": [*A["fields"], {"name": "c", "type": "int", "default": 1}],
    }  # type: ignore[misc]
    assert rest.register(subject, more)[1]["metadata"] == made["metadata"]
    bad = {"domainRules": [{"name": "r", "type": "CEL", "mode": "UPGRADE"}]}
    assert rest.register(subject, A, ruleSet=bad)[1]["error_code"] == 42210


def test_a_config_gives_defaults_and_overrides(rest: Rest, subject: str) -> None:
    config = {
        "defaultMetadata": {"properties": {"team": "x", "level": "1"}},
        "overrideMetadata": {"properties": {"level": "9"}},
    }
    assert rest("PUT", f"/config/{subject}", config) == (200, config)
    made = rest.register(subject, A, metadata={"properties": {"level": "5"}})[1]
    assert made["metadata"]["properties"] == {"level": "9", "team": "x"}


def test_a_compatibility_group_is_compared_only_with_itself(rest: Rest, subject: str) -> None:
    rest("PUT", f"/config/{subject}", {"compatibilityGroup": "major"})
    rest.register(subject, A, metadata={"properties": {"major": "1"}})
    other = rest.register(subject, A_AND_B, metadata={"properties": {"major": "2"}})
    assert other[0] == 200
    refused = rest.register(subject, A_AND_B, metadata={"properties": {"major": "1"}})
    assert refused[1]["error_code"] == 40901


def test_an_alias_is_another_name_of_a_subject(rest: Rest, subject: str) -> None:
    rest("PUT", f"/config/{subject}-alias", {"alias": subject})
    rest.register(f"{subject}-alias", A)
    assert rest("GET", f"/subjects/{subject}/versions") == (200, [1])
    assert rest("GET", f"/subjects/{subject}-alias/versions/latest")[1]["subject"] == subject
    found = rest("GET", f"/schemas?subjectPrefix={subject}&aliases=true")[1]
    assert found[0]["aliases"] == [f"{subject}-alias"]


def test_the_server_names_itself(rest: Rest) -> None:
    assert rest("GET", "/") == (200, {})
    assert sorted(rest("GET", "/schemas/types")[1]) == ["AVRO", "JSON", "PROTOBUF"]
    clusters = rest("GET", "/v1/metadata/id")[1]["scope"]["clusters"]
    assert clusters["schema-registry-cluster"] == "schema-registry"
    assert clusters["kafka-cluster"]
    assert set(rest("GET", "/v1/metadata/version")[1]) == {"version", "commitId"}
