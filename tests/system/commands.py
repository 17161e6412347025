"""The `strandline` command as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from strandline.node.launcher import embedded_settings

SECONDS_MAX = 60.0


def heed_interrupts() -> None:
    """For a new process: a test run in the background ignores SIGINT, and so would every process that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Command:
    """A running command, whose output is collected while it runs."""

    def __init__(
        self,
        arguments: Sequence[str],
        prefix: Sequence[str] = (),
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        module: str = "strandline",
    ) -> None:
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-m", module, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            start_new_session=True,
            preexec_fn=heed_interrupts,  # noqa: PLW1509  it only sets a signal
        )
        self.out: list[str] = []
        self.err: list[str] = []
        self._threads = [
            threading.Thread(target=self._collect, args=(self._process.stdout, self.out), daemon=True),
            threading.Thread(target=self._collect, args=(self._process.stderr, self.err), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @staticmethod
    def _collect(stream: object, into: list[str]) -> None:
        for line in stream:  # type: ignore[attr-defined]
            into.append(line.rstrip("\n"))

    def wait_for(self, text: str, *, in_err: bool = False) -> str:
        """Waits for the first line with this text, and returns it."""
        lines = self.err if in_err else self.out
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            for line in list(lines):
                if text in line:
                    return line
            if self._process.poll() is not None and not any(thread.is_alive() for thread in self._threads):
                break
            time.sleep(0.02)
        raise AssertionError(f"no {text!r} in {self.out + self.err}")

    def wait(self) -> int:
        status = self._process.wait(SECONDS_MAX)
        for thread in self._threads:
            thread.join(60)
        return status

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self) -> int:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Ends the process if it still runs, and closes its output."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self.wait()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


@contextmanager
def command(
    *arguments: str,
    prefix: Sequence[str] = (),
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    module: str = "strandline",
) -> Iterator[Command]:
    """`env` comes on top of this process's environment."""
    running = Command(arguments, prefix, cwd, env, module)
    try:
        yield running
    finally:
        running.kill()


def properties(path: Path, settings: Mapping[str, str]) -> str:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return str(path)


def one_node(data: Path, **settings: str) -> dict[str, str]:
    """Returns the settings of a small server.properties; keys have underscores in place of dots."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return embedded_settings(port=0, data=str(data), host="127.0.0.1") | given


def bootstrap_of(running: Command) -> str:
    """Waits until the command is ready, and returns the bootstrap address."""
    return running.wait_for("ready bootstrap.servers=").partition("=")[2]
