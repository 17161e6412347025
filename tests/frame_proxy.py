"""A proxy between clients and one broker that knows Kafka's frames and does to requests what bad networks do.

| fault         | what becomes of a request                                                                |
| DUPLICATE     | the broker gets it twice in a row; the second answer is kept from the client             |
| LOSE_ANSWER   | the broker does the work, and the connection breaks when the answer has come this far    |
| TEAR          | the broker gets the first half of it, and the connection breaks                          |
| TEAR_ANSWER   | the client gets the first half of the answer, and the connection breaks                  |
| DELAY         | the connection breaks; the request comes to the broker later, on a connection of its own |

A late request is delivered when the broker has answered the next request of the API that `until` names, and before
the client hears of that answer: so the order of events does not depend on time. Only the first fault that waits can
strike; the others wait for their turn.

`hold` keeps answers of one API from one client until `release`, and everything after them on the same connection.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

_WAIT_S_MAX: Final = 60.0
_HEADER: Final = struct.Struct(">hhi")  # API key, version, correlation id


class Act(Enum):
    DUPLICATE = auto()
    LOSE_ANSWER = auto()
    TEAR = auto()
    TEAR_ANSWER = auto()
    DELAY = auto()


@dataclass(slots=True, kw_only=True, eq=False)
class Fault:
    act: Act
    api_key: int
    until: int = -1  # for DELAY: the API whose next answer brings the request to the broker
    version: int = -1  # of the request that was struck
    has_struck: bool = False
    is_over: bool = False  # for DELAY: it was delivered too
    # Answers that the client was not given, without their length: header and body.
    hidden_answers: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Expected:
    """An answer that the broker owes on one connection, and what is done with it."""

    api_key: int
    client_id: bytes
    fault: Fault | None = None
    is_hidden: bool = False


class FrameProxy:
    """Listens on a free port of loopback, on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._target_port = 0
        self._waiting: deque[Fault] = deque()
        self._late: list[tuple[Fault, bytes]] = []
        self._held: tuple[int, bytes] | None = None
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_WAIT_S_MAX)

    def forward_to(self, port: int) -> None:
        self._target_port = port

    def inject(self, *faults: Fault) -> None:
        self._loop.call_soon_threadsafe(self._waiting.extend, faults)

    def hold(self, api_key: int, client_id: str) -> None:
        """Keeps the answers of an API from clients whose id begins so."""
        self._held = (api_key, client_id.encode())

    def release(self) -> None:
        self._held = None

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_WAIT_S_MAX)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_WAIT_S_MAX)
        self._loop.close()

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            broker, to_broker = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            to_client.close()
            return
        expected: deque[_Expected] = deque()
        pumps = [
            asyncio.ensure_future(self._pass_requests(client, to_broker, expected)),
            asyncio.ensure_future(self._pass_answers(broker, to_client, expected)),
        ]
        try:
            # Whichever ends first breaks both connections.
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            to_broker.close()
            to_client.close()

    async def _pass_requests(
        self, client: asyncio.StreamReader, to_broker: asyncio.StreamWriter, expected: deque[_Expected]
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _read_frame(client)
                api_key, version, _ = _HEADER.unpack_from(frame)
                fault = self._strike(api_key, version)
                if fault is not None and fault.act is Act.TEAR:
                    to_broker.write(_framed(frame)[: 4 + len(frame) // 2])
                    await to_broker.drain()
                    return
                if fault is not None and fault.act is Act.DELAY:
                    self._late.append((fault, frame))
                    return
                client_id = frame[10 : 10 + max(int.from_bytes(frame[8:10], "big", signed=True), 0)]
                expected.append(_Expected(api_key, client_id, fault))
                to_broker.write(_framed(frame))
                if fault is not None and fault.act is Act.DUPLICATE:
                    expected.append(_Expected(api_key, client_id, fault, is_hidden=True))
                    to_broker.write(_framed(frame))
                await to_broker.drain()

    def _strike(self, api_key: int, version: int) -> Fault | None:
        if not self._waiting or self._waiting[0].api_key != api_key:
            return None
        fault = self._waiting.popleft()
        fault.has_struck, fault.version = True, version
        return fault

    async def _pass_answers(
        self, broker: asyncio.StreamReader, to_client: asyncio.StreamWriter, expected: deque[_Expected]
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _read_frame(broker)
                due = expected.popleft()
                while self._is_held(due):
                    await asyncio.sleep(0.01)
                act = None if due.fault is None else due.fault.act
                if due.fault is not None and (due.is_hidden or act is Act.LOSE_ANSWER):
                    due.fault.hidden_answers.append(frame)
                    if act is Act.LOSE_ANSWER:
                        return
                    continue
                if act is Act.TEAR_ANSWER:
                    to_client.write(_framed(frame)[: 4 + len(frame) // 2])
                    await to_client.drain()
                    return
                await self._deliver_late(due.api_key)
                to_client.write(_framed(frame))
                await to_client.drain()

    def _is_held(self, due: _Expected) -> bool:
        if self._held is None:
            return False
        api_key, client_id = self._held
        return due.api_key == api_key and due.client_id.startswith(client_id)

    async def _deliver_late(self, answered_key: int) -> None:
        for each in [late for late in self._late if late[0].until == answered_key]:
            self._late.remove(each)
            fault, frame = each
            broker, to_broker = await asyncio.open_connection("127.0.0.1", self._target_port)
            to_broker.write(_framed(frame))
            fault.hidden_answers.append(await _read_frame(broker))
            fault.is_over = True
            to_broker.close()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def _framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame
