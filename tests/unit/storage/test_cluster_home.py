"""A cluster's data directory is taken whole: formatted in one step, moved once, and left alone where it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.storage.cluster_home import ClusterHome
from strandline.storage.directory import UnusableDirectory
from tests.disks import QuickDisk
from tests.unit.storage.data_directories import CLUSTER_ID, OTHER_CLUSTER_ID, format_log_directory


class Crash(Exception):
    """The process ended here."""


class CrashingDisk(QuickDisk):
    """Ends the process before the step with this number that changes something on the disk."""

    def __init__(self, last_step: int) -> None:
        super().__init__()
        self.steps_left = last_step

    def _step(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise Crash

    def rename(self, old: str, new: str) -> None:
        self._step()
        super().rename(old, new)

    def make_directory(self, path: str) -> None:
        self._step()
        super().make_directory(path)

    def remove_directory(self, path: str) -> None:
        self._step()
        super().remove_directory(path)

    def sync_directory(self, path: str) -> None:
        self._step()


def format_node(node_id: int, path: str) -> None:
    assert not Path(path).exists(), "a node begins with nothing"
    format_log_directory(Path(path), node_id)


def never(node_id: int, path: str) -> None:
    raise AssertionError(f"node {node_id} is formatted at {path}")


def tree(path: Path) -> set[str]:
    return {str(each.relative_to(path)) for each in path.rglob("*")}


@pytest.fixture
def old_cluster(tmp_path: Path) -> Path:
    """Three nodes where 0.1.0 put them, with the files that it had beside them."""
    data = tmp_path / "data"
    for node_id in (1, 2, 3):
        node = format_log_directory(data / f"node-{node_id}", node_id)
        (node / "kept").write_text(f"of node {node_id}")
        (data / f"node-{node_id}.stderr").write_text(f"log of node {node_id}")
        (data / f"node-{node_id}.properties").touch()
    return data


def check_moved(data: Path) -> None:
    for node_id in (1, 2, 3):
        assert (data / "nodes" / str(node_id) / "kept").read_text() == f"of node {node_id}"
        assert (data / "nodes" / f"{node_id}.stderr").read_text() == f"log of node {node_id}"
        assert (data / "nodes" / f"{node_id}.properties").exists()
    assert sorted(each.name for each in data.iterdir()) == [".lock", "nodes"]


def test_a_new_cluster_is_formatted_and_found_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    home = ClusterHome(QuickDisk(), str(data), 3)
    assert home.is_new
    assert not data.exists(), "to look at it makes nothing"
    assert home.take(CLUSTER_ID, format_node) == CLUSTER_ID
    assert sorted(each.name for each in data.iterdir()) == [".lock", "nodes"]
    home.release()
    again = ClusterHome(QuickDisk(), str(data), 3)
    assert not again.is_new
    assert again.take(OTHER_CLUSTER_ID, never) == CLUSTER_ID
    again.release()


def test_a_cluster_that_was_not_formatted_whole_is_formatted_again(tmp_path: Path) -> None:
    def stop_at_the_second(node_id: int, path: str) -> None:
        if node_id == 2:
            raise Crash
        format_log_directory(Path(path), node_id, OTHER_CLUSTER_ID)

    home = ClusterHome(QuickDisk(), str(tmp_path), 3)
    with pytest.raises(Crash):
        home.take(OTHER_CLUSTER_ID, stop_at_the_second)
    format_log_directory(tmp_path / "nodes.part" / "1", 1, OTHER_CLUSTER_ID)  # had the process been killed
    home = ClusterHome(QuickDisk(), str(tmp_path), 3)
    assert home.is_new
    assert home.take(CLUSTER_ID, format_node) == CLUSTER_ID
    home.release()
    assert sorted(each.name for each in tmp_path.iterdir()) == [".lock", "nodes"]
    assert ClusterHome(QuickDisk(), str(tmp_path), 3).take(OTHER_CLUSTER_ID, never) == CLUSTER_ID


def test_the_old_layout_is_moved_once(old_cluster: Path) -> None:
    home = ClusterHome(QuickDisk(), str(old_cluster), 3)
    assert not home.is_new
    assert home.take(OTHER_CLUSTER_ID, never) == CLUSTER_ID
    check_moved(old_cluster)
    home.release()
    assert ClusterHome(QuickDisk(), str(old_cluster), 3).take(OTHER_CLUSTER_ID, never) == CLUSTER_ID


@pytest.mark.parametrize("last_step", range(15))
def test_a_move_that_ends_anywhere_goes_on(last_step: int, old_cluster: Path) -> None:
    disk = CrashingDisk(last_step)
    try:
        ClusterHome(disk, str(old_cluster), 3).take(OTHER_CLUSTER_ID, never)
    except Crash:
        home = ClusterHome(QuickDisk(), str(old_cluster), 3)
        assert home.take(OTHER_CLUSTER_ID, never) == CLUSTER_ID
    else:
        assert last_step == 14, "every step but the last ones is tried"
    check_moved(old_cluster)


@pytest.mark.parametrize("user", [".", "node-1", "node-3"])
def test_a_directory_in_use_is_not_moved(user: str, old_cluster: Path) -> None:
    home = ClusterHome(QuickDisk(), str(old_cluster), 3)
    other = QuickDisk()
    assert other.lock(f"{old_cluster}/{user}/.lock")  # after it was looked at
    with pytest.raises(UnusableDirectory, match="in use by process"):
        home.take(OTHER_CLUSTER_ID, never)
    assert not (old_cluster / "nodes").exists()
    with pytest.raises(UnusableDirectory, match="in use by process"):
        ClusterHome(QuickDisk(), str(old_cluster), 3)
    other.unlock(f"{old_cluster}/{user}/.lock")
    home = ClusterHome(QuickDisk(), str(old_cluster), 3)
    home.take(OTHER_CLUSTER_ID, never)
    check_moved(old_cluster)


def test_a_directory_that_another_process_has_filled_meanwhile_is_not_formatted_over(tmp_path: Path) -> None:
    home = ClusterHome(QuickDisk(), str(tmp_path), 3)
    format_log_directory(tmp_path, 1)
    with pytest.raises(UnusableDirectory, match="holds a single broker"):
        home.take(CLUSTER_ID, never)
    assert QuickDisk().lock(f"{tmp_path}/.lock"), "the lock is free again"


@pytest.mark.parametrize("count", [2, 4])
def test_a_refused_directory_stays_as_it_was(count: int, old_cluster: Path) -> None:
    before = tree(old_cluster)
    with pytest.raises(UnusableDirectory):
        ClusterHome(QuickDisk(), str(old_cluster), count)
    assert tree(old_cluster) == before


def test_an_empty_folder_for_nodes_is_used(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    assert ClusterHome(QuickDisk(), str(tmp_path), 2).take(CLUSTER_ID, format_node) == CLUSTER_ID
