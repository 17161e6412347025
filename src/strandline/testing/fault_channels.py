"""The ways by which the faults of a broker are set: over the pipe to its process, or by a call on its loop."""

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
    """The broker does not run, or does not respond: its faults have ended with it."""


class PipeControl:
    """The test's end of the pipe to a broker's process. Threads take turns."""

    def __init__(self, channel: socket.socket) -> None:
        channel.settimeout(_SECONDS_MAX)
        self._channel = channel
        self._stream = channel.makefile("rwb")
        self._lock = threading.Lock()

    def do(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """Raises FaultError for a command that is refused, and BrokerGone."""
        with self._lock:
            try:
                self._stream.write(json.dumps(command).encode() + b"\n")
                self._stream.flush()
                line = self._stream.readline()
            except (OSError, ValueError) as error:  # ValueError: it is closed
                raise BrokerGone(f"the broker does not respond: {error}") from error
        if not line:
            raise BrokerGone("the broker has ended")
        return checked(json.loads(line))

    def close(self) -> None:
        with self._lock:
            try:
                self._stream.close()
            except OSError:
                pass  # what was not sent is for nobody
            finally:
                self._channel.close()


def checked(response: dict[str, Any]) -> dict[str, Any]:
    """A response without an error; FaultError with its text otherwise."""
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
        """The broker is about to end: what faults hold goes on."""
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
