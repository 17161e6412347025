"""A command that cannot do its work says so in a sentence, never with a traceback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline.cli import logs
from strandline.cli.exit_codes import UNREACHABLE
from strandline.cli.given_settings import read_settings
from strandline.cli.main import main
from strandline.client.errors import ConnectionFailedError
from strandline.node import launcher
from strandline.pipeline.runtime import validation
from strandline.spark.runtime import java
from strandline.testing.clusters import Cluster
from tests.json_shapes import checked_lines
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


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--samples", "-1"], "-1 is not valid as count: give a number from 0 to 10000"),
        (["--samples", "many"], "many is not valid as count"),
        (["--spark", "spark.executor.cores"], "--spark spark.executor.cores must be KEY=VALUE"),
        (["--spark", "executor.cores=1"], "--spark executor.cores is not a setting of Spark"),
        (["--master", "nowhere"], "--master cannot be 'nowhere'"),
    ],
)
def test_an_audit_that_cannot_be_is_refused_before_spark(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["pipeline", "audit", "ledger", *arguments])
    except SystemExit as error:
        status = int(error.code or 0)
    assert (status, text in capsys.readouterr().err) == (2, True)


def test_a_cluster_that_is_refused_leaves_no_directory(
    temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--nodes", "3", "--ephemeral", "--set", "num.partitions=0"]) == 2
    assert "num.partitions" in capsys.readouterr().err
    assert list(temporary.iterdir()) == []


@pytest.mark.usefixtures("own_signals")
def test_a_cluster_that_does_not_respond_is_stopped_and_told_of(
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
    listed = ["sim", "list", "--json"]
    assert main(listed) == 0
    found = checked_lines(capsys.readouterr().out, listed)
    assert "kills" in [each["name"] for each in found]
    for command in (
        ["sim", "run", "kills", "--seeds", "1", "--json"],
        ["sim", "replay", "0", "--scenario", "kills"],
    ):
        arguments = [*command, "--json"]
        assert main(arguments) == 0
        assert checked_lines(capsys.readouterr().out, arguments)[0]["scenario"] == "kills"


def test_pipelines_are_explained_and_stopped_for_programs_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)

    def printed(code: int, *command: str) -> Any:
        arguments = ["pipeline", command[0], str(path), *command[1:], "--json"]
        assert main(arguments) == code
        return checked_lines(capsys.readouterr().out, arguments)[0]

    assert [each["name"] for each in printed(0, "explain", "--no-spark")["stages"]] == ["orders", "big"]
    assert printed(1, "stop") == {"pipeline": "orders", "was_running": False, "has_ended": False}
    assert printed(1, "status") == {"pipeline": "orders", "state": "never ran"}
    assert printed(0, "validate", "--no-spark", "--no-brokers")["mistakes"] == []
    path.write_text(SPEC.replace("from:", "form:"))
    assert printed(1, "validate", "--no-spark", "--no-brokers")["mistakes"]


def test_a_port_for_metrics_that_is_in_use_is_told(
    tmp_path: Path, taken_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    assert main(["pipeline", "run", str(path), "--metrics-port", str(taken_port)]) == 1
    told = capsys.readouterr().err
    assert f"--metrics-port {taken_port}: " in told
    assert "Address already in use" in told


@pytest.mark.parametrize("given", ["70000", "-1", "http", "9.5"])
def test_a_port_for_metrics_that_is_none_is_told(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pipeline", "run", "spec.yaml", f"--metrics-port={given}"])
    assert f"{given} is not valid as port: give a number from 0 to 65535" in capsys.readouterr().err


def test_an_error_of_spark_is_told_without_its_stack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import PySparkRuntimeError

    def refuse(spec: object) -> None:
        error = PySparkRuntimeError("no session was made:\n\tat org.apache.spark.Somewhere")
        error._cause = PySparkRuntimeError("shuffle.partitions is no number\n\tat org.apache.spark.Deeper")  # type: ignore[attr-defined]
        raise error

    monkeypatch.setattr(validation, "session_of", refuse)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    assert main(["pipeline", "validate", str(path), "--no-brokers"]) == 1
    assert capsys.readouterr().err == "strandline: Spark says: shuffle.partitions is no number\n"


def test_a_missing_requirement_of_a_pipeline_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "pipeline").write_text("where the state is to be")
    assert main(["pipeline", "run", str(path)]) == 1
    assert "strandline: [Errno 17] File exists" in capsys.readouterr().err
    monkeypatch.setattr(java, "VERSIONS", range(1, 2))
    for action in (["validate", "--no-brokers"], ["explain"]):
        assert main(["pipeline", *action, str(path)]) == 1
        assert "strandline: Spark needs Java" in capsys.readouterr().err


def test_a_refusal_by_brokers_of_a_pipeline_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(spec: object) -> None:
        raise ConnectionFailedError(None, "nobody responds")

    monkeypatch.setattr(validation, "check_topics", refuse)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    assert main(["pipeline", "validate", str(path), "--no-spark"]) == 1
    assert "nobody responds" in capsys.readouterr().err


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
        assert (
            main(["log", "at", "--time", "0", "--timeout", "0.1", "--bootstrap-server", where]) == UNREACHABLE
        )
        assert time.monotonic() - began < 10
    assert "no metadata in time" in capsys.readouterr().err


def test_an_interrupted_command_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(logs, "call", interrupted)
    assert main(["log", "at", "--time", "0"]) == 130
    assert capsys.readouterr().err == ""


def test_variables_in_a_file_of_settings_are_filled_in_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRANDLINE_TEST_DATA", str(tmp_path / "data"))
    file = tmp_path / "server.properties"
    settings = launcher.embedded_settings(port=0, data="${env:STRANDLINE_TEST_DATA}") | {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    }
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = ["format", "--config", str(file), "--json"]
    assert main(command) == 0
    (formatted,) = checked_lines(capsys.readouterr().out, command)
    assert formatted["formatted"] == [str(tmp_path / "data")]
    assert (tmp_path / "data" / "meta.properties").exists()
    file.write_text(file.read_text() + "config.providers.env.class=org.example.Vault\n")
    for command in ("format", "server"):
        assert main([command, "--config", str(file)]) == 2
        assert "config.providers.env.class: Java classes of one's own" in capsys.readouterr().err


@pytest.mark.parametrize("time_given", ["nan", "inf", "-1", "1e10", "soon"])
@pytest.mark.parametrize(
    "command",
    [
        ["log", "at", "--time", "0", "--timeout"],
        ["dlq", "redrive", "t", "--timeout"],
        ["pipeline", "stop", "spec.yaml", "--timeout"],
        ["sim", "run", "--seconds"],
    ],
)
def test_a_time_that_is_none_is_refused(
    command: list[str], time_given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*command[:-1], f"{command[-1]}={time_given}"])
    assert (
        f"{command[-1]}: {time_given} is not a time: give seconds from 0 to 1000000"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("moment", ["1969-12-31T23:59:59.999Z", "9" * 25, "yesterday"])
def test_a_moment_that_no_record_can_have_is_refused(moment: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "at", "--time", moment, "--bootstrap-server", "localhost:1"]) == 2
    assert f"--time {moment}: give 2026-01-31T12:00:00Z, or milliseconds" in capsys.readouterr().err


def test_the_timestamp_of_a_record_is_shown_whatever_it_is() -> None:
    assert logs._iso(1_700_000_000_123) == "2023-11-14T22:13:20.123+00:00"
    assert logs._iso(1_700_000_000_123_456) == "1700000000123456 ms", "microseconds, by mistake"


def test_settings_of_a_scenario_that_a_broker_refuses_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text('workloads = ["log"]\n[settings]\n"num.partitions" = 0\n')
    assert main(["sim", "run", str(tmp_path / "mine.toml"), "--seeds", "1"]) == 2
    assert "strandline: Invalid value 0 for configuration num.partitions" in capsys.readouterr().err


def test_pages_that_cannot_be_written_are_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["docs", "--write", str(tmp_path / "file" / "pages")]) == 2
    said = capsys.readouterr().err
    assert said == f"strandline: the pages cannot be written: {tmp_path}/file/pages: Not a directory\n"


@pytest.mark.parametrize("command", [["docs"], ["sim", "list"], ["--help"], ["log", "dump", "."]])
def test_a_reader_that_has_seen_enough_ends_a_command_without_a_word(
    command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "strandline.cli.main", *command],
            check=False,
            stdout=writing,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            timeout=60,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_properties_are_read_in_either_encoding(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_bytes("broker.rack=K\xf6ln\nnode.id=1\n".encode(encoding))
    assert read_settings(str(tmp_path / "server.properties")) == {"broker.rack": "K\xf6ln", "node.id": "1"}
