"""The demo's Spark drivers: `strandline pipeline run` in a process that can be killed, and its events."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from demo_picture import Batch

# Nothing here takes so long, unless something is stuck.
SECONDS_MAX = 900


class Driver:
    """A process group of its own, which is what `kill -9` meets: Python and the JVM that it has started."""

    def __init__(
        self,
        number: int,
        spec: Path,
        environment: dict[str, str],
        log: Path,
        on_batch: Callable[[Driver], None],
    ) -> None:
        self.number = number
        self.is_started = False
        self.events: list[dict[str, Any]] = []  # of batches
        self._on_batch = on_batch
        self._log = log
        command = [sys.executable, "-m", "strandline.cli.main", "pipeline", "run", "--json", str(spec)]
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # a line that was cut off by the kill
            if event["event"] == "started":
                self.is_started = True
            if event["event"] == "batch":
                self.events.append(event)
                self._on_batch(self)

    def check(self) -> None:
        """Raises if it has ended by itself."""
        status = self._process.poll()
        if status is not None:
            raise RuntimeError(f"the pipeline ended with {status}:\n{self._log.read_text()[-3000:]}")

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()

    def stop(self) -> None:
        """Ends it after the batch that is under way, as `strandline pipeline stop` does."""
        self._process.terminate()
        if self._process.wait(SECONDS_MAX) != 0:
            self.check()
        self._reader.join()

    def end(self) -> None:
        if self._process.poll() is None:
            self.kill()

    def batches(self, began_wall: float) -> list[Batch]:
        """Its batches, in seconds since that time."""
        return [_batch(self.number, event, began_wall) for event in self.events]


def _batch(driver: int, event: dict[str, Any], began_wall: float) -> Batch:
    ended = datetime.fromisoformat(event["at"]).timestamp() - began_wall
    return Batch(
        number=event["batch"],
        driver=driver,
        began=ended - event["seconds"],
        ended=ended,
        records=sum(event["records"].values()),
    )
