"""Connects commands with the `up --nodes` that runs a cluster, by a socket in its data directory and one line of JSON
in each direction. Only the owner of the directory can connect, as only the owner can send signals to the process.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

NAME: Final = ".control"
_LINE_BYTES_MAX: Final = 4096
# The largest text of an error. Its end is kept, because the last lines of a log say why a node did not start.
_ERROR_CHARACTERS_MAX: Final = 8192
_CONNECT_S: Final = 10.0
# A socket's path may have about a hundred characters. A path through a descriptor of its directory is always short
# enough.
_PATH_BYTES_MAX: Final = 100


class NoControlError(Exception):
    """No `up --nodes` runs in this directory."""


class ControlServer:
    """Handles requests in threads of its own until it is stopped."""

    def __init__(self, home: Path, actions: Mapping[str, Callable[[int], None]]) -> None:
        """`actions` are called with the number of a node. Their exceptions are sent to the client."""
        self._home = home
        self._actions = actions
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None

    def start(self) -> None:
        (self._home / NAME).unlink(
            missing_ok=True
        )  # the socket of a process that was killed; this process has locked the directory
        listener = socket.socket(socket.AF_UNIX)
        with _ShortPath(self._home) as path:
            listener.bind(path)
        os.chmod(self._home / NAME, 0o600)
        listener.listen()
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), name="control", daemon=True).start()

    def stop(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
            (self._home / NAME).unlink(missing_ok=True)

    def _accept(self, listener: socket.socket) -> None:
        while self._listener is listener:
            try:
                connection, _ = listener.accept()
            except OSError:  # the server was closed
                return
            threading.Thread(target=self._respond, args=(connection,), name="control", daemon=True).start()

    def _respond(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as stream:
            line = stream.readline(_LINE_BYTES_MAX)
            if not line:  # a client that only looked whether somebody listens
                return
            try:
                request = json.loads(line)
                action = self._actions[request["action"]]
                with self._lock:  # one request after the other
                    action(int(request["node"]))
                response: dict[str, Any] = {"done": True}
            except Exception as error:
                # The client is told about any error, and the cluster goes on.
                response = {"error": (f"{error}" or type(error).__name__)[-_ERROR_CHARACTERS_MAX:]}
            with suppress(BrokenPipeError, ConnectionResetError):  # the client has ended meanwhile
                stream.write(json.dumps(response).encode() + b"\n")
                stream.flush()


def ask(home: Path, action: str, node: int, timeout_s: float) -> None:
    """Sends an action to the `up` that runs in a directory. Raises NoControlError, or RuntimeError with the reason of
    `up`."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        try:
            with _ShortPath(home) as path:
                connection.connect(path)
        except OSError as error:
            raise NoControlError(f"no `strandline up --nodes` runs in {home}") from error
        try:
            connection.sendall(json.dumps({"action": action, "node": node}).encode() + b"\n")
            with connection.makefile("rb") as stream:
                line = stream.readline(_LINE_BYTES_MAX * 16)
        except TimeoutError as error:
            raise RuntimeError(f"node {node}: `up` did not finish it within {timeout_s:g} s") from error
        except (BrokenPipeError, ConnectionResetError):
            line = b""
    # A line without its end was cut short by the death of `up`.
    response = json.loads(line) if line.endswith(b"\n") else {"error": "`up` ended before it was done"}
    if "error" in response:
        raise RuntimeError(response["error"])


def is_there(home: Path) -> bool:
    """True if an `up` runs in a directory and is not stopping."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_CONNECT_S)
        try:
            with _ShortPath(home) as path:
                connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except (TimeoutError, BlockingIOError):  # it is paused, or busy
            return True
    return True


class _ShortPath:
    """A path of the socket that is short enough for the operating system."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._descriptor: int | None = None

    def __enter__(self) -> str:
        path = str(self._home / NAME)
        if len(path.encode()) <= _PATH_BYTES_MAX:
            return path
        self._descriptor = os.open(self._home, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._descriptor}/{NAME}"

    def __exit__(self, *error: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
