"""This process, as the port `Process`: its limits, its signals, its end."""

from __future__ import annotations

import os
import resource
import signal
import sys
from typing import Final, NoReturn

# The exit code of a node that finds an invariant broken.
HALT_STATUS: Final = 70
# The limit where the system has none, and the limits that are tried where it refuses its own hard limit: macOS says
# that there is none and grants OPEN_MAX, 10,240.
_OPEN_FILES_MAX: Final = 1_048_576
_OPEN_FILES_TRIED: Final = (65_536, 10_240, 4_096, 1_024)


class RealProcess:
    def halt(self, reason: str) -> NoReturn:
        try:
            sys.stderr.write(f"strandline: halted: {reason}\n")
            sys.stderr.flush()
        finally:
            os._exit(HALT_STATUS)


def stop_signals() -> tuple[signal.Signals, ...]:
    """Returns the signals that ask this process to end in order. A hangup is one of them unless it is ignored, as under
    nohup."""
    asking = (signal.SIGTERM, signal.SIGINT)
    is_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return asking if is_ignored else (*asking, signal.SIGHUP)


def raise_open_file_limit() -> int:
    """Raises RLIMIT_NOFILE to its hard limit, or as far as the system lets it; returns the number of files that may be
    open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _OPEN_FILES_MAX
    highest = _OPEN_FILES_MAX if hard == resource.RLIM_INFINITY else hard
    for limit in (highest, *_OPEN_FILES_TRIED):
        if soft < limit <= highest:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            except (ValueError, OSError):
                continue
            return limit
    return soft
