"""Measures the schema registry: reads by id beside a bare Starlette application, registrations, and a start with many
schemas.

    python -m bench.registry [--seconds 10] [--schemas 50000]

The load is made by this process, on the same machine. Results go to docs/benchmarks/registry.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from strandline.client.sync import Producer
from strandline.testing import RegistryProcess, running_broker, running_registry

CONNECTIONS = 100
WRITERS = 32
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "registry.md"
STARLETTE = """
import json, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
body = json.loads({body!r})
async def schema(request):
    return JSONResponse(body)
app = Starlette(routes=[Route("/schemas/ids/{{id:int}}", schema)])
uvicorn.run(app, port={port}, log_level="error", access_log=False, http="httptools", loop="uvloop")
"""


class Caller(asyncio.Protocol):
    """A connection that sends a request as soon as it has the response to the last one."""

    def __init__(self, requests: Any, times_s: list[float], end: float, done: asyncio.Future[None]) -> None:
        self._requests, self._times_s, self._end, self._done = requests, times_s, end, done
        self._received = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        if time.monotonic() >= self._end:
            self._transport.close()
            return
        self._began = time.perf_counter()
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r", 1)[0])
        if len(body) < length:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"{head!r} {body!r}")
        self._received = b""
        self._times_s.append(time.perf_counter() - self._began)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_result(None)


async def load(port: int, requests: Any, connections: int, seconds: float) -> list[float]:
    """Returns the time of each request, sorted."""
    loop = asyncio.get_running_loop()
    times_s: list[float] = []
    ends = []
    end = time.monotonic() + seconds
    for _ in range(connections):
        done = loop.create_future()
        ends.append(done)
        await loop.create_connection(
            lambda done=done: Caller(requests, times_s, end, done), "127.0.0.1", port
        )
    await asyncio.gather(*ends)
    return sorted(times_s)


def measured(port: int, requests: Any, connections: int, seconds: float) -> dict[str, float]:
    uvloop.run(load(port, requests, connections, 1.0))  # warm
    times_s = uvloop.run(load(port, requests, connections, seconds))
    return {
        "per_second": len(times_s) / seconds,
        "p50_ms": times_s[len(times_s) // 2] * 1000,
        "p99_ms": times_s[int(len(times_s) * 0.99)] * 1000,
    }


def gets(path: str) -> Any:
    request = (
        f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept: application/vnd.schemaregistry.v1+json\r\n\r\n".encode()
    )
    while True:
        yield request


def registrations(prefix: str) -> Any:
    """Registers new schemas, each under a new subject; returns the time of each request, sorted."""
    number = 0
    while True:
        number += 1
        schema = {"type": "record", "name": f"{prefix}{number}", "fields": [{"name": "a", "type": "string"}]}
        body = json.dumps({"schema": json.dumps(schema)}).encode()
        head = f"POST /subjects/{prefix}-{number}/versions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        yield head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def bare_starlette(body: str, seconds: float) -> dict[str, float]:
    port = 18_990
    process = subprocess.Popen([sys.executable, "-c", STARLETTE.format(body=body, port=port)])
    try:
        for _ in range(100):
            time.sleep(0.1)
            try:
                uvloop.run(load(port, gets("/schemas/ids/1"), 1, 0.01))
                break
            except OSError:
                continue
        return measured(port, gets("/schemas/ids/1"), CONNECTIONS, seconds)
    finally:
        process.terminate()
        process.wait()


def fill(bootstrap: str, topic: str, count: int) -> None:
    with Producer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
        for id in range(1, count + 1):
            subject = f"subject-{id}"
            key = {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}
            schema = {"type": "record", "name": f"R{id}", "fields": [{"name": "a", "type": "string"}]}
            value = {
                "subject": subject,
                "version": 1,
                "id": id,
                "schema": json.dumps(schema),
                "deleted": False,
            }
            producer.send(topic, json.dumps(value).encode(), json.dumps(key, separators=(",", ":")).encode())
        producer.flush()


def start_with_many(bootstrap: str, log: Path, count: int) -> dict[str, float]:
    """Returns the seconds until the registry is ready, and until its first registration, for which it becomes the
    writer."""
    names = ("--topic", "_many", "--group", "many")
    with running_registry(bootstrap, log, *names):
        pass
    fill(bootstrap, "_many", count)
    registry = RegistryProcess(bootstrap, log, *names)
    began = time.monotonic()
    registry.start()
    ready_s = time.monotonic() - began
    with open(f"/proc/{registry.pid}/stat") as stat:
        cpu_s = sum(int(ticks) for ticks in stat.read().rpartition(")")[2].split()[11:13]) / os.sysconf(
            "SC_CLK_TCK"
        )
    try:
        began = time.monotonic()
        uvloop.run(load(int(registry.url.rpartition(":")[2]), registrations("first"), 1, 0.1))
        with open(f"/proc/{registry.pid}/status") as status:
            memory = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        return {
            "ready_s": ready_s,
            "cpu_s": cpu_s,
            "first_s": time.monotonic() - began,
            "memory_mb": memory / 1024,
        }
    finally:
        registry.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--schemas", type=int, default=50_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, running_broker() as broker:
        log = Path(home) / "log"
        with running_registry(broker.bootstrap, log) as registry:
            port = int(registry.url.rpartition(":")[2])
            uvloop.run(load(port, registrations("one"), 1, 0.1))
            reads = measured(port, gets("/schemas/ids/1"), CONNECTIONS, options.seconds)
            uncached = measured(port, gets("/schemas/ids/1?subject="), CONNECTIONS, options.seconds)
            writes = measured(port, registrations("many"), WRITERS, options.seconds)
        starlette = bare_starlette('{"schema":"\\"string\\""}', options.seconds)
        start = start_with_many(broker.bootstrap, log, options.schemas)
    rows = {
        f"GET /schemas/ids/{{id}}, {CONNECTIONS} connections": reads,
        f"the same through all of the code (with a query), {CONNECTIONS} connections": uncached,
        f"a bare Starlette application that returns the same, {CONNECTIONS} connections": starlette,
        f"registrations of new schemas, {WRITERS} connections": writes,
    }
    load_average = os.getloadavg()[1]
    machine = f"{os.cpu_count()} cores ({platform.machine()}, load average {load_average:.1f})"
    many = (
        f"With {options.schemas:,} schemas in the topic an instance is ready after {start['ready_s']:.1f} s, of "
        f"which {start['cpu_s']:.1f} s are its own work on one core; the rest is the load of this machine. Its first "
        "registration, for which it takes the right to write and looks for leftovers, takes "
        f"{start['first_s']:.1f} s. It then has {start['memory_mb']:.0f} MB."
    )
    lines = [
        "# The schema registry",
        "",
        f"`python -m bench.registry` on {machine}. The broker, the registry, the load and other work",
        f"share them; {options.seconds:g} s for each row.",
        "",
        "| what | per second | median | p99 |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {name} | {row['per_second']:,.0f} | {row['p50_ms']:.1f} ms | {row['p99_ms']:.1f} ms |"
            for name, row in rows.items()
        ),
        "",
        many,
        "",
        "Published on 2 CPUs: Redpanda's registry 5,733 and Confluent's 4,528 reads a second.",
    ]
    PAGE.write_text("\n".join(lines) + "\n")
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
