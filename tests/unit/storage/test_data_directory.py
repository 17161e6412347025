"""The contents of a data directory decide who may open it: a single broker, a cluster, or nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.ids import TopicPartition, uuid_text
from strandline.storage import names
from strandline.storage.data_directory import (
    NODES,
    NODES_IN_PREPARATION,
    ClusterPlan,
    DataDirectory,
    Move,
    NodeDirectory,
    check_broker,
    check_node_alone,
    contents_of,
    data_directory_around,
    plan_cluster,
    user_of,
)
from strandline.storage.directory import UnusableDirectory
from tests.disks import QuickDisk
from tests.unit.storage.data_directories import CLUSTER_ID, OTHER_CLUSTER_ID, format_log_directory


def nodes(*ids: int, cluster_id: str = "c") -> tuple[NodeDirectory, ...]:
    return tuple(NodeDirectory(node_id, f"/d/nodes/{node_id}", cluster_id) for node_id in ids)


def old_nodes(*ids: int, cluster_id: str = "c") -> tuple[NodeDirectory, ...]:
    return tuple(NodeDirectory(node_id, f"/d/node-{node_id}", cluster_id) for node_id in ids)


NOTHING = DataDirectory(path="/d")
BROKER = DataDirectory(path="/d", has_broker=True, has_partitions=True)
CLUSTER = DataDirectory(path="/d", nodes=nodes(1, 2, 3))
OLD_CLUSTER = DataDirectory(path="/d", old_nodes=old_nodes(1, 2, 3))
HALF_MOVED = DataDirectory(path="/d", nodes=nodes(1, 2), old_nodes=old_nodes(3))
BOTH_LAYOUTS = DataDirectory(path="/d", nodes=nodes(1, 2, 3), old_nodes=old_nodes(2))
SHARED = DataDirectory(path="/d", has_broker=True, old_nodes=old_nodes(1, 2, 3))


@pytest.mark.parametrize("found", [NOTHING, BROKER])
def test_a_broker_opens_a_directory_without_nodes(found: DataDirectory) -> None:
    check_broker(found, None)


@pytest.mark.parametrize("found", [CLUSTER, OLD_CLUSTER, HALF_MOVED])
def test_a_cluster_s_directory_is_refused_to_a_broker_with_the_command_that_opens_it(
    found: DataDirectory,
) -> None:
    with pytest.raises(UnusableDirectory) as refusal:
        check_broker(found, None)
    assert "holds a cluster of 3 nodes" in str(refusal.value)
    assert "`strandline up --nodes 3 --data /d`" in str(refusal.value)


def test_the_command_is_written_as_a_shell_reads_it() -> None:
    found = DataDirectory(path="/my data", nodes=nodes(1, 2))
    with pytest.raises(UnusableDirectory, match="--data '/my data'`"):
        check_broker(found, None)


def test_a_cluster_of_one_node_is_opened_as_the_broker_that_it_is() -> None:
    with pytest.raises(UnusableDirectory, match=r"a cluster of 1 node, .*`strandline up --data /d/nodes/1`"):
        check_broker(DataDirectory(path="/d", nodes=nodes(1)), None)


def test_log_directories_of_several_clusters_are_refused_to_a_broker_without_a_command() -> None:
    strangers = old_nodes(1) + old_nodes(2, cluster_id="other")
    with pytest.raises(UnusableDirectory, match=r"/d/node-1 and /d/node-2\. Choose another"):
        check_broker(DataDirectory(path="/d", old_nodes=strangers), None)


@pytest.mark.parametrize("count", [1, 3])
def test_a_cluster_begins_in_an_empty_directory(count: int) -> None:
    assert plan_cluster(NOTHING, count, None) == ClusterPlan(None, ())


def test_a_cluster_is_opened_with_its_nodes_where_they_are() -> None:
    assert plan_cluster(CLUSTER, 3, None) == ClusterPlan("c", ())


def test_nodes_of_the_old_layout_are_moved() -> None:
    moves = tuple(Move(f"/d/node-{n}", f"/d/nodes/{n}") for n in (1, 2, 3))
    assert plan_cluster(OLD_CLUSTER, 3, None) == ClusterPlan("c", moves)


def test_a_move_that_was_interrupted_goes_on() -> None:
    assert plan_cluster(HALF_MOVED, 3, None) == ClusterPlan("c", (Move("/d/node-3", "/d/nodes/3"),))


@pytest.mark.parametrize("found", [CLUSTER, OLD_CLUSTER, HALF_MOVED])
def test_a_cluster_keeps_its_number_of_nodes(found: DataDirectory) -> None:
    with pytest.raises(UnusableDirectory, match="holds a cluster of 3 nodes, not of 5"):
        plan_cluster(found, 5, None)


def test_a_broker_s_directory_is_refused_to_a_cluster_with_the_command_that_opens_it() -> None:
    with pytest.raises(UnusableDirectory, match=r"holds a single broker.* `strandline up --data /d`"):
        plan_cluster(BROKER, 3, None)


def test_a_node_in_both_layouts_is_refused_with_both_paths() -> None:
    with pytest.raises(UnusableDirectory) as refusal:
        plan_cluster(BOTH_LAYOUTS, 3, None)
    assert "/d/node-2 and /d/nodes/2 are both node 2" in str(refusal.value)
    assert "Move /d/node-2 into a directory" in str(refusal.value)


def test_nodes_of_two_clusters_are_not_put_together() -> None:
    found = DataDirectory(path="/d", nodes=nodes(1, 2), old_nodes=old_nodes(3, cluster_id="other"))
    with pytest.raises(UnusableDirectory, match="/d/nodes/1 and /d/node-3 belong to different clusters"):
        plan_cluster(found, 3, None)


def test_a_node_whose_identity_cannot_be_read_is_refused() -> None:
    found = DataDirectory(path="/d", old_nodes=old_nodes(1, 2) + old_nodes(3, cluster_id=""))
    with pytest.raises(UnusableDirectory, match=r"/d/node-3/meta\.properties is damaged"):
        plan_cluster(found, 3, None)


def test_a_broker_and_a_cluster_in_one_directory_are_refused_to_both_with_the_way_to_part_them() -> None:
    for refuse in (lambda: check_broker(SHARED, None), lambda: plan_cluster(SHARED, 3, None)):
        with pytest.raises(UnusableDirectory) as refusal:
            refuse()
        said = str(refusal.value)
        assert "a single broker and a cluster of 3 nodes" in said
        assert "Move /d/node-1, /d/node-2 and /d/node-3 into a directory of their own" in said
        assert "`strandline up --nodes 3 --data DIRECTORY`" in said
        assert "`strandline up --data /d` opens the broker" in said
    with pytest.raises(UnusableDirectory, match="Move /d/nodes into"):
        check_broker(DataDirectory(path="/d", has_broker=True, nodes=nodes(1, 2)), None)


@pytest.mark.parametrize(("user", "said"), [(77, "process 77"), (0, "another process")])
def test_a_directory_in_use_is_refused_to_both_and_says_by_whom(user: int, said: str) -> None:
    with pytest.raises(UnusableDirectory, match=f"{said}, which runs a cluster of 3 nodes"):
        check_broker(CLUSTER, user)
    with pytest.raises(UnusableDirectory, match=f"{said}, which runs a cluster of 3 nodes"):
        plan_cluster(CLUSTER, 3, user)
    with pytest.raises(UnusableDirectory, match=f"{said}, which runs a single broker"):
        plan_cluster(BROKER, 3, user)


def test_partitions_and_strange_things_are_not_formatted_over() -> None:
    with pytest.raises(UnusableDirectory, match="not formatted over"):
        plan_cluster(DataDirectory(path="/d", has_partitions=True), 3, None)
    with pytest.raises(UnusableDirectory, match="/d/nodes, where a cluster's nodes would be"):
        plan_cluster(DataDirectory(path="/d", is_nodes_taken=True), 3, None)


def test_one_node_of_a_cluster_is_not_opened_alone() -> None:
    with pytest.raises(UnusableDirectory, match=r"holds node 2 of a cluster.*--nodes 3 --data /d`"):
        check_node_alone("/d/nodes/2", CLUSTER)
    with pytest.raises(UnusableDirectory, match=r"holds node 2 of a cluster.*--nodes 3 --data /d`"):
        check_node_alone("/d/node-2", OLD_CLUSTER)


def test_a_broker_that_lies_beside_others_is_opened_alone() -> None:
    strangers = old_nodes(1) + old_nodes(2, cluster_id="other")
    check_node_alone("/d/node-1", DataDirectory(path="/d", old_nodes=strangers))
    check_node_alone("/d/nodes/1", DataDirectory(path="/d", nodes=nodes(1)))
    check_node_alone("/d/node-9", OLD_CLUSTER)


@pytest.mark.parametrize(
    ("path", "around"),
    [
        ("/d/nodes", "/d"),
        ("/d/nodes/12", "/d"),
        ("/d/node-12", "/d"),
        ("/d/nodes/x", None),
        ("/d/other/1", None),
        ("/d/node-x", None),
        ("/d", None),
    ],
)
def test_the_data_directory_around_a_node_is_known_by_names(path: str, around: str | None) -> None:
    assert data_directory_around(path) == around


# What is found on a disk


def test_contents_are_told_apart_by_meta_properties(tmp_path: Path) -> None:
    disk, data = QuickDisk(), tmp_path / "data"
    assert contents_of(disk, str(data)) == DataDirectory(path=str(data))
    for node_id in (10, 2):
        format_log_directory(data / "nodes" / str(node_id), node_id)
    format_log_directory(data / "node-1", 1, OTHER_CLUSTER_ID)
    for name in ("node-3", "node-0", "node-01", "node-x", "nodes/3", "nodes/x", "t-0"):
        (data / name).mkdir()
    (data / "nodes" / "2.properties").touch()
    assert contents_of(disk, str(data)) == DataDirectory(
        path=str(data),
        has_partitions=True,
        nodes=(
            NodeDirectory(2, f"{data}/nodes/2", CLUSTER_ID),
            NodeDirectory(10, f"{data}/nodes/10", CLUSTER_ID),
        ),
        old_nodes=(NodeDirectory(1, f"{data}/node-1", OTHER_CLUSTER_ID),),
    )


def test_a_broker_with_a_topic_called_node_is_no_cluster(tmp_path: Path) -> None:
    format_log_directory(tmp_path, 1)
    for name in ("node-0", "node-1", "node-2.abc-delete", "nodes-0", "nodes-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "partition.metadata").touch()
    found = contents_of(QuickDisk(), str(tmp_path))
    assert (found.has_broker, found.all_nodes) == (True, ())
    check_broker(found, None)


def test_a_meta_properties_of_another_node_or_without_sense_gives_no_cluster(tmp_path: Path) -> None:
    format_log_directory(tmp_path / "node-1", 2)
    (tmp_path / "node-2").mkdir()
    (tmp_path / "node-2" / "meta.properties").write_text("cluster.id")
    assert [node.cluster_id for node in contents_of(QuickDisk(), str(tmp_path)).old_nodes] == ["", ""]


def test_a_folder_called_nodes_is_left_alone_if_it_is_somebody_else_s(tmp_path: Path) -> None:
    disk = QuickDisk()
    (tmp_path / "nodes").mkdir()
    assert not contents_of(disk, str(tmp_path)).is_nodes_taken
    (tmp_path / "nodes" / "readme").touch()
    assert contents_of(disk, str(tmp_path)).is_nodes_taken
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "nodes").touch()
    assert contents_of(disk, f"{tmp_path}/file").is_nodes_taken


def test_the_user_of_a_directory_is_who_holds_its_lock_or_that_of_a_node(tmp_path: Path) -> None:
    disk = QuickDisk()
    format_log_directory(tmp_path / "node-1", 1)
    found = contents_of(disk, str(tmp_path))
    assert user_of(disk, found) is None
    for lock in (tmp_path / ".lock", tmp_path / "node-1" / ".lock"):
        assert disk.lock(str(lock))
        assert user_of(disk, found) is not None
        disk.unlock(str(lock))
    assert user_of(disk, found) is None


LEGAL_TOPICS = st.text("abcdnodespart._-0123456789ABC", min_size=1, max_size=249).filter(
    lambda name: name not in (".", "..")
)


@given(topic=LEGAL_TOPICS, index=st.integers(0, 2**31 - 1), unique=st.binary(min_size=16, max_size=16))
def test_no_partition_has_the_name_of_something_that_a_cluster_keeps(
    topic: str, index: int, unique: bytes
) -> None:
    partition = TopicPartition(topic, index)
    possible = {
        names.partition_directory(partition),
        names.deleted_directory(partition, unique.hex()),
        names.stray_directory(partition, uuid_text(unique)),
        f"{names.partition_directory(partition)}.{unique.hex()}-future",
    }
    assert all("-" in name for name in possible)
    assert not any("-" in name for name in (NODES, NODES_IN_PREPARATION, names.LOCK))
