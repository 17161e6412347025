"""`strandline format` for quorums whose voters are in the log: as kafka-storage does it, contradictions refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.base.ids import uuid_text
from strandline.broker.metadata.raft_log import voters_of_snapshot
from strandline.cli.main import main
from strandline.quorum.voters import Endpoint
from strandline.storage import checkpoints

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
FIRST, SECOND = uuid_text(b"1" * 16), uuid_text(b"2" * 16)
BOTH = f"1@here:9093:{FIRST},2@there:9093:{SECOND}"
SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def config(tmp_path: Path, **settings: str) -> Path:
    roles = settings.pop("roles", "controller")
    name = "CONTROLLER" if roles == "controller" else "PLAINTEXT"
    given = {
        "process.roles": roles,
        "node.id": "1",
        "listeners": f"{name}://here:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "here:9093",
        "log.dirs": f"{tmp_path}/a,{tmp_path}/b",
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    return path


def formatted(path: Path, *options: str) -> int:
    return main(("format", "--config", str(path), "--cluster-id", CLUSTER_ID, *options))


def directory_id(path: Path) -> str:
    return checkpoints.parse_properties((path / "meta.properties").read_bytes())["directory.id"]


def test_standalone_begins_a_quorum_of_one(tmp_path: Path) -> None:
    assert formatted(config(tmp_path), "--standalone") == 0
    version, voters = voters_of_snapshot((tmp_path / "a" / SNAPSHOT).read_bytes())
    assert version == 1
    assert voters is not None
    (voter,) = voters.voters
    assert (voter.key.replica_id, uuid_text(voter.key.directory_id)) == (1, directory_id(tmp_path / "a"))
    assert voter.endpoints == (Endpoint("CONTROLLER", "here", 9093),)
    assert not (tmp_path / "b" / SNAPSHOT).exists()
    assert directory_id(tmp_path / "b") != directory_id(tmp_path / "a")


def test_the_command_for_other_nodes_of_the_quorum_is_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert formatted(config(tmp_path), "--standalone") == 0
    line = capsys.readouterr().out.splitlines()[-1]
    typed = line.partition(": strandline ")[2].removesuffix("--config ...").split()
    other = tmp_path / "other"
    other.mkdir()
    assert main([*typed, "--config", str(config(other))]) == 0
    assert not (other / "a" / SNAPSHOT).exists(), "it is no voter yet"


def test_voters_are_where_the_metadata_log_is(tmp_path: Path) -> None:
    assert formatted(config(tmp_path, metadata_log_dir=f"{tmp_path}/c"), "--standalone") == 0
    assert (tmp_path / "c" / SNAPSHOT).exists()
    assert not (tmp_path / "a" / SNAPSHOT).exists()
    assert (tmp_path / "c" / "bootstrap.checkpoint").exists()


def test_initial_controllers_give_each_its_directory(tmp_path: Path) -> None:
    assert formatted(config(tmp_path), "--initial-controllers", BOTH) == 0
    assert directory_id(tmp_path / "a") == FIRST
    _, voters = voters_of_snapshot((tmp_path / "a" / SNAPSHOT).read_bytes())
    assert voters is not None
    assert [uuid_text(key.directory_id) for key in voters.keys] == [FIRST, SECOND]


def test_no_initial_controllers_leaves_the_quorum_to_others(tmp_path: Path) -> None:
    assert formatted(config(tmp_path), "--no-initial-controllers") == 0
    assert not (tmp_path / "a" / SNAPSHOT).exists()


@pytest.mark.parametrize(
    ("settings", "options", "reason"),
    [
        ({}, (), "give one of --standalone"),
        ({"controller_quorum_voters": "1@here:9093"}, ("--standalone",), "exclude one another"),
        ({"controller_quorum_voters": "1@here:9093"}, ("--initial-controllers", BOTH), "exclude one another"),
        ({"roles": "broker"}, ("--standalone",), "--standalone is for controllers"),
        ({"listeners": "CONTROLLER://here:0"}, ("--standalone",), "needs a port"),
        ({}, ("--initial-controllers", "1@here:9093"), "is not id@host:port:directory"),
        ({}, ("--initial-controllers", f"1@here:{FIRST}"), "is not id@host:port:directory"),
        ({}, ("--initial-controllers", f"{BOTH},1@x:1:{FIRST}"), "is there twice"),
        ({}, ("--initial-controllers", "1@here:9093:" + "!" * 22), "is not a directory id"),
    ],
)
def test_contradictions_are_refused_and_nothing_is_written(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, str],
    options: tuple[str, ...],
    reason: str,
) -> None:
    assert formatted(config(tmp_path, **settings), *options) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_options_exclude_one_another(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        formatted(config(tmp_path), "--standalone", "--no-initial-controllers")
