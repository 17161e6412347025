"""Work in another process, step by step: a child that is started for it and ends with it.

The parent sends the work and its values, then a byte for each step; the child responds to each with a pickled value.
When its input ends, because the parent is done with it or dead, the child ends too. Only this program writes to either
end of the pipes.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from struct import Struct
from typing import IO, Any, Final, Generic, TypeVar

from strandline.ports.workers import Workers, WorkLost

T = TypeVar("T")

_SIZE: Final = Struct(">I")
_NEXT: Final = b"\x01"
_VALUE, _END, _RAISED = range(3)
# Requests of clients go first where the processors are busy; a tenth of one is left for this work even then.
_NICENESS: Final = 10


class SubprocessWalk(Generic[T]):
    """The values of a generator that runs in a child process."""

    def __init__(
        self, workers: Workers, work: Callable[..., Iterator[T]], values: tuple[object, ...]
    ) -> None:
        self._workers = workers
        self._work = pickle.dumps((work, values))
        self._child: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def next(self) -> Awaitable[T | None]:
        return self._workers.run(self.step)

    def close(self) -> None:
        self._is_closed = True
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            _wait_for_end(child)

    def step(self) -> T | None:
        """Returns the next value, without leaving this thread."""
        if self._is_closed:
            return None
        if self._child is None:
            try:
                self._child = _start()
            except OSError as error:
                raise WorkLost(
                    f"the process that was to do this work could not be started: {error}"
                ) from error
            message = _SIZE.pack(len(self._work)) + self._work
        else:
            message = b""
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(message)
            child.stdin.write(_NEXT)
            child.stdin.flush()
            response = _receive(child.stdout)
        except (OSError, ValueError):
            response = None
        if response is None:
            raise WorkLost(f"the process that was to do this work ended with {_wait_for_end(child)}")
        kind, value = pickle.loads(response)
        if kind == _VALUE:
            return value  # type: ignore[no-any-return]
        self._child = None
        _wait_for_end(child)
        if kind == _RAISED:
            raise value
        return None


def _start() -> subprocess.Popen[bytes]:
    # The child imports the same modules as this process, from the same places.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )


def _wait_for_end(child: subprocess.Popen[bytes]) -> int:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was to be flushed has no reader
                pipe.close()
    return child.wait()


def _send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(_SIZE.pack(len(message)) + message)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    size = _SIZE.unpack(head)[0]
    message = pipe.read(size)
    return message if len(message) == size else None


def _work_for_parent(requests: IO[bytes], responses: IO[bytes]) -> None:
    message = _receive(requests)
    if message is None:
        return
    work, values = pickle.loads(message)
    steps: Iterator[Any] | None = None
    while requests.read(1) == _NEXT:
        response: tuple[int, object]
        try:
            if steps is None:
                steps = work(*values)
            response = (_VALUE, next(steps))
        except StopIteration:
            response = (_END, None)
        except Exception as error:
            response = (_RAISED, error)
        _send(responses, pickle.dumps(response))


if __name__ == "__main__":
    os.nice(_NICENESS)
    _work_for_parent(sys.stdin.buffer, sys.stdout.buffer)
