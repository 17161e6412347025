"""The real ports, for a registry client that has none from another client. They are found by name (docs/adr/0010)."""

from __future__ import annotations

from collections.abc import Coroutine
from importlib import import_module
from typing import Any, TypeVar

from strandline.ports.clock import Clock
from strandline.ports.tls import Tls, TlsSettings
from strandline.ports.web import Web

T = TypeVar("T")


def real_web() -> Web:
    web: Web = import_module("strandline.node.web").RealWeb()
    return web


def real_clock() -> Clock:
    clock: Clock = import_module("strandline.node.clock").RealClock()
    return clock


def real_tls(settings: TlsSettings) -> Tls:
    """Returns the TLS context of connections; raises TlsError for files that cannot be used."""
    tls: Tls = import_module("strandline.node.tls_contexts").TlsContext(settings, is_server=False)
    return tls


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of a coroutine, which runs on the loop thread of this process, to code that blocks."""
    result: T = import_module("strandline.node.client_thread").loop_thread().run(work)
    return result
