"""A cluster of real processes on this machine: nodes can be killed, paused, stopped and started again.

with cluster(nodes=3) as c:
    ... c.bootstrap ...
    c.node(2).kill()
    c.node(2).start()
    c.cut(1, 3, one_way=True)
    c.heal()
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from strandline.base.ids import uuid_text
from strandline.broker.security.start_checks import check_security
from strandline.client.config.config import ClientConfig
from strandline.client.net.cluster import ClusterClient
from strandline.client.world import real_world
from strandline.node import launcher
from strandline.node.config_providers import broker_config
from strandline.node.development_security import DevelopmentSecurity
from strandline.node.directories import format_if_empty, not_a_directory
from strandline.node.disk import RealDisk
from strandline.node.random import RealRandom
from strandline.storage.cluster_home import ClusterHome
from strandline.storage.data_directory import node_directory
from strandline.testing.embedded import named_settings
from strandline.testing.fault_channels import BrokerGone
from strandline.testing.process import BrokerProcess, stopping
from strandline.testing.reachable import BlockingCalls

READY_SECONDS_MAX = 30.0
# These ports are above those that other programs often use, and below the ephemeral ports of Linux (32768) and macOS
# (49152).
_PORT_FIRST, _PORT_END = 20_000, 32_000


class ClusterNode(BrokerProcess):
    """One node: a broker process with the settings of its place in the cluster."""

    def __init__(
        self,
        node_id: int,
        data_dir: Path,
        settings: Mapping[str, str],
        security: DevelopmentSecurity | None = None,
    ) -> None:
        super().__init__(data_dir, settings, security)
        self.node_id = node_id
        self.is_restarting = False  # a restart has stopped the node and will start it again
        if "broker" not in self.settings["process.roles"]:
            del self.settings["advertised.listeners"]

    @property
    def label(self) -> str:
        return f"node {self.node_id} {self.bootstrap}".rstrip()

    @property
    def addresses(self) -> list[str]:
        """The addresses at which other nodes connect to this one."""
        return [each.partition("://")[2] for each in self.settings["listeners"].split(",")]


class Cluster(BlockingCalls):
    def __init__(
        self,
        home: Path,
        nodes: int,
        settings: Mapping[str, str],
        controllers: int | None = None,
        first_port: int = 0,
        security: DevelopmentSecurity | None = None,
        *,
        takes_faults: bool = True,
    ) -> None:
        """With `controllers` as many further nodes form the quorum; without it every node is broker and controller.

        Brokers listen on `first_port` and the ports after it, or on free ports. A home that was used before keeps its
        cluster. `prepare` opens the home; until then `cluster_id` is empty. Without `takes_faults` the nodes are built
        without switches for faults: no links can be cut, and nothing is slower because of faults.
        """
        self.home = home
        self.cluster_id = ""
        self.security = security
        self._opened_home: ClusterHome | None = None
        self._ports = list(range(first_port, first_port + nodes)) if first_port else []
        dedicated = controllers or 0
        ids = list(range(1, nodes + dedicated + 1))
        ports = free_ports(2 * nodes + dedicated)
        voter_ids = ids[nodes:] if dedicated else ids
        controller_ports = dict(zip(ids, ports, strict=False))
        voters = ",".join(f"{node_id}@127.0.0.1:{controller_ports[node_id]}" for node_id in voter_ids)
        self.nodes: list[ClusterNode] = []
        for number, node_id in enumerate(ids):
            roles = "controller" if dedicated and node_id in voter_ids else "broker"
            if not dedicated:
                roles = "broker,controller"
            port = first_port + number if first_port else ports[-1 - number]
            own = _settings_of(node_id, roles, voters, controller_ports[node_id], port)
            own |= _replication_settings(nodes)
            data_dir = Path(node_directory(str(home), node_id))
            node = ClusterNode(node_id, data_dir, {**own, **settings}, security)
            node.takes_faults = takes_faults
            check_security(broker_config(node.settings))
            self.nodes.append(node)

    @property
    def _broker_count(self) -> int:
        return len(self.brokers)

    @property
    def brokers(self) -> list[ClusterNode]:
        return [node for node in self.nodes if "broker" in node.settings["process.roles"]]

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.brokers)

    @property
    def client_settings(self) -> dict[str, str]:
        """The settings of a client, by Kafka's names: the brokers' addresses, and the login."""
        return self.brokers[0].client_settings | {"bootstrap.servers": self.bootstrap}

    @property
    def librdkafka_settings(self) -> dict[str, str]:
        """The settings for confluent-kafka and kcat."""
        return self.brokers[0].librdkafka_settings | {"bootstrap.servers": self.bootstrap}

    @property
    def python_settings(self) -> dict[str, Any]:
        """The settings for aiokafka and kafka-python, as keyword arguments."""
        servers = [node.bootstrap for node in self.brokers]
        return self.brokers[0].python_settings | {"bootstrap_servers": servers}

    def node(self, node_id: int) -> ClusterNode:
        for node in self.nodes:
            if node.node_id == node_id:
                return node
        raise LookupError(f"there is no node {node_id}; there are {[node.node_id for node in self.nodes]}")

    def leader_of(self, topic: str, partition: int = 0) -> ClusterNode:
        """Returns the node that leads a partition now, to kill or pause it."""
        return self.node(self.leader_id(topic, partition))

    def prepare(self) -> None:
        """Opens the home for this process until `stop`; `start` does it too.

        Moves nodes that 0.1.0 left there to their place, and formats those of a new cluster. Raises UnusableDirectory
        if the home holds something else or is in use, and OSError if a port is taken; in both cases it has changed
        nothing there.
        """
        if self._opened_home is not None:
            return
        try:
            home = ClusterHome(RealDisk(), str(self.home), len(self.nodes))
        except NotADirectoryError as error:
            raise not_a_directory(str(self.home)) from error
        if home.is_new:
            _check_ports(self._ports)
        new_id = uuid_text(RealRandom().uuid())
        self.cluster_id = home.take(new_id, lambda node_id, path: self._format(node_id, path, new_id))
        self._opened_home = home

    def _format(self, node_id: int, path: str, cluster_id: str = "") -> None:
        config = broker_config({**self.node(node_id).settings, "log.dirs": path})
        users = () if self.security is None else self.security.scram_users()
        events = launcher.stderr_events(node=node_id, level="warn")
        format_if_empty(config, events, cluster_id or self.cluster_id, users=users)

    def start(self) -> None:
        """Starts all nodes at once, because no node is ready before a majority of controllers is there."""
        self.prepare()
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait_until_ready()
        # A client drops a broker that is missing in the metadata of another one, and its requests to it fail.
        expected = {node.node_id for node in self.brokers}
        wait_until(
            lambda: all(_brokers_known_to(node) == expected for node in self.brokers),
            said=f"the brokers have not found one another within {READY_SECONDS_MAX:g} s",
        )

    # Links between nodes

    def cut(self, one: int, other: int, *, one_way: bool = False) -> None:
        """Cuts the link between two nodes; with `one_way` only bytes from the first to the second are lost.

        Clients still reach both. A node that is started again has whole links.
        """
        self._cut_way(self.node(one), self.node(other))
        if not one_way:
            self._cut_way(self.node(other), self.node(one))

    def cut_off(self, node_id: int) -> None:
        """Cuts a node off from all others; clients still reach it."""
        for other in self.nodes:
            if other.node_id != node_id:
                self.cut(node_id, other.node_id)

    def start_node(self, node_id: int, cut: Iterable[tuple[int, int]] = ()) -> None:
        """Starts a node that has ended, with links that are cut from its first moment on, as pairs of sender and
        receiver.

        Returns when it is ready.
        """
        node = self.node(node_id)
        ways = [(self.node(sender), self.node(receiver)) for sender, receiver in cut]
        node.cut_at_start = [_cut_outbound(to) for sender, to in ways if sender is node]
        node.cut_at_start += [_cut_inbound(sender) for sender, to in ways if to is node]
        try:
            node.start()
        finally:
            node.cut_at_start = []

    def replace_disk(self, node_id: int) -> None:
        """Gives a node that does not run an empty disk, formatted for this cluster; its old data is deleted."""
        node = self.node(node_id)
        if node.is_running:
            raise RuntimeError(f"node {node_id} runs: stop or kill it before its disk is replaced")
        shutil.rmtree(node.data_dir)
        self._format(node_id, str(node.data_dir))

    def heal(self) -> None:
        """Makes all links whole. Bytes that were on their way arrive."""
        for node in self.nodes:
            if node.is_running:
                node.control({"do": "heal"})

    def _cut_way(self, sender: ClusterNode, receiver: ClusterNode) -> None:
        """Has both ends act: the sender sends nothing on its connections, the receiver reads nothing from its own."""
        if sender.is_running:
            sender.control(_cut_outbound(receiver))
        if receiver.is_running:
            receiver.control(_cut_inbound(sender))

    def stop(self) -> None:
        """Stops the nodes one after another, so that each can hand over the partitions that it leads.

        A node that does not stop is killed, and named in an error when the others are stopped.
        """
        for node in self.nodes:
            if node.is_running:
                node.resume()  # a node needs the others to stop in order
                with suppress(BrokerGone):
                    node.control({"do": "heal"})
        with ExitStack() as stops:
            stops.callback(self._release)
            for node in reversed(self.nodes):  # the last callback is called first
                stops.callback(node.stop)

    def kill(self) -> None:
        """Ends every node at once, as `kill -9` does: for a cluster whose data is not needed any more."""
        with ExitStack() as kills:
            kills.callback(self._release)
            for node in self.nodes:
                kills.callback(node.kill)
                if node.is_running:
                    node.send_kill()

    def _release(self) -> None:
        if self._opened_home is not None:
            self._opened_home.release()
            self._opened_home = None


def _cut_outbound(receiver: ClusterNode) -> dict[str, Any]:
    """Returns the command by which a sender sends nothing to a receiver."""
    return {"do": "cut", "addresses": receiver.addresses, "outbound": True, "inbound": False}


def _cut_inbound(sender: ClusterNode) -> dict[str, Any]:
    """Returns the command by which a receiver reads nothing from a sender."""
    return {"do": "cut", "addresses": sender.addresses, "outbound": False, "inbound": True}


def _brokers_known_to(node: ClusterNode) -> set[int]:
    async def ask() -> set[int]:
        world = real_world()
        client = ClusterClient(ClientConfig.admin(node.client_settings), world)
        try:
            await client.start()
            return set(client.metadata.nodes)
        finally:
            await client.close()
            world.close()

    # The caller may be on a loop already, so this runs in a thread of its own.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, ask()).result()


def _settings_of(node_id: int, roles: str, voters: str, controller_port: int, port: int) -> dict[str, str]:
    listeners = []
    if "broker" in roles:
        listeners.append(f"PLAINTEXT://127.0.0.1:{port}")
    if "controller" in roles:
        listeners.append(f"CONTROLLER://127.0.0.1:{controller_port}")
    return {
        "process.roles": roles,
        "node.id": str(node_id),
        "listeners": ",".join(listeners),
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.quorum.voters": voters,
        "broker.rack": f"rack-{node_id}",
        "group.initial.rebalance.delay.ms": "0",
    }


def _replication_settings(brokers: int) -> dict[str, str]:
    """Returns settings for three replicas, of which two must have a record, or for fewer if there are fewer brokers."""
    factor, minimum = str(min(3, brokers)), str(min(2, brokers))
    return {
        "default.replication.factor": factor,
        "min.insync.replicas": minimum,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": minimum,
    }


def free_ports(count: int) -> list[int]:
    """Returns ports that are free now, below those that the operating system gives to outgoing connections.

    An outgoing connection could take one of the latter between this check and the moment at which a node listens.
    """
    random = RealRandom()
    found: dict[int, socket.socket] = {}
    try:
        while len(found) < count:
            port = _PORT_FIRST + random.below(_PORT_END - _PORT_FIRST)
            opened = socket.socket()
            try:
                opened.bind(("127.0.0.1", port))
            except OSError:
                opened.close()
                continue
            found[port] = opened
        return list(found)
    finally:
        for opened in found.values():
            opened.close()


def _check_ports(ports: list[int]) -> None:
    """Raises the OSError that a node would raise on a port that is taken."""
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                raise OSError(error.errno, f"127.0.0.1:{port}: {error.strerror}") from error


@contextmanager
def cluster(
    *,
    nodes: int = 3,
    controllers: int | None = None,
    metrics: bool = False,
    security: str | DevelopmentSecurity | None = None,
    **settings: str | int | bool,
) -> Iterator[Cluster]:
    """Runs a cluster of processes on free ports; settings have Kafka's names, with `_` for `.`.

    With `metrics` each node serves metrics over HTTP, at its `metrics_url`. `security` is SSL, SASL_PLAINTEXT or
    SASL_SSL: every listener speaks it, those of the controllers too, and `client_settings` has the settings for it.
    The data is deleted at the end; the nodes are killed then, because to stop them in order takes seconds.
    """
    with tempfile.TemporaryDirectory(prefix="strandline-cluster-", ignore_cleanup_errors=True) as home:
        secured = (
            DevelopmentSecurity(Path(home) / "security", security) if isinstance(security, str) else security
        )
        started = Cluster(
            Path(home) / "nodes", nodes, named_settings(settings, metrics), controllers, security=secured
        )
        with stopping(started.kill):
            started.start()
            yield started


running_cluster = cluster


def wait_until(
    condition: object,
    seconds: float = READY_SECONDS_MAX,
    said: str = "the condition did not come true",
) -> None:
    """Polls a condition; raises TimeoutError with the text `said` if it does not come true in time."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(said)
        time.sleep(0.01)
