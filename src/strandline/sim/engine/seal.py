"""Keeps the real world out: while a simulation runs, the real clock, sockets, threads, files and chance all raise.

Deterministic code has no use for them: a caller has left the simulation, and its run could not be repeated.
They are sealed by replacing the attributes of their modules for as long as the loop runs, which reaches everyone who
calls them as `time.time()`. Who imported the function itself is out of reach; the tidy test forbids that import.
"""

from __future__ import annotations

import builtins
import logging
import os
import random
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Final, NoReturn


class SealBroken(AssertionError):
    """Simulated code reached for the real world."""


_SEALED: Final[tuple[tuple[Any, tuple[str, ...]], ...]] = (
    (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")),
    (socket, ("socketpair", "create_connection", "create_server", "getaddrinfo")),
    (socket.socket, ("__init__",)),
    (threading.Thread, ("start",)),
    (subprocess.Popen, ("__init__",)),
    (os, ("open", "urandom", "getrandom", "fork", "kill")),
    (builtins, ("open",)),
    (random, ("random", "randrange", "randint", "choice", "shuffle", "uniform", "getrandbits")),
    (random.SystemRandom, ("__init__",)),
    (uuid, ("uuid1", "uuid4")),
)


def refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: object, **keywords: object) -> NoReturn:
        raise SealBroken(f"{name} was called inside the simulation")

    return refuse


def _sealed_here(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Returns a function that refuses the thread of the simulation and does the original for other threads, which are
    no part of it."""
    refuse, simulation = refusal(name), get_ident()

    def call(*args: Any, **keywords: Any) -> Any:
        return refuse() if get_ident() == simulation else original(*args, **keywords)

    return call


@contextmanager
def sealed() -> Iterator[None]:
    originals: list[tuple[Any, str, Any]] = []
    # A line of the client's or the mirror's log would ask for the time.
    logs = [logging.getLogger(f"strandline.{name}") for name in ("client", "mirror")]
    levels_before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        for holder, names in _SEALED:
            for name in names:
                if hasattr(holder, name):  # not every platform has each
                    originals.append((holder, name, vars(holder).get(name)))
                    what = (
                        f"{holder.__module__}.{holder.__name__}"
                        if isinstance(holder, type)
                        else holder.__name__
                    )
                    setattr(holder, name, _sealed_here(getattr(holder, name), f"{what}.{name}"))
        yield
    finally:
        for log, level in zip(logs, levels_before, strict=True):
            log.setLevel(level)
        for holder, name, original in reversed(originals):
            if original is None:  # it was inherited
                delattr(holder, name)
            else:
                setattr(holder, name, original)
