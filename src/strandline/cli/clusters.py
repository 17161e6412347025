"""`strandline up --nodes N`: a cluster of processes on this machine, with a table of its partitions."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from strandline.base.ids import TopicPartition
from strandline.cli.cluster.control import ControlServer
from strandline.cli.cluster.faults_server import ClusterFaultsServer
from strandline.cli.exit_codes import INTERRUPTED
from strandline.cli.failures import fail
from strandline.cli.given_settings import given_settings
from strandline.cli.node.secure_greeting import secure_greeting
from strandline.cli.presets import broker_part
from strandline.cli.registry_child import RegistryChild
from strandline.cli.serving import (
    SECURITY,
    faults_line,
    metrics_settings,
    reason,
    secured,
    where_option,
)
from strandline.client.errors import KafkaError
from strandline.client.net.metadata import PartitionInfo
from strandline.client.sync import Admin
from strandline.config import InvalidConfig
from strandline.node.process import stop_signals
from strandline.storage.directory import UnusableDirectory
from strandline.testing.clusters import Cluster

_IN_SYNC_SECONDS_MAX = 30.0
_REFRESH_SECONDS = 1.0
_ROWS_MAX = 20
_CLEAR = "\x1b[2J\x1b[H"


def up_cluster(options: argparse.Namespace) -> int:
    if options.host not in ("localhost", "127.0.0.1"):
        return fail(
            "--host: nodes of `up --nodes` listen on 127.0.0.1; for other addresses run `server` on each"
        )
    try:
        registry = RegistryChild(options)
    except OSError as error:
        return fail(f"--registry-port {options.registry_port}: {reason(error)}")
    # The path is absolute, because a node's settings name it and may be used from another directory.
    home = Path(
        tempfile.mkdtemp(prefix="strandline-") if options.ephemeral else os.path.abspath(options.data)
    )
    try:
        preset, notes = broker_part(options, options.nodes)
        settings = preset | _settings(options)
        security = secured(str(home), options)
        cluster = Cluster(
            home,
            options.nodes,
            settings,
            first_port=options.port,
            security=security,
            takes_faults=options.faults_port is not None,
        )
        for node, own in zip(cluster.nodes, metrics_settings(options, settings, options.nodes), strict=True):
            node.settings |= own
        cluster.prepare()
        _run(cluster, options, registry, notes)
    except OSError as error:
        return fail(f"the cluster cannot run: {reason(error)}")
    except (ValueError, InvalidConfig, UnusableDirectory, RuntimeError, KafkaError) as error:
        return fail(str(error))
    finally:
        if options.ephemeral:
            shutil.rmtree(home, ignore_errors=True)
            shutil.rmtree(f"{home}{SECURITY}", ignore_errors=True)
    return 0


def _settings(options: argparse.Namespace) -> dict[str, str]:
    """Returns the settings of `--set` for every node. Raises ValueError for a setting that must differ between
    nodes."""
    settings = given_settings(options.set)
    for key in ("log.dirs", "log.dir", "metadata.log.dir"):
        if key in settings:
            raise ValueError(
                f"--set {key}: each node of `up --nodes` has a directory of its own below --data"
            )
    return settings


def _run(cluster: Cluster, options: argparse.Namespace, registry: RegistryChild, notes: list[str]) -> None:
    """Runs the cluster until a signal stops it."""
    asked = threading.Event()
    started = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            _end_at_once(cluster, options)
        asked.set()
        if not started.is_set():
            raise KeyboardInterrupt  # a cluster that is being stopped need not become ready

    for number in stop_signals():
        signal.signal(number, on_signal)
    began = time.monotonic()
    control = ControlServer(cluster.home, {"restart": lambda node: _restart(cluster, node)})
    faults: ClusterFaultsServer | None = None
    try:
        if options.faults_port is not None:
            faults = ClusterFaultsServer(cluster, options.faults_port)
        cluster.start()
        control.start()
        started.set()
        registry.start(cluster.bootstrap, cluster.security)
        beside = registry.line + faults_line("" if faults is None else faults.url)
        beside += "".join(f"  note               {note}\n" for note in notes)
        _stay(cluster, options, asked, began, beside)
    finally:
        print("stopping", flush=True)
        if faults is not None:
            faults.stop()
        control.stop()
        registry.stop()
        cluster.stop()


def _restart(cluster: Cluster, node_id: int) -> None:
    """Stops a node in order and starts it again. Raises LookupError if there is no node with this number."""
    node = cluster.node(node_id)
    node.is_restarting = True
    try:
        if node.is_running:
            node.stop()
        node.start()
    finally:
        node.is_restarting = False


def _end_at_once(cluster: Cluster, options: argparse.Namespace) -> None:
    """Ends everything after a second Ctrl-C: nodes are killed, and temporary data is deleted."""
    for node in cluster.nodes:
        if node.is_running:
            os.kill(node.pid, signal.SIGKILL)
    if options.ephemeral:
        shutil.rmtree(cluster.home, ignore_errors=True)
    os._exit(INTERRUPTED)


def _dead_nodes(cluster: Cluster, told: set[int]) -> list[str]:
    """Returns a sentence for each node that has ended by itself and was not reported before."""
    said = []
    for node in cluster.nodes:
        if node.is_running or node.is_restarting:
            told.discard(node.node_id)
        elif node.node_id not in told:
            told.add(node.node_id)
            said.append(
                f"node {node.node_id} has ended; start it again with: {shlex.join(node.start_command)}"
            )
    return said


def _stay(
    cluster: Cluster, options: argparse.Namespace, asked: threading.Event, began: float, registry: str
) -> None:
    # The table shows which nodes are away; the client's warnings about each attempt would only clutter it.
    logging.getLogger("strandline").addHandler(logging.NullHandler())
    with Admin(cluster.client_settings) as admin:
        is_full = _wait_until_in_sync(admin, asked)
        greeting = _greeting(cluster, options, time.monotonic() - began, is_full, registry)
        print(greeting, flush=True)
        shown = ""
        told: set[int] = set()
        while not asked.wait(_REFRESH_SECONDS):
            for sentence in _dead_nodes(cluster, told):
                greeting += f"\n{sentence}"
                if not sys.stdout.isatty():
                    print(sentence, flush=True)
                shown = ""
            table = _table(admin)
            if table != shown and sys.stdout.isatty():
                print(f"{_CLEAR}{greeting}\n\n{table}", flush=True)
            shown = table


def _wait_until_in_sync(admin: Admin, asked: threading.Event) -> bool:
    """True if every replica of every topic is in sync before the time is over."""
    deadline = time.monotonic() + _IN_SYNC_SECONDS_MAX
    while time.monotonic() < deadline and not asked.is_set():
        if all(len(each.in_sync) == len(each.replicas) for each in _partitions(admin)):
            return True
        time.sleep(0.1)
    return False


def _greeting(
    cluster: Cluster, options: argparse.Namespace, seconds: float, is_full: bool, registry: str
) -> str:
    if cluster.security is not None:
        return secure_greeting(cluster.bootstrap, cluster.security, registry)
    where = f"{cluster.home} (gone when this ends)" if options.ephemeral else str(cluster.home)
    state = "every replica is in sync" if is_full else "NOT every replica is in sync yet"
    return (
        f"Strandline is ready: {len(cluster.nodes)} nodes after {seconds:.1f} s, {state}.\n"
        f"  bootstrap.servers  {cluster.bootstrap}\n"
        f"  processes          {', '.join(f'node {n.node_id}: {n.pid}' for n in cluster.nodes)}\n"
        f"  data               {where}\n"
        f"  metrics            {', '.join(n.metrics_url for n in cluster.nodes if n.metrics_url) or 'none'}\n"
        f"{registry}"
        f"Try:\n"
        f"  echo hello | strandline produce greetings{where_option(cluster.brokers[0].bootstrap)}\n"
        f"  strandline stop --node {cluster.nodes[0].node_id} --data {shlex.quote(str(cluster.home))}"
        "   # and watch the table\n"
        f"Stop with Ctrl-C."
    )


def _partitions(admin: Admin) -> list[PartitionInfo]:
    topics = admin.describe_topics(admin.list_topics())
    return [each for name in sorted(topics) for each in topics[name].partitions]


def _table(admin: Admin) -> str:
    """Returns a table with the leader, the in-sync set and the lag of the slowest replica of each partition."""
    try:
        partitions = _partitions(admin)
        sizes = _sizes(admin, sorted({node for each in partitions for node in each.replicas}))
    except KafkaError as error:
        return f"the cluster does not respond: {error}"
    lines = [f"{'partition':<32} {'leader':>6}  {'replicas':<12} {'in sync':<12} {'behind':>12}"]
    for each in partitions[:_ROWS_MAX]:
        leader = str(each.leader_id) if each.leader_id >= 0 else "none"
        marks = "" if len(each.in_sync) == len(each.replicas) else "  under-replicated"
        lines.append(
            f"{each.topic + '-' + str(each.partition):<32} {leader:>6}  {_ids(each.replicas):<12} "
            f"{_ids(each.in_sync):<12} {_behind(each, sizes):>12}{marks}"
        )
    if len(partitions) > _ROWS_MAX:
        lines.append(f"and {len(partitions) - _ROWS_MAX} more")
    if not partitions:
        lines.append("(no topics yet)")
    return "\n".join(lines)


def _ids(nodes: tuple[int, ...]) -> str:
    return ",".join(map(str, nodes)) or "none"


def _sizes(admin: Admin, nodes: list[int]) -> Mapping[int, Mapping[TopicPartition, int]]:
    """Returns the bytes of each replica on each node that responds."""
    found = {}
    for node_id in nodes:
        try:
            directories = admin.describe_log_dirs([node_id], timeout=_REFRESH_SECONDS)[node_id]
        except KafkaError:
            continue
        found[node_id] = {tp: size for directory in directories for tp, size in directory.replicas.items()}
    return found


def _behind(each: PartitionInfo, sizes: Mapping[int, Mapping[TopicPartition, int]]) -> str:
    partition = TopicPartition(each.topic, each.partition)
    own = sizes.get(each.leader_id, {}).get(partition)
    if own is None:
        return "?"
    others = [sizes[node].get(partition, 0) for node in each.replicas if node in sizes]
    missing = sum(1 for node in each.replicas if node not in sizes)
    return f"{max(own - min(others, default=own), 0)} B" + (f" ({missing} away)" if missing else "")
