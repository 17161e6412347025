"""Controllers whose quorum changes while it runs: processes on free ports, formatted as a person does it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from strandline.base.ids import METADATA_TOPIC, parse_uuid, uuid_text
from strandline.cli.main import main
from strandline.storage import checkpoints
from strandline.testing.clusters import ClusterNode, free_ports
from strandline.wire.api.k55_describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from strandline.wire.api.k80_add_raft_voter import AddRaftVoterRequest, Listener
from strandline.wire.api.k81_remove_raft_voter import RemoveRaftVoterRequest
from tests.compat.wire import WireClient
from tests.waiting import eventually

CLUSTER_ID = uuid_text(b"a dynamic quorum")
WAIT_SECONDS_MAX = 60.0


class Controllers:
    """Controllers 1 to 3 and broker 4; only the first votes at the start."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.ports = dict(zip((1, 2, 3, 4), free_ports(4), strict=True))
        servers = ",".join(f"127.0.0.1:{self.ports[n]}" for n in (1, 2, 3))
        self.nodes = {n: self._node(n, servers) for n in self.ports}
        self.broker = self.nodes[4]

    def _node(self, node_id: int, servers: str) -> ClusterNode:
        role, name = ("broker", "PLAINTEXT") if node_id == 4 else ("controller", "CONTROLLER")
        listener = f"{name}://127.0.0.1:{self.ports[node_id]}"
        own = {
            "process.roles": role,
            "node.id": str(node_id),
            "listeners": listener,
            "advertised.listeners": listener,
            "controller.quorum.voters": "",
            "controller.quorum.bootstrap.servers": servers,
        }
        return ClusterNode(node_id, self.home / f"node-{node_id}", own)

    def config(self, node_id: int, changes: Mapping[str, str] | None = None) -> Path:
        """Returns the node's server.properties, in a form that Java's tools accept too."""
        path = self.home / f"given-{node_id}.properties"
        settings = self.nodes[node_id].settings | dict(changes or {})
        lines = [f"{key}={value}\n" for key, value in settings.items() if value]
        path.write_text("".join(lines))
        return path

    def format(self, node_id: int, *options: str, cluster_id: str = CLUSTER_ID) -> None:
        given = ("format", "--config", str(self.config(node_id)), "--cluster-id", cluster_id, *options)
        assert main(given) == 0

    def start(self) -> None:
        self.format(1, "--standalone")
        self.format(2, "--no-initial-controllers")
        self.format(3, "--no-initial-controllers")
        self.format(4)
        for node in self.nodes.values():
            node.launch()
        for node in self.nodes.values():
            node.wait_until_ready()

    def stop(self) -> None:
        for node in self.nodes.values():
            node.ask_to_stop()
        for node in self.nodes.values():
            node.stop()

    def directory_id(self, node_id: int) -> bytes:
        meta = (self.nodes[node_id].data_dir / "meta.properties").read_bytes()
        return parse_uuid(checkpoints.parse_properties(meta)["directory.id"])

    def ask(self, request: Any, version: int) -> Any:
        """Sends the request to the broker, which forwards it to the active controller."""
        with WireClient(self.broker.bootstrap) as client:
            return client.call(request, version)

    def _described(self) -> Any:
        topic = TopicData(topic_name=METADATA_TOPIC, partitions=(PartitionData(partition_index=0),))
        answer = self.ask(DescribeQuorumRequest(topics=(topic,)), 2)
        assert answer.error_code == 0, answer.error_message
        return answer

    def quorum(self) -> Any:
        return self._described().topics[0].partitions[0]

    def recorded_ports(self) -> dict[int, int]:
        """Returns the address of each voter, by the set of voters."""
        return {node.node_id: node.listeners[0].port for node in self._described().nodes}

    def voters(self) -> list[int]:
        return sorted(voter.replica_id for voter in self.quorum().current_voters)

    def leader(self) -> int:
        return int(self.quorum().leader_id)

    def add(self, node_id: int, *, cluster_id: str | None = CLUSTER_ID, port: int | None = None) -> Any:
        listener = Listener(name="CONTROLLER", host="127.0.0.1", port=port or self.ports[node_id])
        request = AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=10_000,
            voter_id=node_id,
            voter_directory_id=self.directory_id(node_id),
            listeners=(listener,),
        )
        return self.ask(request, 1)

    def remove(self, node_id: int, directory_id: bytes, *, cluster_id: str | None = CLUSTER_ID) -> Any:
        request = RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=node_id, voter_directory_id=directory_id
        )
        return self.ask(request, 0)

    def until_added(self, node_id: int) -> None:
        """It may not have caught up at once."""
        eventually(lambda: self.add(node_id).error_code in (0, 126), WAIT_SECONDS_MAX)
        eventually(lambda: node_id in self.voters(), WAIT_SECONDS_MAX)

    def until_removed(self, node_id: int, directory_id: bytes) -> None:
        eventually(lambda: self.remove(node_id, directory_id).error_code in (0, 127), WAIT_SECONDS_MAX)
        eventually(lambda: node_id not in self.voters(), WAIT_SECONDS_MAX)


@contextmanager
def running_controllers() -> Iterator[Controllers]:
    home = Path(tempfile.mkdtemp(prefix="strandline-voters-"))
    controllers = Controllers(home)
    try:
        controllers.start()
        yield controllers
    finally:
        controllers.stop()
        shutil.rmtree(home, ignore_errors=True)
