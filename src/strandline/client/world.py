"""The world of a client: a network, clocks, chance and threads for heavy work, all of them ports.

`world=` gives a client its world; the simulator does that. A client without one gets the real world, which lives in
`node`, a package above this one: it is looked up by name when a client starts, so that nothing here depends on it
(docs/adr/0010).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from strandline.ports.clock import Clock
from strandline.ports.network import Network
from strandline.ports.random import Random
from strandline.ports.web import Web
from strandline.ports.workers import Workers

_REAL_WORLD: Final = "strandline.node.client_world"
_LOOP_THREAD: Final = "strandline.node.client_thread"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientWorld:
    """The ports of one client. `close` frees the resources of this world alone, such as its threads."""

    network: Network
    clock: Clock
    random: Random
    workers: Workers
    web: Web | None = None  # for tokens of an identity provider
    close: Callable[[], None] = lambda: None


def real_world() -> ClientWorld:
    """Returns the sockets, clocks and threads of this machine, for the running loop."""
    world = import_module(_REAL_WORLD).client_world()
    assert isinstance(world, ClientWorld)
    return world


def loop_thread() -> Any:
    """Returns the thread with a loop of its own on which blocking clients of this process run."""
    return import_module(_LOOP_THREAD).loop_thread()
