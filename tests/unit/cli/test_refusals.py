"""What the commands say when they cannot do what was asked: a sentence, never a traceback."""

from __future__ import annotations

import json
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.cli import logs
from strandline.cli.main import main
from strandline.cli.serving import read_settings
from strandline.client.errors import ConnectionFailedError
from strandline.pipeline import validating
from strandline.spark import java
from strandline.testing.clusters import Cluster
from tests.unit.pipeline.specs import SPEC


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands make temporary directories."""
    found = tmp_path / "temporary"
    found.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(found))
    return found


@pytest.fixture
def own_signals() -> Iterator[None]:
    """A command that stays listens to signals; afterwards they are the test run's again."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_a_cluster_that_is_refused_leaves_no_directory(
    temporary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--nodes", "3", "--ephemeral", "--set", "num.partitions=0"]) == 2
    assert "num.partitions" in capsys.readouterr().err
    assert list(temporary.iterdir()) == []
    (tmp_path / "file").touch()
    assert main(["up", "--nodes", "3", "--data", str(tmp_path / "file" / "data")]) == 2
    assert f"{tmp_path}/file/data: Not a directory" in capsys.readouterr().err


@pytest.mark.usefixtures("own_signals")
def test_a_cluster_that_does_not_answer_is_stopped_and_told_of(
    temporary: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: Cluster) -> None:
        raise ConnectionFailedError(None, "broker 1 at 127.0.0.1:9: not connected")

    monkeypatch.setattr(Cluster, "start", start)
    assert main(["up", "--nodes", "3", "--ephemeral", "--port", "0"]) == 2
    assert "broker 1 at 127.0.0.1:9: not connected" in capsys.readouterr().err
    assert list(temporary.iterdir()) == []


def test_a_simulation_of_faults_that_are_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "replay", "7", "--scenario", "kills", "--faults", "none.toml"]) == 2
    assert "none.toml cannot be read" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["sim", "run", "--workers", "0"])
    assert "--workers: 0 is too few" in capsys.readouterr().err


def test_scenarios_are_listed_for_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "list", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "kills" in [each["name"] for each in found]


def test_pipelines_are_explained_and_stopped_for_programs_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    assert main(["pipeline", "explain", str(path), "--no-spark", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["stages"]] == ["orders", "big"]
    assert main(["pipeline", "stop", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "pipeline": "orders",
        "was_running": False,
        "has_ended": False,
    }


def test_a_port_for_metrics_that_is_in_use_is_told(
    tmp_path: Path, taken_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    assert main(["pipeline", "run", str(path), "--metrics-port", str(taken_port)]) == 1
    assert f"--metrics-port {taken_port}: Address already in use" in capsys.readouterr().err


def test_what_a_pipeline_cannot_do_without_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("checkpoint: checkpoint", "checkpoint: spec.yaml/below/a/file"))
    assert main(["pipeline", "run", str(path)]) == 1
    assert "strandline: [Errno 20] Not a directory" in capsys.readouterr().err
    monkeypatch.setattr(java, "VERSIONS", range(1, 2))
    for action in (["validate", "--no-brokers"], ["explain"]):
        assert main(["pipeline", *action, str(path)]) == 1
        assert "strandline: Spark needs Java" in capsys.readouterr().err


def test_what_brokers_refuse_of_a_pipeline_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(spec: object) -> None:
        raise ConnectionFailedError(None, "nobody answers")

    monkeypatch.setattr(validating, "check_topics", refuse)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    assert main(["pipeline", "validate", str(path), "--no-spark"]) == 1
    assert "nobody answers" in capsys.readouterr().err


def test_a_setting_that_is_none_leaves_no_directory(
    temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--set", "nodots", "--ephemeral"]) == 2
    assert "--set nodots: write it as KEY=VALUE" in capsys.readouterr().err
    assert list(temporary.iterdir()) == []


def test_a_host_that_nobody_knows_is_named(temporary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--host", "nowhere.invalid", "--port", "0", "--ephemeral"]) == 2
    assert "the node cannot start: nowhere.invalid:0: " in capsys.readouterr().err
    assert list(temporary.iterdir()) == []


def test_the_timeout_of_log_at_holds_for_finding_the_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        assert main(["log", "at", "--time", "0", "--timeout", "0.1", "--bootstrap-server", where]) == 1
        assert time.monotonic() - began < 10
    assert "no metadata in time" in capsys.readouterr().err


def test_an_interrupted_command_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(logs, "log", interrupted)
    assert main(["log", "at", "--time", "0"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_properties_are_read_in_either_encoding(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_bytes("broker.rack=K\xf6ln\nnode.id=1\n".encode(encoding))
    assert read_settings(str(tmp_path / "server.properties")) == {"broker.rack": "K\xf6ln", "node.id": "1"}
