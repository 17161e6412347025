"""Sends commands about faults to a broker: over the pipe to its process, or by a call on its loop."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Mapping
from typing import Any, Final

from strandline.node.faults.control import FaultControl
from strandline.node.faults.rule import FaultError

_SECONDS_MAX: Final = 30.0


class BrokerGone(RuntimeError):
    """The broker does not run, or does not respond: it has no faults any more."""


class PipeControl:
    """The test's end of the pipe to a broker's process. Several threads may use it, one after another."""

    def __init__(self, channel: socket.socket, seconds_max: float = _SECONDS_MAX) -> None:
        channel.settimeout(seconds_max)
        self._channel = channel
        self._received = bytearray()
        self._late = 0  # responses to come that no caller waits for any more
        self._lock = threading.Lock()

    def do(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the response to a command. Raises FaultError if it is refused, and BrokerGone."""
        with self._lock:
            try:
                self._channel.sendall(json.dumps(command).encode() + b"\n")
                line = self._read_line()
                while line and self._late:
                    self._late -= 1
                    line = self._read_line()
            except TimeoutError as error:
                self._late += 1
                raise BrokerGone(
                    f"the broker did not respond within {self._channel.gettimeout():g} s"
                ) from error
            except OSError as error:
                raise BrokerGone(f"the broker does not respond: {error}") from error
        if not line:
            raise BrokerGone("the broker has ended")
        return checked(json.loads(line))

    def _read_line(self) -> bytes:
        """Returns the next line; empty if the broker has closed its end."""
        while (end := self._received.find(b"\n")) < 0:
            data = self._channel.recv(65536)
            if not data:
                return b""
            self._received += data
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def close(self) -> None:
        with self._lock:
            self._channel.close()


def checked(response: dict[str, Any]) -> dict[str, Any]:
    """Returns the response, or raises the error that it has as FaultError."""
    if "error" in response:
        raise FaultError(response["error"])
    return response


class LoopControl:
    """Calls a broker that runs on a loop of this process, from that loop or from another thread."""

    def __init__(self, control: FaultControl, loop: asyncio.AbstractEventLoop) -> None:
        self._control = control
        self._loop = loop
        self._is_ended = False

    def end(self) -> None:
        """Clears all faults before the broker ends, so that requests at barriers go on."""
        self._control.requests.clear_all()
        self._is_ended = True

    def do(self, command: Mapping[str, Any]) -> dict[str, Any]:
        if self._is_ended:
            raise BrokerGone("the broker has ended")
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            return self._control.do(command)

        async def call() -> dict[str, Any]:
            return self._control.do(command)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(_SECONDS_MAX)
