"""Scenarios on real processes end as they do in the simulator, with each library's clients.

`make soak` plays all that can be played; `make test` a few that take no long timeouts.
"""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import replace

import pytest

from strandline.cli.exit_codes import FAILED, USAGE
from strandline.cli.main import main
from strandline.lab.real.clients import ClientLibrary, Strandline
from strandline.lab.real.outside import Java, Librdkafka
from strandline.lab.real.run import run_real
from strandline.lab.scenario import load, names
from strandline.lab.scenarios.leader_failure.configurations import acks_1
from strandline.lab.stage import UnsuitableClient
from tests.oracle.fetch import JAVA, KAFKA_JARS
from tests.oracle.require import require

IS_SOAK = os.environ.get("STRANDLINE_SOAK") == "1"
SHORT = [("acks-all-min-isr-2", "strandline"), ("acks-1", "librdkafka")]
REAL = [name for name in names() if not load(name).only_simulated]
LONG = [(name, client) for name in REAL for client in ("strandline", "librdkafka", "java")]
PLAYED = LONG if IS_SOAK else SHORT

pytestmark = pytest.mark.timeout(900)


def library(name: str, monkeypatch: pytest.MonkeyPatch) -> ClientLibrary:
    if name == "java":
        monkeypatch.setenv("JAVA_HOME", str(require(JAVA).parent.parent))
        monkeypatch.setenv("CLASSPATH", f"{require(KAFKA_JARS)}/*")
        return Java()
    return Librdkafka() if name == "librdkafka" else Strandline()


@pytest.mark.parametrize(("name", "client"), PLAYED)
def test_scenario_ends_as_expected_on_real_processes(
    name: str, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        run = asyncio.run(run_real(load(name), library(client, monkeypatch)))
    except UnsuitableClient as reason:
        assert client != "strandline"
        pytest.skip(f"{client}: {reason}")
    assert run.differences == [], run.timeline.as_text()


def test_scenario_that_only_the_simulator_can_play_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(acks_1, "SCENARIO", replace(acks_1.SCENARIO, only_simulated="it needs the moon"))
    assert main(["lab", "run", "acks-1", "--real"]) == FAILED
    assert "acks-1 plays only without --real: it needs the moon" in capsys.readouterr().err


def test_taken_port_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["lab", "run", "acks-1", "--real", "--port", str(port)]) == USAGE
    told = capsys.readouterr().err
    assert f"127.0.0.1:{port}: Address already in use" in told


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--port", "9092"], "--port and --client are for --real"),
        (["--client", "java"], "--port and --client are for --real"),
        (["--real", "--client", "java"], "CLASSPATH does not name Kafka's jars"),
    ],
)
def test_options_that_cannot_be_meant_are_told(
    typed: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CLASSPATH", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(require(JAVA).parent.parent))
    assert main(["lab", "run", "acks-1", *typed]) == USAGE
    assert told in capsys.readouterr().err
