"""Puts a real node together: formats what is empty, starts the broker on the real ports, stops it on a signal."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from strandline.broker.broker import Broker
from strandline.broker.broker_parts import Ports
from strandline.broker.security.start_checks import check_security
from strandline.config import BrokerConfig
from strandline.config.addresses import is_loopback
from strandline.node.clock import RealClock
from strandline.node.directories import (
    check_directories,
    format_if_empty,
    only_log_directory,
    unformatted_directories,
)
from strandline.node.disk import RealDisk
from strandline.node.network import BACKLOG, TcpNetwork, check_address
from strandline.node.process import RealProcess, raise_open_file_limit, stop_signals
from strandline.node.random import RealRandom
from strandline.node.web import RealWeb
from strandline.node.workers import ThreadWorkers
from strandline.ports.clock import Clock
from strandline.ports.process import Process
from strandline.telemetry.events import Events
from strandline.wire.kernel import NOTE as KERNEL_NOTE

if TYPE_CHECKING:
    from strandline.node.faults.control import FaultControl
    from strandline.node.faults.http_api import FaultsApi
    from strandline.node.faults.links import CutLinks
    from strandline.node.metrics_server import MetricsServer

METRICS_PORT = "strandline.metrics.port"
# Hosts that mean all addresses of a machine: nobody can connect to those.
EVERY_ADDRESS = ("0.0.0.0", "::", "")
_REPLICAS_BY_DEFAULT = "3"  # of the internal topics, in Kafka
# Files that are not logs: sockets, indexes being mapped, and some room.
_OTHER_FILES_SHARE = 4
# The id of the process that started this node; set if the node must not outlive that process.
STOPS_WITH_PARENT = "STRANDLINE_STOPS_WITH_PARENT"
_PARENT_CHECK_SECONDS = 0.5
# The number of a socket over which the process that started this one sets faults.
CONTROL_FD = "STRANDLINE_CONTROL_FD"
# A list of cuts in JSON, as commands of `node.faults.control`: links that are cut when this node starts.
CUT_LINKS = "STRANDLINE_CUT_LINKS"


def embedded_settings(
    *,
    port: int,
    data: str,
    host: str = "localhost",
    advertise: str | None = None,
    given: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Returns the settings of `strandline up`: one node in both roles, reachable from this machine; `given` overrides
    them.

    `advertise` is the host that clients are told to connect to, if it is not `host`. Raises UnusableDirectory for a
    path that the settings cannot name.
    """
    given = given or {}
    # Only this node itself connects to its controller.
    own = "localhost" if host in EVERY_ADDRESS or advertise else host
    # The id by either of its names: this node is the only voter, whatever its id.
    node_id = given.get("node.id") or given.get("broker.id") or "1"
    controller = f"CONTROLLER://{_bracketed(own)}:0"
    return {
        "process.roles": "broker,controller",
        "node.id": node_id,
        "listeners": f"PLAINTEXT://{_bracketed(host)}:{port},{controller}",
        "advertised.listeners": f"PLAINTEXT://{_bracketed(advertise or host)}:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{node_id}@{_bracketed(own)}:1",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
        "log.dirs": only_log_directory(data),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        **_for_own_listeners(given, controller),
    }


def _for_own_listeners(given: Mapping[str, str], controller: str) -> dict[str, str]:
    """Completes settings that name listeners of their own: the controller's is added, and the first of the others is
    advertised and used between brokers, unless the settings say otherwise."""
    listeners = [each.strip() for each in given.get("listeners", "").split(",") if each.strip()]
    decided = {"listener.security.protocol.map", "controller.listener.names", "process.roles"}
    if not listeners or decided & given.keys():
        return dict(given)
    controllers = [each for each in listeners if each.startswith("CONTROLLER:")]
    own = [each for each in listeners if each not in controllers]
    added = {"listeners": ",".join([*own, *(controllers or [controller])])}
    if own and "advertised.listeners" not in given:
        added["advertised.listeners"] = ",".join(own)
    if own and not given.keys() & {"inter.broker.listener.name", "security.inter.broker.protocol"}:
        added["inter.broker.listener.name"] = own[0].partition(":")[0]
    return {**given, **added}


def _bracketed(host: str) -> str:
    """Returns a host as it stands before a port: an IPv6 address is in brackets."""
    return f"[{host}]" if ":" in host else host


def open_to_others(config: BrokerConfig) -> list[str]:
    """Returns the listeners that other machines reach and on which everybody may do everything."""
    if config.optional_text("authorizer.class.name"):
        return []
    return [
        f"{listener.name}://{_bracketed(listener.host)}:{listener.port}"
        for listener in config.broker_listeners
        if not is_loopback(listener.host)
    ]


def fit_to_nodes(settings: dict[str, str], nodes: int) -> list[str]:
    """Lowers settings that ask for more replicas than there are nodes; returns a note about each."""
    said = []
    for key in ("offsets.topic.replication.factor", "transaction.state.log.replication.factor"):
        factor = settings.get(key) or _REPLICAS_BY_DEFAULT
        if factor.isdigit() and int(factor) > nodes:
            settings[key] = str(nodes)
            said.append(
                f"{key} is {nodes}, not {factor}: there {'is one node' if nodes == 1 else f'are {nodes} nodes'}"
            )
    return said


def _network(config: BrokerConfig) -> TcpNetwork:
    return TcpNetwork(
        config.int("socket.send.buffer.bytes"),
        _where_set(config, "socket.receive.buffer.bytes", -1),
        _where_set(config, "socket.listen.backlog.size", BACKLOG),
    )


def _replica_network(config: BrokerConfig) -> TcpNetwork:
    return TcpNetwork(own_receive_buffer_bytes=_where_set(config, "replica.socket.receive.buffer.bytes", -1))


def _switched_disk() -> RealDisk:
    from strandline.node.faults.disk import SwitchedDisk

    return SwitchedDisk()


def _where_set(config: BrokerConfig, key: str, otherwise: int) -> int:
    """Returns the setting if it is set, and `otherwise` if not: Kafka's default for receiving would hold back large
    requests, and its queue of 50 connections is short for many clients."""
    return config.int(key) if key in config.static else otherwise


class RunningNode:
    """A broker on this process's loop."""

    def __init__(
        self,
        config: BrokerConfig,
        events: Events,
        process: Process | None = None,
        *,
        has_faults: bool = False,
        faults_port: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`process` is what ends when the broker's state cannot be trusted; without it, this whole process.

        With `has_faults` a test can set faults, by `fault_control`; with `faults_port` over HTTP too, from this
        machine. `clock` is one that a test moves.
        """
        check_security(config)
        self._workers = ThreadWorkers()
        limit = raise_open_file_limit()
        self.disk = _switched_disk() if has_faults or faults_port is not None else RealDisk()
        self.clock = clock or RealClock()
        self.networks = (_network(config), _replica_network(config))
        ports = Ports(
            disk=self.disk,
            clock=self.clock,
            random=RealRandom(),
            workers=self._workers,
            network=self.networks[0],
            replica_network=self.networks[1],
            process=process or RealProcess(),
            open_files_max=max(64, limit - limit // _OTHER_FILES_SHARE),
            web=RealWeb(),
        )
        self.broker = Broker(ports, config, events)
        self._config = config
        self._events = events
        self._metrics: MetricsServer | None = None
        self._faults_port = faults_port
        self._faults: FaultsApi | None = None

    @cached_property
    def links(self) -> CutLinks:
        """The links of this node that are cut, of a node that was made with faults."""
        from strandline.node.faults.links import CutLinks

        return CutLinks(self.networks)

    def fault_control(self) -> FaultControl:
        """Returns the switches for faults of a node that was made with them and has started."""
        from strandline.node.faults.control import FaultControl
        from strandline.node.faults.disk import SwitchedDisk
        from strandline.node.faults.observation import observe
        from strandline.node.faults.requests import RequestFaults

        assert isinstance(self.disk, SwitchedDisk), "the node was made without faults"
        requests = RequestFaults(self.broker.dispatch, self.broker.services)
        return FaultControl(self.disk, self.clock, self.links, requests, partial(observe, self.broker))

    async def start(self) -> None:
        try:
            await self._serve_metrics()
            await self._serve_faults()
            await self._prepare_directories()
            await self.broker.start()
        except BaseException:
            self._end()
            raise

    async def _serve_metrics(self) -> None:
        """Opens the metrics page before all else, so that a taken port is an error before anything is changed, and so
        that the start can be watched."""
        port = self._config.int(METRICS_PORT)
        if port >= 0:
            from strandline.node.metrics_server import MetricsServer

            self._metrics = MetricsServer(self.broker, self._events)
            await self._metrics.listen(self._config.text("strandline.metrics.host"), port)

    async def _serve_faults(self) -> None:
        if self._faults_port is None:
            return
        from strandline.node.faults.http_api import FaultsApi

        control: list[FaultControl] = []

        async def do(node: int | None, command: Mapping[str, Any]) -> dict[str, Any]:
            if node not in (None, self.broker.node_id):
                raise LookupError(f"there is no node {node}: this is a broker of its own")
            if not self.broker.is_built:
                raise RuntimeError("the broker is starting: ask again")
            if not control:
                control.append(self.fault_control())
            return control[0].do(command)

        self._faults = FaultsApi(
            do, lambda error: self._events.error("a request for faults failed", error=repr(error))
        )
        await self._faults.listen(self._faults_port)

    @property
    def faults_url(self) -> str:
        """The URL at which faults are set over HTTP; empty if there is none."""
        return "" if self._faults is None else self._faults.url

    @property
    def metrics_url(self) -> str:
        """The URL of the node's metrics; empty if they are not served."""
        if self._metrics is None:
            return ""
        host = self._config.text("strandline.metrics.host") or "localhost"
        return f"http://{f'[{host}]' if ':' in host else host}:{self._metrics.port}/metrics"

    def _end(self) -> None:
        if self._metrics is not None:
            self._metrics.close()
        if self._faults is not None:
            self._faults.close()
        self._workers.close()

    async def _prepare_directories(self) -> None:
        """Formats the directories if they are new and this node is alone, once nothing else can refuse the start."""
        config = self._config
        check_directories(config)
        if unformatted_directories(config):
            for listener in config.broker_listeners if config.is_broker else config.controller_listeners:
                await check_address(listener.host, listener.port)
            format_if_empty(config, self._events)

    @property
    def bootstrap(self) -> str:
        """The first advertised listener, at which clients begin. Empty for a node that is a controller only."""
        if not self._config.is_broker:
            return ""
        endpoint = self.broker.endpoints[0]
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        return f"{host}:{endpoint.port}"

    async def stop(self) -> None:
        try:
            await self.broker.stop()
        finally:
            self._end()

    async def abandon(self) -> None:
        """Ends the node without a clean shutdown, as far as that is possible within a process that goes on."""
        try:
            await self.broker.abandon()
        finally:
            self._end()


def stderr_events(*, node: int, as_json: bool = False, level: str = "info") -> Events:
    clock = RealClock()

    def say(line: str) -> None:
        with suppress(OSError, ValueError):  # the reader of this output is gone; the node does without it
            print(line, file=sys.stderr, flush=True)

    return Events(
        say,
        clock.wall_ms,
        node=node,
        as_json=as_json,
        level=level,
    )


async def serve(
    config: BrokerConfig,
    events: Events,
    on_ready: Callable[[RunningNode], None],
    before_stop: Callable[[], None] = lambda: None,
    *,
    faults_port: int | None = None,
) -> None:
    """Runs a node until SIGTERM, SIGINT or SIGHUP, which ends it cleanly; a second one ends it at once.

    `before_stop` ends what needs the node; it runs in a thread, while the node still serves. Faults can be set over
    HTTP at `faults_port`, and by a test that started this process.
    """
    control = _inherited_control()
    node = RunningNode(config, events, has_faults=control is not None, faults_port=faults_port)
    if control is not None:
        _cut_links(node)
    loop = asyncio.get_running_loop()
    stop_requested = asyncio.Event()

    def stop() -> None:
        stop_requested.set()
        starting.cancel()  # nothing to do with one that has started

    def on_signal() -> None:
        if stop_requested.is_set():
            events.warn("stopped at once, on the second signal")
            os._exit(130)
        stop()

    starting = loop.create_task(node.start())
    for number in stop_signals():
        loop.add_signal_handler(number, on_signal)
    watching = loop.create_task(_watch_parent(stop))
    controlling: asyncio.Task[None] | None = None
    try:
        await starting
    except asyncio.CancelledError:
        events.info("stopped before it was ready: the next start checks the logs")
        return
    if KERNEL_NOTE:
        events.info(KERNEL_NOTE)
    # What is there now stays: collections need not look at it again. This process is the node's own.
    gc.collect()
    gc.freeze()
    if control is not None:
        from strandline.node.faults.control import serve_control

        controlling = loop.create_task(serve_control(node.fault_control(), control))
    on_ready(node)
    await stop_requested.wait()
    watching.cancel()
    if controlling is not None:
        controlling.cancel()
    events.info("stopping")
    await asyncio.to_thread(before_stop)
    await node.stop()


def _inherited_control() -> socket.socket | None:
    """Takes the socket over which a test sets faults, if a test started this process; returns None otherwise and at the
    second call."""
    number = os.environ.pop(CONTROL_FD, None)
    if number is None:
        return None
    control = socket.socket(fileno=int(number))
    control.set_inheritable(False)
    return control


def _cut_links(node: RunningNode) -> None:
    """Cuts links before the node starts: a node that comes back must not use a link that is still cut, not even for a
    moment."""
    cuts = json.loads(os.environ.pop(CUT_LINKS, "[]"))
    if cuts:
        from strandline.node.faults.control import cut_by

        for cut in cuts:
            cut_by(node.links, cut)


async def _watch_parent(stop: Callable[[], None]) -> None:
    """Stops the node when its parent process has ended in any way, if a test or `strandline up` started it."""
    parent = os.environ.get(STOPS_WITH_PARENT)
    if parent is not None:
        while os.getppid() == int(parent):
            await asyncio.sleep(_PARENT_CHECK_SECONDS)
        stop()
