"""Directories that commands refuse: with the command that opens them, and without a trace of the try."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strandline.cli.main import main
from strandline.config import render_properties
from strandline.node.launcher import embedded_settings
from tests.unit.storage.data_directories import OTHER_CLUSTER_ID, format_log_directory


def tree(path: Path) -> dict[str, bytes | None]:
    return {
        str(each.relative_to(path)): each.read_bytes() if each.is_file() else None
        for each in sorted(path.rglob("*"))
    }


def cluster(data: Path) -> None:
    for node_id in (1, 2, 3):
        format_log_directory(data / "nodes" / str(node_id), node_id)


def old_cluster(data: Path) -> None:
    for node_id in (1, 2, 3):
        format_log_directory(data / f"node-{node_id}", node_id)


def half_moved(data: Path) -> None:
    old_cluster(data)
    (data / "nodes").mkdir()
    (data / "node-2").rename(data / "nodes" / "2")


def broker(data: Path) -> None:
    format_log_directory(data, 1)


def both_layouts(data: Path) -> None:
    cluster(data)
    format_log_directory(data / "node-2", 2, OTHER_CLUSTER_ID)


def broker_and_cluster(data: Path) -> None:
    broker(data)
    old_cluster(data)


def partitions(data: Path) -> None:
    (data / "t-0").mkdir(parents=True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port on which no node can start, so that a start which should have been refused does not stay."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


@pytest.mark.parametrize("command", ["up", "server", "format"])
@pytest.mark.parametrize("make", [cluster, old_cluster, half_moved])
def test_a_cluster_s_directory_is_refused_to_a_broker(
    command: str,
    make: Callable[[Path], None],
    data: Path,
    taken_port: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make(data)
    file = tmp_path / "server.properties"
    settings = embedded_settings(port=taken_port, data=str(data), host="127.0.0.1")
    file.write_text(render_properties(settings))
    port = ["--port", str(taken_port), "--host", "127.0.0.1"]
    arguments = [*port, "--data", str(data)] if command == "up" else ["--config", str(file)]
    before = tree(data)
    assert main([command, *arguments]) == 2
    said = capsys.readouterr().err
    assert f"{data} holds a cluster of 3 nodes" in said
    assert f"`strandline up --nodes 3 --data {data}`" in said
    assert tree(data) == before


@pytest.mark.parametrize(
    ("make", "nodes", "said"),
    [
        (broker, "3", "holds a single broker, and not a cluster: open it with `strandline up --data "),
        (cluster, "5", "holds a cluster of 3 nodes, not of 5"),
        (old_cluster, "2", "holds a cluster of 3 nodes, not of 2"),
        (both_layouts, "3", "/data/node-2 and "),
        (broker_and_cluster, "3", "holds a single broker and a cluster of 3 nodes. Move "),
        (broker_and_cluster, "1", "holds a single broker and a cluster of 3 nodes. Move "),
        (partitions, "3", "not formatted over"),
        (partitions, "1", "not formatted over"),
    ],
)
def test_a_directory_of_something_else_is_refused_and_stays_as_it_is(
    make: Callable[[Path], None], nodes: str, said: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(data)
    before = tree(data)
    assert main(["up", "--nodes", nodes, "--port", "0", "--data", str(data)]) == 2
    assert said in capsys.readouterr().err
    assert tree(data) == before


@pytest.mark.parametrize("place", ["nodes", "nodes/2", "node-2"])
def test_a_part_of_a_cluster_is_refused_to_a_broker(
    place: str, data: Path, taken_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (old_cluster if place == "node-2" else cluster)(data)
    before = tree(data)
    port = ["--port", str(taken_port), "--host", "127.0.0.1"]
    assert main(["up", *port, "--data", str(data / place)]) == 2
    assert f"`strandline up --nodes 3 --data {data}`" in capsys.readouterr().err
    assert tree(data) == before


@pytest.mark.parametrize("nodes", ["1", "3"])
@pytest.mark.parametrize("make", [None, lambda data: data.mkdir()])
def test_a_refused_start_formats_nothing(
    nodes: str,
    make: Callable[[Path], None] | None,
    taken_port: int,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if make is not None:
        make(data)
    before = tree(tmp_path)
    refused = {
        ("--port", str(taken_port), "--host", "127.0.0.1"): "Address already in use; stop the process there",
        ("--host", "nowhere.invalid"): "nowhere.invalid" if nodes == "1" else "listen on 127.0.0.1",
        ("--set", "num.partitions=0"): "num.partitions",
        ("--set", "authorizer.class.name=org.example.Own"): "authorizer.class.name",
        ("--set", "nodots"): "KEY=VALUE",
    }
    for options, said in refused.items():
        assert main(["up", "--nodes", nodes, "--data", str(data), *options]) == 2
        assert said in capsys.readouterr().err
        assert tree(tmp_path) == before


@pytest.mark.parametrize("key", ["log.dirs", "log.dir", "metadata.log.dir"])
def test_a_directory_that_all_nodes_would_share_is_refused(
    key: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--nodes", "3", "--data", str(data), "--set", f"{key}={data}/x"]) == 2
    assert f"--set {key}: each node of `up --nodes` has a directory of its own" in capsys.readouterr().err
    assert not data.exists()


@pytest.mark.parametrize("nodes", ["1", "3"])
@pytest.mark.parametrize("name", ["file", "file/data"])
def test_a_file_is_refused_as_a_directory(
    nodes: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("kept")
    assert main(["up", "--nodes", nodes, "--port", "0", "--data", str(tmp_path / name)]) == 2
    assert f"{tmp_path}/{name} is not a directory: choose a path" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize(
    ("nodes", "name", "said"),
    [("1", "x,y", "has a comma"), ("3", "x,y", "has a comma"), ("1", "x ", "begins or ends with a blank")],
)
def test_a_path_that_would_be_another_directory_is_refused(
    nodes: str,
    name: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["up", "--nodes", nodes, "--port", "0", "--data", name]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_directory_and_another_exclude_one_another(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["up", "--ephemeral", "--data", "./strandline-data"])
    assert ended.value.code == 2
    assert "--data: not allowed with argument --ephemeral" in capsys.readouterr().err


def test_a_node_of_a_cluster_is_started_by_its_own_settings(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one does by hand for a node that was killed: here it is refused for its port, not for its directory."""
    cluster(data)
    settings = embedded_settings(port=0, data=str(data / "nodes" / "1"), host="nowhere.invalid")
    settings["controller.quorum.voters"] = "1@127.0.0.1:1,2@127.0.0.1:2,3@127.0.0.1:3"
    file = tmp_path / "1.properties"
    file.write_text(render_properties(settings))
    assert main(["server", "--config", str(file)]) == 2
    assert "the node cannot start: nowhere.invalid" in capsys.readouterr().err
