"""This process."""

from __future__ import annotations

import os
import resource
import sys
from typing import Final, NoReturn

# What a node ends with when an invariant does not hold.
HALT_STATUS: Final = 70


class RealProcess:
    def halt(self, reason: str) -> NoReturn:
        try:
            sys.stderr.write(f"strandline: halted: {reason}\n")
            sys.stderr.flush()
        finally:
            os._exit(HALT_STATUS)


def raise_open_file_limit() -> int:
    """Raises RLIMIT_NOFILE to its hard limit; the number of files that may be open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = 1_048_576
    if soft < hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):
            return soft
    return hard
