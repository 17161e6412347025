"""Acknowledges TCP segments from Spark at once, so that Spark does not wait before it sends the rest of a task.

Spark's JVM hands a task to a Python process in several small pieces, on a connection without TCP_NODELAY: it holds the
second piece back until the first is acknowledged (Nagle's algorithm), and the process, which has nothing to send yet,
acknowledges it 40 ms later (delayed acknowledgements). Every task of a Python source or sink waits so. The process can
avoid it: asking Linux for a quick acknowledgement sends one that is due. Linux does not stay in that mode, so the
process asks each time that it is about to wait for Spark.

Where Spark uses Unix sockets (spark.python.unix.domain.socket.enabled), and on other systems, there is nothing to do.
"""

from __future__ import annotations

import os
import socket
import stat
from functools import cache
from typing import Any

_TCP_QUICKACK = getattr(socket, "TCP_QUICKACK", None)


def acknowledge_now() -> None:
    """Acknowledges the bytes that have come from Spark; called while more of them are to come."""
    if _TCP_QUICKACK is None:
        return
    for connection in _connections():
        try:
            connection.setsockopt(socket.IPPROTO_TCP, _TCP_QUICKACK, 1)
        except OSError:
            continue  # The connection is closed.


class QuickAckOnArrival:
    """A part of a task that acknowledges the beginning of the task when it is unpickled, so that Spark sends the
    rest."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        acknowledge_now()


@cache
def _connections() -> list[socket.socket]:
    """Returns the connections that the process has when it gets its first task: none of ours exists yet."""
    connections = []
    for number in _open_files():
        try:
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            connection = socket.socket(fileno=os.dup(number))
        except OSError:
            continue
        if _is_connected(connection):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connections.append(connection)
        else:
            connection.close()
    return connections


def _open_files() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return []


def _is_connected(connection: socket.socket) -> bool:
    if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
        return False
    try:
        connection.getpeername()
    except OSError:
        return False
    return True
