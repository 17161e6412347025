"""Apache Kafka's tools add and remove controllers, describe the quorum, and read the voters in its log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.base.ids import uuid_text
from tests.oracle.kafka_tools import KafkaTools
from tests.system.cluster.controllers import WAIT_SECONDS_MAX, Controllers, running_controllers
from tests.waiting import eventually

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]


@pytest.fixture(scope="module")
def controllers() -> Iterator[Controllers]:
    with running_controllers() as running:
        yield running


def test_controllers_are_added_described_and_removed(
    kafka_tools: KafkaTools, controllers: Controllers
) -> None:
    at_broker = ("--bootstrap-server", controllers.broker.bootstrap)
    at_controller = ("--bootstrap-controller", f"127.0.0.1:{controllers.ports[1]}")
    for node_id, where in ((2, at_broker), (3, at_controller)):
        given = ("--command-config", controllers.config(node_id))
        eventually(
            lambda where=where, given=given: (  # type: ignore[misc]
                "Added controller"
                in kafka_tools.run("MetadataQuorumCommand", *where, *given, "add-controller").stdout
            ),
            WAIT_SECONDS_MAX,
        )
    assert controllers.voters() == [1, 2, 3]
    again = kafka_tools.run(
        "MetadataQuorumCommand", *at_broker, "--command-config", controllers.config(3), "add-controller"
    )
    assert "DuplicateVoterException" in again.stdout + again.stderr
    described = (
        kafka_tools.run("MetadataQuorumCommand", *at_broker, "describe", "--status").succeeded().stdout
    )
    voters = re.search(r"CurrentVoters:\s+(.*)", described)
    assert voters is not None
    for node_id in (1, 2, 3):
        assert uuid_text(controllers.directory_id(node_id)) in voters[1]
        assert f"CONTROLLER://127.0.0.1:{controllers.ports[node_id]}" in voters[1]
    rows = kafka_tools.run("MetadataQuorumCommand", *at_broker, "describe", "--replication").succeeded().lines
    assert sorted(row.split()[-1] for row in rows[1:] if row.strip()) == [
        *("Follower", "Follower", "Leader", "Observer")
    ]
    removal = (
        *("remove-controller", "--controller-id", 1),
        *("--controller-directory-id", uuid_text(controllers.directory_id(1))),
    )
    told = kafka_tools.run("MetadataQuorumCommand", *at_broker, *removal)
    assert "Removed" in told.stdout, told.stdout + told.stderr
    eventually(lambda: controllers.voters() == [2, 3], WAIT_SECONDS_MAX)
    unknown = kafka_tools.run("MetadataQuorumCommand", *at_broker, *removal)
    assert "VoterNotFoundException" in unknown.stdout + unknown.stderr
    create = ("--create", "--topic", "goes-on", "--replication-factor", 1)
    kafka_tools.run("TopicCommand", *at_broker, *create).succeeded()


def test_voters_in_log_and_snapshot_are_read(kafka_tools: KafkaTools, controllers: Controllers) -> None:
    directory = controllers.nodes[1].data_dir / "__cluster_metadata-0"
    first = directory / "00000000000000000000-0000000000.checkpoint"
    for file in (first, directory / "00000000000000000000.log"):
        told = dumped(kafka_tools, file)
        assert "KRaftVersion" in told, told
        assert "KRaftVoters" in told, told
        assert uuid_text(controllers.directory_id(1)) in told, told


def test_controllers_tell_where_all_of_them_are(kafka_tools: KafkaTools, controllers: Controllers) -> None:
    def told() -> str:
        at = ("--bootstrap-controller", f"127.0.0.1:{controllers.ports[2]}")
        return kafka_tools.run_alone("ClusterTool", "list-endpoints", *at).stdout

    ports = [str(controllers.ports[n]) for n in (1, 2, 3)]
    eventually(lambda: all(port in told() for port in ports), WAIT_SECONDS_MAX)
    assert "controller" in told()


def dumped(kafka_tools: KafkaTools, file: Path) -> str:
    return (
        kafka_tools.run("DumpLogSegments", "--cluster-metadata-decoder", "--files", file).succeeded().stdout
    )
