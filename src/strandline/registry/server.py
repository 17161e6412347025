"""Runs one instance of the registry in this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from typing import Any, Final

import uvicorn

from strandline.base.waiting import all_ended
from strandline.node.subprocess_call import call_in_subprocess
from strandline.node.tls_contexts import TlsContext
from strandline.node.workers import ThreadWorkers
from strandline.registry.http.app import RegistryApp
from strandline.registry.http.forwarding import HttpForwarder
from strandline.registry.service.listener_settings import ListenerSettings
from strandline.registry.service.logins import ClusterLogins
from strandline.registry.service.registry import Registry
from strandline.registry.service.settings import RegistrySettings

_OPEN: Final = ListenerSettings()  # the default is plain HTTP without logins
_PARSING_THREADS: Final = 2
_FORWARDING_THREADS: Final = 8
_LOOK_SECONDS: Final = 1.0
_SWITCH_SECONDS: Final = 0.001  # after this time a thread that parses lets the loop run
_BACKLOG: Final = 2048


class RegistryStopped(Exception):
    """The registry cannot go on; the message says why."""


async def serve_registry(
    settings: RegistrySettings,
    listener: Any,
    on_ready: Callable[[Registry], None],
    access: ListenerSettings = _OPEN,
) -> None:
    """Serves on a bound socket until a signal comes. Raises RegistryStopped when the topic cannot be read any more."""
    parsing, forwarding = ThreadWorkers(_PARSING_THREADS), ThreadWorkers(_FORWARDING_THREADS)
    logins = None if access.realm is None else ClusterLogins(settings.client, access.realm)
    listens = None if access.tls is None else TlsContext(access.tls, is_server=True)
    connects = None if access.tls is None else TlsContext(access.tls, is_server=False)
    registry = Registry(settings, call=call_in_subprocess)
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        gc.disable()  # the schemas that are read at the start stay: looking for garbage in them would only take time
        await registry.start()
        gc.freeze()  # the collector does not look at them later either, which would stop the loop
        gc.enable()
        forwarder = HttpForwarder(
            forwarding, settings.forward_timeout_seconds, None if connects is None else connects.context
        )
        config = uvicorn.Config(
            RegistryApp(registry, parsing, forwarder, logins),
            http="httptools",
            loop="none",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            backlog=_BACKLOG,
            timeout_graceful_shutdown=5,
        )
        config.load()
        if listens is not None:
            config.ssl = listens.context
        server = uvicorn.Server(config)
        watching = asyncio.create_task(_watch(registry, server, on_ready))
        try:
            await server.serve(sockets=[listener])
        finally:
            watching.cancel()
            await all_ended(watching)
        if registry.failure:
            raise RegistryStopped(f"topic {settings.topic} cannot be read any more: {registry.failure}")
    finally:
        await registry.stop()
        parsing.let_go()
        forwarding.let_go()


async def _watch(registry: Registry, server: uvicorn.Server, on_ready: Callable[[Registry], None]) -> None:
    """Reports that the server listens, and stops it when the topic is gone."""
    while not server.started:
        await asyncio.sleep(0.01)
    on_ready(registry)
    while not registry.failure:
        await registry.changed(_LOOK_SECONDS)
    server.should_exit = True
