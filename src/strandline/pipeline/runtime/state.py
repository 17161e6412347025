"""The state of a running pipeline in its checkpoint, for other processes: a lock, its progress, and a request to stop.

The operating system releases the lock when its holder dies in any way, so `is_running` is right even after `kill -9`.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from strandline.pipeline.spec.spec import Spec, local_path

_FOLDER: Final = "pipeline"
UNKNOWN: Final = "unknown"
_LOCK_ATTEMPTS: Final = 10
_LOCK_PAUSE_SECONDS: Final = 0.1


class NotLocalError(RuntimeError):
    """The checkpoint is not on this machine."""


class AlreadyRunningError(RuntimeError):
    """Another process runs the pipeline with this checkpoint."""


class StateDirectory:
    """The directory in a checkpoint that has the lock and the state."""

    def __init__(self, spec: Spec) -> None:
        checkpoint = local_path(spec.located(spec.checkpoint))
        if checkpoint is None:
            raise NotLocalError(
                f"the checkpoint {spec.checkpoint} is not on this machine, and a pipeline keeps its lock and its "
                "state there: use a directory"
            )
        self.path = checkpoint / _FOLDER
        self._name = spec.name

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock; raises AlreadyRunningError if another process has it."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("w") as file:
            # A `status` that runs at the same time holds the lock too, for a moment.
            for _ in range(_LOCK_ATTEMPTS):
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(_LOCK_PAUSE_SECONDS)
            else:
                raise AlreadyRunningError(
                    f"process {self.read().get('pid', 'unknown')} runs a pipeline with the checkpoint "
                    f"{self.path.parent}: stop it first, or give this one a checkpoint of its own"
                )
            (self.path / "stop").unlink(missing_ok=True)
            yield

    def is_running(self) -> bool:
        """True if a process holds the lock."""
        try:
            with (self.path / "lock").open("r") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def read(self) -> dict[str, Any]:
        """Returns the state that was written last; empty if there is none. `is_running` needs no such file, so it is
        right even if a power cut has damaged the file."""
        file = self.path / "state.json"
        state: Any = None
        try:
            state = json.loads(file.read_text())
        except FileNotFoundError:
            return {}
        except ValueError:  # not JSON, or not UTF-8
            pass
        if not isinstance(state, dict) or not {"pipeline", "state"} <= state.keys():
            error = f"{file} is damaged: the progress is not known here, but the checkpoint knows it"
            return {"pipeline": self._name, "state": UNKNOWN, "error": error}
        return state

    def write(self, state: Mapping[str, Any]) -> None:
        """Replaces the state atomically, for readers in other processes."""
        new = self.path / "state.json.new"
        new.write_text(json.dumps(state, indent=1))
        os.replace(new, self.path / "state.json")

    def request_stop(self) -> None:
        """Asks the process that runs the pipeline to stop."""
        (self.path / "stop").touch()

    def is_stop_requested(self) -> bool:
        """True if somebody has asked the pipeline to stop."""
        return (self.path / "stop").exists()
