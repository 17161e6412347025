"""Measures how long requests hold up the registry's loop: bombs and large schemas, in one process with a regular timer.

    python -m bench.registry_loop

CPU time of the process is measured, so that other work on the machine does not count.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from strandline.node.subprocess_call import call_in_subprocess
from strandline.node.workers import ThreadWorkers
from strandline.registry.http.app import RegistryApp
from strandline.registry.http.forwarding import HttpForwarder
from strandline.registry.service.registry import Registry
from strandline.registry.service.settings import RegistrySettings
from strandline.testing import running_broker

BEAT_SECONDS = 0.001
CHUNK_BYTES = 65_536


def requests() -> Iterator[tuple[str, bytes]]:
    yield "a small schema", _body('"string"')
    yield "a body nested 5,000 deep", b'{"schema":' + b'{"a":' * 5000 + b"1" + b"}" * 5001
    yield "JSON Schema nested 2,000 deep", _body('{"properties":{"a":' * 2000 + "{}" + "}}" * 2000, "JSON")
    yield "Avro nested 3,000 deep", _body('{"type":"array","items":' * 3000 + '"int"' + "}" * 3000)
    fields = [{"name": f"f{n}", "type": ["null", "string"], "default": None} for n in range(14_000)]
    yield "Avro of 0.9 MB", _body(json.dumps({"type": "record", "name": "B", "fields": fields}))
    properties = {f"p{n}": {"type": "string", "maxLength": n} for n in range(18_000)}
    yield "JSON Schema of 0.9 MB", _body(json.dumps({"type": "object", "properties": properties}), "JSON")
    lines = "".join(
        f"  string field_number_{n} = {n + 1 if n < 18_000 else n + 3_000};\n" for n in range(25_000)
    )
    yield "Protobuf of 0.9 MB", _body(f'syntax = "proto3";\nmessage M {{\n{lines}}}\n', "PROTOBUF")
    yield "a body of 3.9 MB, one text", b'{"schema":"' + b"x" * 3_900_000 + b'"}'
    yield "a body of 3.9 MB, numbers", b'{"schema":"","x":[' + b"1," * 1_900_000 + b"1]}"
    doubled: dict[str, Any] = {"a0": {"type": "string"}}
    for n in range(1, 25):
        doubled[f"a{n}"] = {"allOf": [{"$ref": f"#/definitions/a{n - 1}"}] * 2}
    yield (
        "$ref bomb, 2^24 leaves",
        _body(json.dumps({"definitions": doubled, "$ref": "#/definitions/a24"}), "JSON"),
    )
    yield "regular expression bomb", _body('{"type":"string","pattern":"(a{1,1000}){1,1000}"}', "JSON")
    for change in (0, 1):
        branches = [
            {
                "type": "object",
                "properties": {f"p{m}": {"type": "string", "maxLength": n + m + change} for m in range(5)},
            }
            for n in range(300)
        ]
        yield (
            f"oneOf of 300 objects, {'changed' if change else 'new'}",
            _body(json.dumps({"oneOf": branches}), "JSON"),
        )


def _body(text: str, type: str = "AVRO") -> bytes:
    return json.dumps({"schema": text, "schemaType": type}).encode()


async def measure(bootstrap: str) -> None:
    workers = ThreadWorkers(2)
    registry = Registry(
        RegistrySettings(client={"bootstrap.servers": bootstrap}, url="http://here"), call=call_in_subprocess
    )
    await registry.start()
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(0.001)
    app = RegistryApp(registry, workers, HttpForwarder(workers, 5))
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        last = time.process_time()
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            now = time.process_time()
            longest, last = max(longest, now - last), now

    bodies = list(requests())
    beating = asyncio.create_task(beat())
    print("| request | status | took | loop held up |\n| --- | ---: | ---: | ---: |")
    for name, body in bodies:
        subject = name.split(",")[0].replace(" ", "-").replace("$", "")
        await asyncio.sleep(0.01)
        longest, began = 0.0, time.perf_counter()
        status = await post(app, f"/subjects/{subject}/versions", body)
        await asyncio.sleep(0.01)
        print(
            f"| {name} | {status} | {time.perf_counter() - began:.2f} s | {longest * 1000:.1f} ms |",
            flush=True,
        )
    beating.cancel()
    await registry.stop()


async def post(app: RegistryApp, path: str, body: bytes) -> int:
    chunks = [body[at : at + CHUNK_BYTES] for at in range(0, len(body), CHUNK_BYTES)]
    status = 0

    async def receive() -> dict[str, Any]:
        chunk = chunks.pop(0)
        await asyncio.sleep(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    headers = [(b"content-type", b"application/json")]
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode()}
    await app(scope | {"query_string": b"", "headers": headers}, receive, send)
    return status


if __name__ == "__main__":
    with running_broker() as broker:
        asyncio.run(measure(broker.bootstrap))
