"""`strandline up` and `strandline server`."""

from __future__ import annotations

import argparse
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strandline.broker.metadata.broker_lifecycle import CannotJoin
from strandline.cli.connection import DEFAULT_BOOTSTRAP
from strandline.cli.failures import fail
from strandline.cli.given_settings import given_settings, read_settings
from strandline.cli.presets import broker_part
from strandline.cli.registry_child import RegistryChild
from strandline.config import InvalidConfig
from strandline.node import launcher, loop
from strandline.node.config_providers import broker_config
from strandline.node.directories import format_if_empty
from strandline.node.launcher import METRICS_PORT, RunningNode
from strandline.node.network import free_ports_from
from strandline.ports.tls import TlsError
from strandline.security.exchange import PLAIN, SCRAM_SHA_512
from strandline.storage.directory import UnusableDirectory
from strandline.telemetry.events import ROOT

if TYPE_CHECKING:
    from strandline.node.development_security import DevelopmentSecurity

# The directory is named after the data directory and is not inside it, where partitions are.
SECURITY: Final = ".security"
# The port that JMX exporters for Kafka usually have.
_METRICS_PORT_FIRST: Final = 9404
_PORT_IN_USE = (
    "; stop the process there, or choose another port (`up` has --port, and --port 0 takes a free one)"
)

_METRICS_PORT_IN_USE = (
    f"; stop the process there, or choose another port for /metrics (`up` has --metrics-port, a server's file "
    f"{METRICS_PORT}; 0 takes a free one)"
)


def up(options: argparse.Namespace) -> int:
    try:
        given = given_settings(options.set)
    except ValueError as error:
        return fail(str(error))
    if (
        options.host in launcher.EVERY_ADDRESS
        and not options.advertise
        and "advertised.listeners" not in given
    ):
        return fail(
            f"--host {options.host} listens on every address, and clients need one: add --advertise HOST, a name or "
            "address of this machine that they can reach"
        )
    try:
        registry = RegistryChild(options)
    except OSError as error:
        return fail(f"--registry-port {options.registry_port}: {reason(error)}")
    data = tempfile.mkdtemp(prefix="strandline-") if options.ephemeral else options.data

    def on_ready(node: RunningNode) -> None:
        registry.start(node.bootstrap, security)
        beside = registry.line + faults_line(node.faults_url)
        if security is not None:
            print(_secure_greeting(node.bootstrap, security, beside), flush=True)
            return
        _greet(node, data, options.ephemeral, notes, beside)

    try:
        preset, notes = broker_part(options, nodes=1)
        settings = launcher.embedded_settings(
            port=options.port, data=data, host=options.host, advertise=options.advertise, given=preset | given
        )
        if "offsets.topic.replication.factor" not in preset | given:
            del settings["offsets.topic.replication.factor"]  # lowered below, with a note
        settings |= metrics_settings(options, given, nodes=1)[0]
        notes += launcher.fit_to_nodes(settings, nodes=1)
        security = secured(data, options)
        if security is not None:
            settings = security.broker_settings(settings) | given
            events = launcher.stderr_events(node=1, level="warn")
            format_if_empty(broker_config(settings), events, users=security.scram_users())
        return _serve(settings, options, on_ready, registry.stop)
    except (UnusableDirectory, InvalidConfig, TlsError) as error:
        return fail(str(error))
    finally:
        registry.stop()
        if options.ephemeral:
            shutil.rmtree(data, ignore_errors=True)
            shutil.rmtree(f"{data}{SECURITY}", ignore_errors=True)


def _secure_greeting(bootstrap: str, security: DevelopmentSecurity, registry: str) -> str:
    from strandline.cli.node.secure_greeting import secure_greeting

    return secure_greeting(bootstrap, security, registry)


def secured(data: str, options: argparse.Namespace) -> DevelopmentSecurity | None:
    """Returns the certificates, the user and the settings of `--secure`, which are beside the data directory."""
    if not options.secure:
        return None
    from strandline.node.development_security import DevelopmentSecurity, mechanism_of

    directory = Path(f"{data}{SECURITY}")
    # A SCRAM user can only be put into the metadata of a new cluster.
    mechanism = mechanism_of(directory) or (
        PLAIN if os.path.isdir(data) and os.listdir(data) else SCRAM_SHA_512
    )
    return DevelopmentSecurity(directory, mechanism=mechanism, hosts=(options.host,))


def metrics_settings(
    options: argparse.Namespace, given: Mapping[str, str], nodes: int
) -> list[dict[str, str]]:
    """Returns the settings with the port of each node's metrics: the requested port and those after it, otherwise the
    next free ports."""
    if METRICS_PORT in given:
        return [{} for _ in range(nodes)]
    if options.metrics_port is not None:
        first = options.metrics_port
        ports = [first + number if first else 0 for number in range(nodes)]
    elif options.port == 0:
        ports = [0] * nodes
    else:
        ports = free_ports_from(_METRICS_PORT_FIRST, nodes)
    return [{METRICS_PORT: str(port)} for port in ports]


def server(options: argparse.Namespace) -> int:
    try:
        settings = read_settings(options.config)
    except ValueError as error:
        return fail(str(error))
    return _serve(settings, options, _say_ready, lambda: None)


def _serve(
    settings: dict[str, str],
    options: argparse.Namespace,
    on_ready: Callable[[RunningNode], None],
    before_stop: Callable[[], None],
) -> int:
    try:
        config = broker_config(settings)
    except InvalidConfig as error:
        return fail(str(error))
    events = launcher.stderr_events(
        node=config.node_id, as_json=options.log_format == "json", level=options.log_level or "warn"
    )

    def ready(node: RunningNode) -> None:
        on_ready(node)
        if options.log_level is None:
            events.set_level(ROOT, "info")

    for listener in launcher.open_to_others(config):
        events.warn("every client that reaches this listener may do everything", listener=listener)
    for warning in config.warnings:
        events.warn("configuration", key=warning.key, advice=warning.message)
    try:
        faults_port = getattr(options, "faults_port", None)  # `server` has no such option
        loop.run(launcher.serve(config, events, ready, before_stop, faults_port=faults_port))
    except (UnusableDirectory, CannotJoin, InvalidConfig) as error:
        return fail(str(error))
    except OSError as error:
        return fail(f"the node cannot start: {reason(error)}")
    return 0


def _greet(node: RunningNode, data: str, ephemeral: bool, notes: list[str], registry: str) -> None:
    where = f"{data} (gone when this ends)" if ephemeral else os.path.abspath(data)
    print(
        f"Strandline is ready.\n"
        f"  bootstrap.servers  {node.bootstrap}\n"
        f"  data               {where}\n"
        + (f"  metrics            {node.metrics_url}\n" if node.metrics_url else "")
        + registry
        + "".join(f"  note               {note}\n" for note in notes)
        + f"Try:\n"
        f"  echo hello | strandline produce greetings{where_option(node.bootstrap)}\n"
        f"  strandline consume greetings --exit{where_option(node.bootstrap)}\n"
        f"Stop with Ctrl-C.",
        flush=True,
    )


def faults_line(url: str) -> str:
    """Returns the line of the banner with the address for setting faults; an empty text without one."""
    return f"  faults             {url} (anybody on this machine can break this on purpose)\n" if url else ""


def where_option(bootstrap: str) -> str:
    """Returns the option with which a command finds this address; an empty text for the default address."""
    return "" if bootstrap == DEFAULT_BOOTSTRAP else f" -b {bootstrap}"


def _say_ready(node: RunningNode) -> None:
    metrics = f" metrics={node.metrics_url}" if node.metrics_url else ""
    print(f"ready bootstrap.servers={node.bootstrap}{metrics}", flush=True)


def reason(error: OSError) -> str:
    """Returns the text of an error without its number, with its file if it has one, and with advice for a port in
    use."""
    if error.strerror is None:
        return str(error)
    if error.errno == errno.EADDRINUSE:
        from strandline.node.metrics_server import MetricsPortInUse

        is_metrics = isinstance(error, MetricsPortInUse)
        return error.strerror + (_METRICS_PORT_IN_USE if is_metrics else _PORT_IN_USE)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
