"""Every bad request gets a specific error, nothing is stored, and other clients do not wait."""

from __future__ import annotations

import json
import threading
import time
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tests.registry.conftest import Rest

INT = {"schema": '"int"'}


def nested(depth: int) -> str:
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


def wide_json(count: int) -> str:
    alternatives = [{"type": "object", "properties": {f"p{n}": {"type": "string"}}} for n in range(count)]
    return json.dumps({"oneOf": alternatives})


RING = {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}
BOMBS = {
    "deep Avro": ("AVRO", nested(5000)),
    "deep JSON Schema": ("JSON", '{"not":' * 5000 + "{}" + "}" * 5000),
    "deep Protobuf": ("PROTOBUF", "message A {" * 5000 + "}" * 5000),
    "$ref to itself": ("JSON", '{"$ref":"#"}'),
    "a ring of $ref": ("JSON", json.dumps({"$ref": "#/definitions/a", "definitions": RING})),
    "remote $ref": ("JSON", '{"$ref":"http://127.0.0.1:1/schema.json"}'),
    "file $ref": ("JSON", '{"$ref":"file:///etc/passwd"}'),
    "import of a path": (
        "PROTOBUF",
        'syntax = "proto3"; import "../../../etc/passwd"; message A { B b = 1; }',
    ),
    "a bad pattern": ("JSON", '{"type":"string","pattern":"("}'),
    "NaN": ("JSON", '{"const":NaN}'),
    "not a schema": ("AVRO", "[" * 100_000),
    "nul": ("PROTOBUF", "\0"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_hostile_schema_is_refused(rest: Rest, subject: str, name: str) -> None:
    type, text = BOMBS[name]
    status, error = rest.register(subject, text, schemaType=type)
    if status == 200:  # a reference to itself says nothing, and is a schema all the same
        assert "$ref" in name
        status, error = rest("POST", f"/compatibility/subjects/{subject}/versions/1", {"schema": "{}"})
        assert status in (200, 422)
        return
    assert (status, error["error_code"]) == (422, 42201), error
    assert rest("GET", f"/subjects/{subject}/versions")[0] == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"null", 422),
        (b"{", 400),
        (b"[]", 400),
        (b"\xff", 400),
        (b'{"schema": {"type": "string"}}', 400),
        (b'{"schema": "\\"int\\"", "references": 5}', 400),
        (b'{"schema": "\\"int\\"", "version": "x"}', 400),
        (b'{"schema": "\\"int\\"", "metadata": []}', 400),
        (b"[" * 50_000, 400),
    ],
)
def test_a_body_of_another_form_is_refused(rest: Rest, subject: str, body: bytes, status: int) -> None:
    found = rest("POST", f"/subjects/{subject}/versions", body)
    assert (found[0], found[1]["error_code"]) == (status, status)


def test_types_methods_and_paths_that_there_are_not(rest: Rest, subject: str) -> None:
    path = f"/subjects/{subject}/versions"
    text = {"Content-Type": "text/plain"}
    assert rest("POST", path, INT, text) == (
        415,
        {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"},
    )
    assert rest("GET", "/subjects", headers={"Accept": "text/html"})[0] == 406
    assert rest("GET", "/subjects", headers={"Accept": "application/json"})[0] == 200
    assert rest("PATCH", path)[0] == 405
    assert rest("GET", "/nothing") == (404, {"error_code": 404, "message": "HTTP 404 Not Found"})
    assert rest("GET", "/schemas/ids/x")[0] == 404
    assert rest("GET", "/subjects?offset=x")[0] == 404
    assert rest("GET", "/subjects/" + "x" * 20_000)[0] == 414


def test_a_schema_that_no_record_can_hold_is_refused(rest: Rest, subject: str) -> None:
    fields = [{"name": f"f{number}", "type": "string", "doc": "x" * 1000} for number in range(1100)]
    status, error = rest.register(subject, {"type": "record", "name": "R", "fields": fields})
    assert (status, error["error_code"]) == (422, 42209)
    assert rest("POST", f"/subjects/{subject}/versions", b" " * (5 * 1024 * 1024))[0] == 413


def test_a_schema_that_is_slow_to_compare_delays_no_other_request(rest: Rest, subject: str) -> None:
    rest("PUT", f"/config/{subject}", {"compatibility": "FULL"})
    assert rest.register(subject, wide_json(60), schemaType="JSON")[0] == 200
    address = urlsplit(rest.url)
    slowest = 0.0
    done = threading.Event()

    def look() -> None:
        nonlocal slowest
        connection = HTTPConnection(address.hostname or "", address.port)
        while not done.is_set():
            began = time.monotonic()
            connection.request("GET", "/schemas/types")
            connection.getresponse().read()
            slowest = max(slowest, time.monotonic() - began)
        connection.close()

    looking = threading.Thread(target=look)
    looking.start()
    body = {"schema": wide_json(120), "schemaType": "JSON"}
    began = time.monotonic()
    status, _ = rest("POST", f"/compatibility/subjects/{subject}/versions", body)
    took = time.monotonic() - began
    done.set()
    looking.join()
    assert status == 200
    assert slowest < max(took / 2, 0.5), (
        f"the slowest request took {slowest:.3f} s, the comparison {took:.3f} s"
    )
