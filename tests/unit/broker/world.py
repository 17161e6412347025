"""A whole broker on ports that a test controls: connections without sockets, workers with a gate, a clock by hand.

    @in_world(num_partitions="2")
    async def test_something(world: World) -> None:
        client = world.connect()
        response = await client.call(MetadataRequest(topics=None), 9)

The disk is real, in the test's own directory. A halt, or an exception that nobody expected, fails the test.
"""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, TypeVar

from strandline.base.buffers import Buffer
from strandline.broker.broker import Broker
from strandline.broker.broker_parts import Ports
from strandline.config import BrokerConfig
from strandline.node.disk import RealDisk
from strandline.node.launcher import embedded_settings
from strandline.ports.disk import File
from strandline.ports.network import Peer
from strandline.ports.workers import Walk, WalkInWorkers
from strandline.storage.directory import format_directory, is_formatted
from strandline.telemetry.events import Events
from strandline.wire.codec import decode_from, encode, encode_into
from strandline.wire.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from strandline.wire.schema import Request, Response
from tests.batches import NOW_MS
from tests.compat.wire import response_class
from tests.disks import QuickDisk

T = TypeVar("T")
WAIT_SECONDS_MAX = 30.0


class Halted(BaseException):
    """The node stopped itself."""


class RecordingProcess:
    def __init__(self) -> None:
        self.halted: list[str] = []

    def halt(self, reason: str) -> NoReturn:
        self.halted.append(reason)
        raise Halted(reason)


class HandClock:
    def __init__(self) -> None:
        self.ms = NOW_MS

    def wall_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


class SeededRandom:
    def __init__(self) -> None:
        self._random = random.Random(7)

    def uuid(self) -> bytes:
        return self._random.randbytes(16)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)


class GatedWorkers:
    """Work is done at once, or when the gate opens again."""

    def __init__(self) -> None:
        self._gate = asyncio.Event()
        self._gate.set()
        self.waiting = 0

    def run(self, work: Callable[..., T], *values: object) -> Awaitable[T]:
        return asyncio.ensure_future(self._run(work, *values))

    async def _run(self, work: Callable[..., T], *values: object) -> T:
        self.waiting += 1
        await asyncio.sleep(0)
        await self._gate.wait()
        self.waiting -= 1
        return work(*values)

    def walk(self, work: Callable[..., Iterator[T]], *values: object, is_heavy: bool = False) -> Walk[T]:
        return WalkInWorkers(self, work(*values))

    def hold(self) -> None:
        self._gate.clear()

    def go_on(self) -> None:
        self._gate.set()


class FakeListener:
    def __init__(self, port: int, accept: Callable[[], Peer]) -> None:
        self.port = port
        self.accept = accept
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


class FakeNetwork:
    def __init__(self) -> None:
        self.listeners: list[FakeListener] = []

    async def listen(
        self, host: str, port: int, accept: Callable[[], Peer], tls: object = None
    ) -> FakeListener:
        self.listeners.append(FakeListener(port or 20_000 + len(self.listeners), accept))
        return self.listeners[-1]

    async def connect(self, host: str, port: int, peer: Peer, tls: object = None) -> None:
        raise NotImplementedError


class Client:
    """A client, and the broker's side of its connection at once."""

    def __init__(self, world: World, peer: Peer, address: str) -> None:
        self._world = world
        self._peer = peer
        self.peer_address = address
        self.is_closed = False
        self.was_aborted = False
        self.is_paused = False
        self.reads = True  # whether the client takes what it is sent
        self.received = bytearray()
        self._unsent = bytearray()
        self._outbox = bytearray()
        self._correlation_id = 0
        self._arrival = asyncio.Event()
        peer.connected(self)

    # What the broker calls

    def send(self, data: Buffer) -> None:
        self._unsent += data
        if self.reads:
            self._take()

    def send_file(self, file: File, position: int, size: int) -> None:
        data = file.read_at(position, size)
        assert len(data) == size
        self.send(data)

    @property
    def unsent_bytes(self) -> int:
        return len(self._unsent)

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False
        asyncio.get_running_loop().call_soon(self._deliver)

    def close(self) -> None:
        """A real connection ends when all is sent, so with a peer that does not read it does not end."""
        if not self.is_closed and (self.was_aborted or not self._unsent):
            self.is_closed = True
            self._arrival.set()
            asyncio.get_running_loop().call_soon(self._peer.lost, None)

    def abort(self) -> None:
        self.was_aborted = True
        self.close()

    # What the test calls

    def disconnect(self) -> None:
        self.abort()

    def read_all(self) -> None:
        """Takes what the broker has sent so far, and from now on."""
        self.reads = True
        self._take()
        self._peer.drained()

    def _take(self) -> None:
        self.received += self._unsent
        self._unsent.clear()
        self._arrival.set()

    def give(self, data: bytes) -> None:
        """Sends bytes; they arrive as far as the broker reads."""
        self._outbox += data
        self._deliver()

    def _deliver(self) -> None:
        while self._outbox and not self.is_paused and not self.is_closed:
            room = self._peer.buffer()
            size = min(len(room), len(self._outbox))
            room[:size] = self._outbox[:size]
            del self._outbox[:size]
            try:
                self._peer.received(size)
            except Exception as error:
                self._world.errors.append(error)
                self.close()

    @property
    def undelivered(self) -> int:
        return len(self._outbox)

    def ask(self, request: Request, version: int) -> int:
        """Sends a request; the correlation id it got."""
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id="test",
        )
        frame = encode(header, request_header_version(request.FLEXIBLE, version))
        encode_into(request, version, frame)
        self.give(struct.pack(">i", len(frame)) + bytes(frame))
        return self._correlation_id

    async def frame(self) -> bytes:
        """Returns the next frame that arrives."""
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while True:
                if len(self.received) >= 4:
                    size = int.from_bytes(self.received[:4], "big")
                    if len(self.received) >= 4 + size:
                        frame = bytes(self.received[4 : 4 + size])
                        del self.received[: 4 + size]
                        return frame
                if self.is_closed:
                    raise ConnectionError("the broker closed the connection")
                self._arrival.clear()
                await self._arrival.wait()

    async def response(self, request: type[Request], version: int) -> tuple[int, Any]:
        """Returns correlation id and response of the next frame."""
        frame = await self.frame()
        header_version = response_header_version(request.API_KEY, request.FLEXIBLE, version)
        header, position = decode_from(ResponseHeader, header_version, frame, 0)
        message, end = decode_from(response_class(request), version, frame, position)
        assert end == len(frame), f"{len(frame) - end} bytes after the response"
        return header.correlation_id, message

    async def call(self, request: Request, version: int) -> Any:
        correlation_id = self.ask(request, version)
        got, message = await self.response(type(request), version)
        assert got == correlation_id
        assert isinstance(message, Response)
        return message

    async def is_silent(self, turns: int = 20) -> bool:
        """Returns True if no frame arrives for a while."""
        for _ in range(turns):
            await asyncio.sleep(0)
        return not self.received and not self.is_closed

    async def closed(self) -> bool:
        for _ in range(200):
            if self.is_closed:
                return True
            await asyncio.sleep(0)
        return False


class World:
    def __init__(self, home: Path, settings: dict[str, str], disk: RealDisk | None = None) -> None:
        self.home = home
        self.data = home / "data"
        self.settings = settings
        self.disk = disk or QuickDisk()
        self.clock = HandClock()
        self.random = SeededRandom()
        self.process = RecordingProcess()
        self.errors: list[BaseException] = []
        self.lines: list[str] = []
        self._addresses = 0
        self.broker: Broker

    async def __aenter__(self) -> World:
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(self._unexpected)
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.stop()
            self.check()
        else:
            self.crash()

    def _unexpected(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception") or RuntimeError(context["message"])
        if not isinstance(error, Halted):
            self.errors.append(error)

    def check(self) -> None:
        assert self.process.halted == [], self.process.halted[0][-1500:]
        assert self.errors == []

    async def start(self) -> None:
        given = embedded_settings(port=9092, data=str(self.data), host="127.0.0.1") | self.settings
        config = BrokerConfig(given)
        for path in config.log_dirs:
            if not is_formatted(self.disk, path):
                number = config.log_dirs.index(path)
                format_directory(
                    self.disk,
                    path,
                    cluster_id="c",
                    node_id=config.node_id,
                    directory_id=bytes((200 + number,)) * 16,
                )
        self.workers = GatedWorkers()
        self.network = FakeNetwork()
        events = Events(self.lines.append, self.clock.wall_ms, node=config.node_id)
        ports = Ports(
            disk=self.disk,
            clock=self.clock,
            random=self.random,
            workers=self.workers,
            network=self.network,  # type: ignore[arg-type]
            process=self.process,
            open_files_max=100,
        )
        self.broker = Broker(ports, config, events)
        await self.broker.start()

    async def stop(self) -> None:
        await self.broker.stop()

    def crash(self) -> None:
        """As `kill -9`: nothing is written any more, and the locks are free."""
        for task in asyncio.all_tasks(self.loop):
            if task is not asyncio.current_task():
                task.cancel()
        for directory in self.broker.replicas.directories:
            directory.release()
        self.broker.files.close()

    async def restart(self, *, clean: bool) -> None:
        if clean:
            await self.stop()
        else:
            self.crash()
            await asyncio.sleep(0)
        self.check()
        self.lines.clear()
        await self.start()

    def connect(self, listener: int = 0, host: str = "127.0.0.1") -> Client:
        self._addresses += 1
        opened = self.network.listeners[listener]
        assert opened.is_open
        return Client(self, opened.accept(), f"{host}:{40_000 + self._addresses}")

    async def connect_to_controller(self) -> Client:
        """Returns a client of the controller listener, which a node without others does not open."""
        listener = self.broker.config.controller_listeners[0]
        security = await self.broker._security_of(listener)
        self._addresses += 1
        accept = self.broker._acceptor(listener, security, is_controller=True)
        return Client(self, accept(), f"127.0.0.1:{40_000 + self._addresses}")

    def said(self, text: str) -> list[str]:
        return [line for line in self.lines if text in line]


Scenario = Callable[[World], Coroutine[Any, Any, None]]


def in_world(*, disk: Callable[[], RealDisk] = QuickDisk, **settings: str) -> Callable[[Scenario], Any]:
    """Runs an async test with a broker; settings by Kafka's names, with `_` for `.`."""
    given = {name.replace("_", "."): value for name, value in settings.items()}

    def wrap(scenario: Scenario) -> Any:
        def test(tmp_path: Path) -> None:
            async def main() -> None:
                async with World(tmp_path, given, disk()) as world:
                    await scenario(world)

            asyncio.run(main())

        test.__name__ = test.__qualname__ = scenario.__name__
        test.__doc__ = scenario.__doc__
        test.__module__ = scenario.__module__
        return test

    return wrap
