"""A schema registry in a process of its own, for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.node import launcher

READY_SECONDS_MAX = 60
STOP_SECONDS_MAX = 20


class RegistryProcess:
    """An instance of the registry beside a cluster. Clients need its `url`; it keeps its port when it is started
    again."""

    def __init__(self, bootstrap: str, log: Path, *arguments: str) -> None:
        """`arguments` are options of `strandline registry`."""
        self.url = ""
        self._arguments = ("--bootstrap-server", bootstrap, "--host", "127.0.0.1", "--quiet", *arguments)
        self._log = log
        self._port = "0"
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the registry is not running"
        return self._process.pid

    @property
    def log_text(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def start(self) -> None:
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Starts the process without waiting for it."""
        command = [sys.executable, "-m", "strandline.cli.main", "registry", "--port", self._port]
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [*command, *self._arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, launcher.STOPS_WITH_PARENT: str(os.getpid())},
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        limit = threading.Timer(READY_SECONDS_MAX, self._process.kill)
        limit.daemon = True  # a Ctrl-C must not leave an interpreter that waits for it
        limit.start()
        try:
            line = self._process.stdout.readline()
        finally:
            limit.cancel()
        if not line.startswith("ready"):
            self.kill()
            raise RuntimeError(f"the registry did not start:\n{self.log_text}")
        self.url = line.strip().partition("=")[2]
        self._port = self.url.rpartition(":")[2]

    def wait(self, seconds: float) -> int:
        """Waits until the registry has ended by itself, and returns its exit status."""
        assert self._process is not None, "the registry is not running"
        return self._process.wait(seconds)

    def stop(self) -> None:
        """Ends the registry in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the process as `kill -9` does."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise RuntimeError(f"the registry did not stop:\n{self.log_text}") from None
        finally:
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def running_registry(bootstrap: str, log: Path, *arguments: str) -> Iterator[RegistryProcess]:
    """Runs a registry beside a cluster, on a free port."""
    process = RegistryProcess(bootstrap, log, *arguments)
    process.start()
    try:
        yield process
    finally:
        process.stop()
