"""Measures TLS by our own filter, by uvloop's transport and, if it is installed, by aiofastnet: echo, bulk, handshakes.

    python -m bench.tls_transports [ROUNDS]

Server and client are two processes; the client is always our filter, so that only the server's side differs. Each round
runs every variant; the medians are printed. Figures are in docs/adr/0037.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import uvloop

from strandline.node.development_certificates import CertificateFiles, make_certificate
from strandline.node.network import TcpNetwork
from strandline.ports.network import Connection
from strandline.ports.tls import TlsSettings, TlsStore

ECHO_BYTES = 16 * 1024
ECHOES = 2000
BULK_BYTES = 64 * 1024 * 1024
HANDSHAKES = 200
PIECE = bytes(256 * 1024)


class EchoPeer:
    """Sends back the bytes that it gets; for eight bytes that begin with B it sends BULK_BYTES."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(256 * 1024))
        self._left = 0
        self.connection: Connection

    def connected(self, connection: Connection) -> None:
        self.connection = connection

    def buffer(self, size_hint: int = -1) -> memoryview:
        return self._buffer

    def received(self, size: int) -> None:
        if size == 8 and self._buffer[0] == ord("B"):
            self._left = BULK_BYTES
            self._pour()
        else:
            self.connection.send(bytes(self._buffer[:size]))

    def _pour(self) -> None:
        while self._left and self.connection.unsent_bytes < 1024 * 1024:
            self.connection.send(PIECE)
            self._left -= len(PIECE)

    def drained(self) -> None:
        self._pour()

    def lost(self, error: Exception | None) -> None:
        self._left = 0


class EchoProtocol(asyncio.BufferedProtocol):
    """Does the same on a loop's own transport."""

    def __init__(self) -> None:
        self._buffer = bytearray(256 * 1024)
        self._left = 0
        self._is_paused = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, size: int) -> None:
        if size == 8 and self._buffer[0] == ord("B"):
            self._left = BULK_BYTES
            self._pour()
        else:
            self._transport.write(bytes(self._buffer[:size]))

    def _pour(self) -> None:
        while self._left and not self._is_paused:
            self._transport.write(PIECE)
            self._left -= len(PIECE)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._pour()


def settings(files: CertificateFiles) -> TlsSettings:
    return TlsSettings(
        key_store=TlsStore(location=str(files.key_store)), trust_store=TlsStore(location=str(files.authority))
    )


def serve(kind: str, files: CertificateFiles, pipe: Pipe) -> None:
    async def run() -> None:
        if kind == "own filter":
            network = TcpNetwork()
            tls = network.tls(settings(files), is_server=True)
            listener: Any = await network.listen("127.0.0.1", 0, EchoPeer, tls)
            pipe.send(listener.port)
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(files.key_store)
            loop = asyncio.get_running_loop()
            if kind == "uvloop":
                server = await loop.create_server(EchoProtocol, "127.0.0.1", 0, ssl=context)
            else:
                import aiofastnet  # type: ignore[import-not-found]

                server = await aiofastnet.create_server(loop, EchoProtocol, "127.0.0.1", 0, ssl=context)
            pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.sleep(3600)

    uvloop.run(run())


class Caller:
    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(256 * 1024))
        self._waits_for = 0
        self._arrived: asyncio.Future[None] | None = None
        self.connection: Connection

    def connected(self, connection: Connection) -> None:
        self.connection = connection

    def buffer(self, size_hint: int = -1) -> memoryview:
        return self._buffer

    def received(self, size: int) -> None:
        self._waits_for -= size
        if self._waits_for <= 0 and self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    async def ask(self, message: bytes, size: int) -> None:
        self._waits_for = size
        self._arrived = asyncio.get_running_loop().create_future()
        self.connection.send(message)
        await self._arrived

    def drained(self) -> None:
        pass

    def lost(self, error: Exception | None) -> None:
        pass


async def measure(port: int, files: CertificateFiles) -> dict[str, float]:
    network = TcpNetwork()
    tls = network.tls(settings(files), is_server=False)

    async def connect() -> Caller:
        caller = Caller()
        await network.connect("127.0.0.1", port, caller, tls)
        return caller

    caller = await connect()
    message = bytes(ECHO_BYTES)
    await caller.ask(message, ECHO_BYTES)
    began = time.perf_counter()
    for _ in range(ECHOES):
        await caller.ask(message, ECHO_BYTES)
    echo_us = (time.perf_counter() - began) / ECHOES * 1e6
    began = time.perf_counter()
    await caller.ask(b"B" * 8, BULK_BYTES)
    bulk_mb_s = BULK_BYTES / 1e6 / (time.perf_counter() - began)
    began = time.perf_counter()
    for _ in range(HANDSHAKES):
        (await connect()).connection.abort()
    handshakes_s = HANDSHAKES / (time.perf_counter() - began)
    return {"16 kB echo, µs": echo_us, "bulk, MB/s": bulk_mb_s, "handshakes/s": handshakes_s}


def one(kind: str, files: CertificateFiles) -> dict[str, float]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(kind, files, theirs), daemon=True)
    process.start()
    try:
        return uvloop.run(measure(ours.recv(), files))
    finally:
        process.kill()
        process.join()


def main(rounds: int) -> None:
    kinds = ["own filter", "uvloop"]
    try:
        import aiofastnet  # noqa: F401

        kinds.append("aiofastnet")
    except ImportError:
        print("aiofastnet is not installed: left out")
    with tempfile.TemporaryDirectory() as home:
        files = make_certificate(Path(home), "server", ["127.0.0.1"])
        results: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
        for _ in range(rounds):
            for kind in kinds:
                results[kind].append(one(kind, files))
    median: Callable[[list[float]], float] = statistics.median
    for kind, found in results.items():
        cells = [f"{name} {median([each[name] for each in found]):.0f}" for name in found[0]]
        print(f"{kind:12} {' | '.join(cells)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
