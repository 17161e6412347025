"""The first formatting of a real node's log directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.config import BrokerConfig
from strandline.node import directories, launcher
from strandline.node.directories import cluster_id_of, format_if_empty, only_log_directory
from strandline.node.disk import RealDisk
from strandline.storage.directory import UnusableDirectory, take_lock
from tests.unit.storage.data_directories import CLUSTER_ID, OTHER_CLUSTER_ID, format_log_directory

EVENTS = launcher.stderr_events(node=1, level="error")


def config_of(*paths: Path) -> BrokerConfig:
    settings = launcher.embedded_settings(port=0, data="unused", host="127.0.0.1")
    return BrokerConfig({**settings, "log.dirs": ",".join(map(str, paths))})


def test_a_directory_that_another_process_holds_is_not_formatted(tmp_path: Path) -> None:
    other = RealDisk()
    assert other.lock(f"{tmp_path}/.lock")
    with pytest.raises(UnusableDirectory, match="in use by process"):
        format_if_empty(config_of(tmp_path), EVENTS)
    assert [each.name for each in tmp_path.iterdir()] == [".lock"]
    other.unlock(f"{tmp_path}/.lock")
    format_if_empty(config_of(tmp_path), EVENTS, CLUSTER_ID)
    assert cluster_id_of(str(tmp_path)) == CLUSTER_ID
    assert RealDisk().lock(f"{tmp_path}/.lock"), "the lock is free again"


def test_a_directory_that_another_process_has_just_formatted_keeps_its_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def come_second(disk: RealDisk, path: str) -> None:
        format_log_directory(Path(path), 1, OTHER_CLUSTER_ID)
        take_lock(disk, path)

    monkeypatch.setattr(directories, "take_lock", come_second)
    with pytest.raises(UnusableDirectory, match="has just been formatted by another process"):
        format_if_empty(config_of(tmp_path), EVENTS, CLUSTER_ID)
    assert cluster_id_of(str(tmp_path)) == OTHER_CLUSTER_ID


def test_no_directory_is_formatted_if_one_of_them_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b" / "t-0").mkdir(parents=True)
    with pytest.raises(UnusableDirectory, match="not formatted over"):
        format_if_empty(config_of(tmp_path / "a", tmp_path / "b"), EVENTS)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("path", ["x,y", "/d/,", " x", "x\t"])
def test_a_path_that_is_not_one_directory_in_a_list_is_refused(path: str) -> None:
    with pytest.raises(UnusableDirectory, match="choose a path without"):
        only_log_directory(path)


def test_other_paths_are_taken_as_they_are() -> None:
    assert only_log_directory("./my data/back\\slash") == "./my data/back\\slash"
