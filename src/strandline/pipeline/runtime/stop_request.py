"""Reads the state of a pipeline and stops it from another process, through its checkpoint."""

from __future__ import annotations

import time
from typing import Any, Final

from strandline.pipeline.runtime.state import UNKNOWN, StateDirectory
from strandline.pipeline.spec.spec import Spec

_POLL_SECONDS: Final = 0.1
_ENDED: Final = ("stopped", "finished", "failed")


def status(spec: Spec) -> dict[str, Any]:
    """Returns the state that was written last. `state` is running, stopping, stopped, finished, failed, died or `never
    ran`."""
    directory = StateDirectory(spec)
    is_running = directory.is_running()
    state = directory.read()
    if not state:
        return {"pipeline": spec.name, "state": "running" if is_running else "never ran"}
    if is_running and state["state"] == UNKNOWN:
        return {**state, "state": "running"}
    if not is_running and state["state"] not in _ENDED:
        return {**state, "state": "died"}
    return state


def stop(spec: Spec, seconds_max: float) -> bool | None:
    """Stops a pipeline. True if it has ended within the timeout, None if it was not running."""
    directory = StateDirectory(spec)
    if not directory.is_running():
        return None
    directory.request_stop()
    deadline = time.monotonic() + seconds_max
    while directory.is_running():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
