"""Nodes that `strandline up --nodes` has started."""

from __future__ import annotations

import os
from pathlib import Path


def up(*options: str) -> tuple[str, ...]:
    return ("up", "--nodes", "3", "--port", "0", *options)


def value_of(line: str) -> str:
    return line.split(maxsplit=1)[1]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
