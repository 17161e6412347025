"""Apache Kafka's tools for clusters do their work on three nodes: elections, reassignments, the quorum, its log."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strandline.testing.clusters import Cluster, running_cluster
from tests.oracle.kafka_tools import KafkaTools, ToolResult
from tests.system.cluster import story
from tests.system.cluster.story import create, heal, shown, until_in_sync, write
from tests.waiting import eventually

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

Run = Callable[..., ToolResult]


@pytest.fixture(scope="module")
def four() -> Iterator[Cluster]:
    """Four nodes, so that there is somewhere to go."""
    with running_cluster(nodes=4, auto_leader_rebalance_enable="false") as cluster:
        yield cluster


@pytest.fixture
def cluster(four: Cluster) -> Cluster:
    heal(four)
    return four


@pytest.fixture
def run(kafka_tools: KafkaTools, cluster: Cluster) -> Run:
    def run(tool: str, *args: object) -> ToolResult:
        awake = ",".join(node.bootstrap for node in cluster.brokers if story.is_awake(node))
        if tool == "ClusterTool":  # ends its JVM; its options come behind the subcommand
            return kafka_tools.run_alone(tool, args[0], "--bootstrap-server", awake, *args[1:])
        return kafka_tools.run(tool, "--bootstrap-server", awake, *args)

    return run


def plan(path: Path, topic: str, replicas: list[int]) -> Path:
    partitions = [{"topic": topic, "partition": 0, "replicas": replicas}]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return path


def test_under_replicated_partitions_are_listed(run: Run, cluster: Cluster) -> None:
    create(cluster, "under", [[1, 2, 3]])
    question = ("--describe", "--topic", "under", "--under-replicated-partitions")
    assert run("TopicCommand", *question).succeeded().stdout.strip() == ""
    cluster.node(3).kill()
    until_in_sync(cluster, "under", [1, 2])
    told = run("TopicCommand", *question).stdout
    assert re.search(r"Partition: 0\s+Leader: 1\s+Replicas: 1,2,3\s+Isr: 1,2", told), told
    assert run("TopicCommand", "--describe", "--topic", "under", "--at-min-isr-partitions").stdout.strip()
    assert run("TopicCommand", "--describe", "--topic", "under", "--under-min-isr-partitions").lines == []
    cluster.node(3).start()
    until_in_sync(cluster, "under", [1, 2, 3])
    eventually(lambda: run("TopicCommand", *question).stdout.strip() == "")


def test_preferred_leader_is_elected(run: Run, cluster: Cluster) -> None:
    create(cluster, "preferred", [[2, 3, 4]])
    cluster.node(2).stop()
    eventually(lambda: shown(cluster, "preferred").leader == 3)
    cluster.node(2).start()
    until_in_sync(cluster, "preferred", [2, 3, 4])
    where = ("--topic", "preferred", "--partition", 0)
    told = run("LeaderElectionCommand", "--election-type", "preferred", *where)
    assert "Successfully completed leader election (PREFERRED) for partitions preferred-0" in told.stdout
    eventually(lambda: shown(cluster, "preferred").leader == 2)
    again = run("LeaderElectionCommand", "--election-type", "preferred", *where)
    assert "Valid replica already elected for partitions preferred-0" in again.stdout
    unknown = run("LeaderElectionCommand", "--election-type", "preferred", "--topic", "no", "--partition", 0)
    assert unknown.exit_code != 0 or "rror" in unknown.stdout + unknown.stderr


def test_unclean_leader_is_elected_on_request(run: Run, cluster: Cluster) -> None:
    create(cluster, "unclean", [[3, 4]], {"min.insync.replicas": "1"})
    cluster.node(4).kill()
    until_in_sync(cluster, "unclean", [3])
    assert write(cluster.node(3), "unclean", ["only on 3"]) == (0, 0)
    cluster.node(3).kill()
    cluster.node(4).start()
    eventually(lambda: shown(cluster, "unclean").leader == -1)
    where = ("--topic", "unclean", "--partition", 0)
    told = run("LeaderElectionCommand", "--election-type", "unclean", *where)
    assert "Successfully completed leader election (UNCLEAN) for partitions unclean-0" in told.stdout
    eventually(lambda: shown(cluster, "unclean").leader == 4)
    cluster.node(3).start()
    until_in_sync(cluster, "unclean", [3, 4])
    assert story.end_offset(cluster.node(4), "unclean") == 0


def test_partition_is_moved_and_its_factor_raised(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    create(cluster, "moved", [[1, 2]])
    assert write(cluster.node(1), "moved", ["a", "b"]) == (0, 0)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "moved"}]}))
    proposed = run(
        *("ReassignPartitionsCommand", "--generate", "--broker-list", "3,4"),
        *("--topics-to-move-json-file", topics),
    )
    assert "Proposed partition reassignment configuration" in proposed.stdout, proposed.stdout
    for replicas in ([3, 4], [3, 4, 1]):
        file = plan(tmp_path / "plan.json", "moved", replicas)
        done = run("ReassignPartitionsCommand", "--execute", "--reassignment-json-file", file)
        assert "Successfully started partition reassignment for moved-0" in done.stdout, done.stdout
        until_in_sync(cluster, "moved", replicas)
        verify = ("ReassignPartitionsCommand", "--verify", "--reassignment-json-file", file)
        eventually(lambda verify=verify: "moved-0 is completed" in run(*verify).stdout)  # type: ignore[misc]
        eventually(lambda replicas=replicas: shown(cluster, "moved").replicas == tuple(replicas))  # type: ignore[misc]
    assert shown(cluster, "moved").leader == 3
    assert [v for _, v in story.read(cluster.bootstrap, "moved")] == ["a", "b"]
    assert "No partition reassignments found." in run("ReassignPartitionsCommand", "--list").stdout


def test_throttled_reassignment_keeps_its_rate_and_its_throttles_are_removed(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    create(cluster, "throttled", [[1, 2]])
    for _ in range(4):
        assert write(cluster.node(1), "throttled", ["x" * 700_000])[0] == 0
    file = ("--reassignment-json-file", plan(tmp_path / "plan.json", "throttled", [3, 4]))
    done = run("ReassignPartitionsCommand", "--execute", "--throttle", 1, *file)
    assert "The inter-broker throttle limit was set to 1 B/s" in done.stdout, done.stdout
    topic = ("ConfigCommand", "--describe", "--entity-type", "topics", "--entity-name", "throttled")
    told = run(*topic).stdout
    assert "leader.replication.throttled.replicas=0:1,0:2" in told, told
    assert "follower.replication.throttled.replicas=0:3,0:4" in told, told
    broker = ("ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-name")
    assert "leader.replication.throttled.rate=1 " in run(*broker, 1).stdout
    under_way = run("ReassignPartitionsCommand", "--verify", *file).stdout
    assert "throttled-0 is still in progress" in under_way, under_way
    faster = run("ReassignPartitionsCommand", "--execute", "--additional", "--throttle", 10**9, *file)
    assert "The inter-broker throttle limit was set to 1000000000 B/s" in faster.stdout, faster.stdout
    until_in_sync(cluster, "throttled", [3, 4])
    last = ""

    def is_completed() -> bool:
        nonlocal last
        last = run("ReassignPartitionsCommand", "--verify", *file).stdout
        return "throttled-0 is completed" in last

    eventually(is_completed, 60.0)
    assert "Clearing broker-level throttles on brokers" in last, last
    assert "Clearing topic-level throttles on topic throttled" in last, last
    assert "throttled.replicas" not in run(*topic).stdout
    assert "throttled.rate" not in run(*broker, 1).stdout
    assert story.end_offset(cluster.node(3), "throttled") == 4


def test_reassignment_is_listed_and_cancelled(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    """The target is silent, so it is under way until it is cancelled."""
    create(cluster, "cancelled", [[1, 2]])
    file = plan(tmp_path / "plan.json", "cancelled", [1, 4])
    with story.paused(cluster.node(4)):
        done = run("ReassignPartitionsCommand", "--execute", "--reassignment-json-file", file)
        assert "Successfully started" in done.stdout, done.stdout
        listed = run("ReassignPartitionsCommand", "--list").stdout
        assert re.search(r"cancelled-0: replicas: 1,4,2\. adding: 4\. removing: 2\.", listed), listed
        # Otherwise the tool would change the settings of the silent broker, and wait for it.
        cancel = ("--cancel", "--preserve-throttles", "--reassignment-json-file", file)
        gone = run("ReassignPartitionsCommand", *cancel)
        assert "Successfully cancelled partition reassignment for: cancelled-0" in gone.stdout, gone.stdout
        eventually(lambda: shown(cluster, "cancelled").replicas == (1, 2))
        until_in_sync(cluster, "cancelled", [1, 2])


def test_reassignment_to_an_unknown_broker_is_refused(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    create(cluster, "stays", [[1, 2]])
    file = plan(tmp_path / "plan.json", "stays", [1, 99])
    done = run("ReassignPartitionsCommand", "--execute", "--reassignment-json-file", file)
    assert done.exit_code != 0
    assert "99" in done.stdout + done.stderr
    assert shown(cluster, "stays").replicas == (1, 2)


def test_quorum_is_described(run: Run, cluster: Cluster) -> None:
    status = run("MetadataQuorumCommand", "describe", "--status").succeeded().stdout
    assert re.search(rf"LeaderId:\s+{story.active_controller(cluster)}\b", status), status
    assert cluster.cluster_id in status
    assert re.search(r"MaxFollowerLag:\s+\d+", status)
    voters = re.search(r"CurrentVoters:\s+(.*)", status)
    assert voters is not None
    assert all(f'"id": {n}' in voters[1] for n in (1, 2, 3, 4)), status
    replication = run("MetadataQuorumCommand", "describe", "--replication").succeeded().lines
    assert sorted(line.split()[-1] for line in replication[1:] if line.strip()) == [
        *(["Follower"] * 3),
        "Leader",
    ]


def test_cluster_tool_shows_id_and_endpoints_and_unregisters(run: Run, cluster: Cluster) -> None:
    told = run("ClusterTool", "cluster-id").stdout
    assert f"Cluster ID: {cluster.cluster_id}" in told, told
    endpoints = run("ClusterTool", "list-endpoints").stdout
    for node in cluster.brokers:
        assert node.bootstrap.rpartition(":")[2] in endpoints, endpoints
    assert "rack-1" in endpoints
    unknown = run("ClusterTool", "unregister", "--id", 77)
    assert "77" in unknown.stdout + unknown.stderr
    cluster.node(4).stop()
    gone = run("ClusterTool", "unregister", "--id", 4)
    assert "Broker 4 is no longer registered." in gone.stdout, gone.stdout + gone.stderr
    cluster.node(4).start()
    eventually(lambda: "rack-4" in run("ClusterTool", "list-endpoints").stdout)


def test_features_are_described(run: Run) -> None:
    told = run("FeatureCommand", "describe").succeeded().stdout
    features = (
        "metadata.version",
        "group.version",
        "transaction.version",
        "eligible.leader.replicas.version",
    )
    for feature in (*features, "kraft.version"):
        assert re.search(
            rf"Feature: {feature}\s+SupportedMinVersion: \S+\s+SupportedMaxVersion: \S+", told
        ), told


def test_metadata_log_is_decoded(kafka_tools: KafkaTools, cluster: Cluster) -> None:
    create(cluster, "decoded", [[1, 2, 3]])
    directory = cluster.node(1).data_dir / "__cluster_metadata-0"
    files = ",".join(str(path) for path in sorted(directory.glob("*.log")))
    told = kafka_tools.run("DumpLogSegments", "--cluster-metadata-decoder", "--files", files).succeeded()
    types = set(re.findall(r'"type":"([A-Z_]+)"', told.stdout))
    wanted = {"REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "FEATURE_LEVEL_RECORD"}
    assert wanted <= types, types
    assert '"name":"decoded"' in told.stdout
    assert "isvalid: false" not in told.stdout
    snapshots = sorted(directory.glob("*.checkpoint"))
    for snapshot in snapshots[-1:]:
        kafka_tools.run("DumpLogSegments", "--cluster-metadata-decoder", "--files", snapshot).succeeded()


def test_configured_voters_go_into_the_log(run: Run, cluster: Cluster) -> None:
    """The last of these: there is no way back."""
    raised = ("FeatureCommand", "upgrade", "--feature", "kraft.version=1")
    eventually(lambda: "kraft.version was upgraded to 1" in run(*raised).stdout, 60.0)
    told = run("FeatureCommand", "describe").succeeded().stdout
    assert re.search(r"Feature: kraft.version.*FinalizedVersionLevel: 1", told), told
    lowered = run("FeatureCommand", "downgrade", "--feature", "kraft.version=0")
    assert "Could not downgrade kraft.version" in lowered.stdout + lowered.stderr
    status = run("MetadataQuorumCommand", "describe", "--status").succeeded().stdout
    assert re.search(
        r'CurrentVoters:.*"id": 4, "directoryId": "[^"]{22}", "endpoints": \["CONTROLLER://', status
    )
    cluster.node(story.active_controller(cluster)).kill()
    heal(cluster)
    create(cluster, "after-the-upgrade", [[1, 2, 3]])
