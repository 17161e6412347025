"""Looks at a pipeline and stops it from another process, through the state in its checkpoint."""

from __future__ import annotations

import time
from typing import Any, Final

from strandline.pipeline.run.state import UNKNOWN, StateDirectory
from strandline.pipeline.spec.spec import Spec

_LOOK_SECONDS: Final = 0.1
_ENDED: Final = ("stopped", "finished", "failed")


def status(spec: Spec) -> dict[str, Any]:
    """The state that was written last. `state` is running, stopping, stopped, finished, failed, died or `never ran`."""
    directory = StateDirectory(spec)
    is_running = directory.is_running()
    found = directory.read()
    if not found:
        return {"pipeline": spec.name, "state": "running" if is_running else "never ran"}
    if is_running and found["state"] == UNKNOWN:
        return {**found, "state": "running"}
    if not is_running and found["state"] not in _ENDED:
        return {**found, "state": "died"}
    return found


def stop(spec: Spec, seconds_max: float) -> bool | None:
    """Whether it has ended within that time; None if it did not run."""
    directory = StateDirectory(spec)
    if not directory.is_running():
        return None
    directory.request_stop()
    deadline = time.monotonic() + seconds_max
    while directory.is_running():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
