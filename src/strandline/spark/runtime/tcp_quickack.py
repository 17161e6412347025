"""Has what Spark and a Python process of its send each other arrive at once.

Spark's JVM hands a task to such a process in several small pieces, on a connection without TCP_NODELAY: it keeps the
second piece back until the first is acknowledged (Nagle's algorithm), and the process, which has nothing to answer yet,
acknowledges it 40 ms later (delayed acknowledgements). Every task of a Python source or sink waits so. The process can
do something about it: to ask Linux for a quick acknowledgement sends one that is due. Linux does not stay in that mode,
so that it is asked each time the process is about to wait for Spark.

Where Spark uses Unix sockets (spark.python.unix.domain.socket.enabled) there is nothing to do, nor on other systems.
"""

from __future__ import annotations

import os
import socket
import stat
from functools import cache
from typing import Any

_QUICK = getattr(socket, "TCP_QUICKACK", None)


def acknowledge_now() -> None:
    """What has come from Spark. Called when something is to come still."""
    if _QUICK is None:
        return
    for connection in _connections():
        try:
            connection.setsockopt(socket.IPPROTO_TCP, _QUICK, 1)
        except OSError:
            continue  # it is closed


class AcknowledgedOnArrival:
    """What is part of a task: when it is there, the task's beginning is acknowledged, and Spark sends the rest."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        acknowledge_now()


@cache
def _connections() -> list[socket.socket]:
    """Those that the process has when it gets its first task: there is none of ours yet."""
    found = []
    for number in _open_files():
        try:
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            each = socket.socket(fileno=os.dup(number))
        except OSError:
            continue
        if _is_connected(each):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            found.append(each)
        else:
            each.close()
    return found


def _open_files() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return []


def _is_connected(each: socket.socket) -> bool:
    if each.family not in (socket.AF_INET, socket.AF_INET6) or each.type != socket.SOCK_STREAM:
        return False
    try:
        each.getpeername()
    except OSError:
        return False
    return True
