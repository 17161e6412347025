"""Commands find their cluster by options, contexts and the environment, and say so if there is none."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strandline.cli import contexts
from strandline.testing.clusters import wait_until
from tests.system.cli.conftest import Ran
from tests.system.commands import heed_interrupts

Run = Callable[..., Ran]
Json = Callable[..., Any]


@pytest.mark.parametrize(
    "command",
    [
        ["topics", "list"],
        ["topics", "create", "t"],
        ["groups", "list"],
        ["configs", "list"],
        ["consume", "t", "--exit"],
        ["produce", "t", "--timeout", "2"],
    ],
)
def test_an_unreachable_cluster_is_a_quick_error(command: list[str], run: Run) -> None:
    began = time.monotonic()
    ran = run(*command, "-b", "127.0.0.1:1", stdin=b"x\n")
    assert (ran.code, "see whether the brokers are up" in ran.err) == (3, True), ran.err
    assert time.monotonic() - began < 15
    assert "Traceback" not in ran.err


def test_an_address_that_is_none_is_wrong_use(run: Run) -> None:
    assert run("topics", "list", "-b", "localhost:port").code == 2
    assert run("topics", "list", "-X", "novalue").code == 2
    ran = run("topics", "list", "-X", "bootstrap.server=localhost:1")
    assert (ran.code, "did you mean bootstrap.servers" in ran.err) == (2, True)


def test_a_peer_that_says_nothing_costs_the_timeout_and_no_more(run: Run) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        ran = run("topics", "list", "-b", f"127.0.0.1:{silent.getsockname()[1]}", "--timeout", "1")
    assert ran.code == 3
    assert time.monotonic() - began < 15


def test_a_context_leads_to_its_cluster_and_hides_secrets(
    run: Run, json_of: Json, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STRANDLINE_BOOTSTRAP_SERVERS")
    added = json_of("context", "add", "here", "-b", bootstrap, "-X", "client.id=me")
    assert added["current"] is True
    assert stat.S_IMODE(os.stat(contexts.path()).st_mode) == 0o600
    assert run("topics", "list").code == 0
    assert (
        json_of("context", "add", "away", "-b", "127.0.0.1:1", "-X", "sasl.password=hidden-word")["current"]
        is False
    )
    listed = run("context", "list")
    assert ("hidden-word" in listed.out, "(hidden)" in listed.out) == (False, True)
    assert "hidden-word" not in run("context", "list", "--json").out
    assert run("topics", "list", "--context", "away", "--timeout", "1").code in (2, 3)
    json_of("context", "use", "away")
    assert run("topics", "list", "-b", bootstrap).code == 0, "an address needs no context"
    assert run("topics", "list", "--context", "here").code == 0
    monkeypatch.setenv("STRANDLINE_CONTEXT", "here")
    assert run("topics", "list").code == 0
    json_of("context", "remove", "here")
    ran = run("topics", "list")
    assert (ran.code, "there is no context here; there are: away" in ran.err) == (4, True)


def test_settings_come_from_a_file_of_properties(run: Run, bootstrap: str, tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("client.id=me\nlinger.ms=5\n")
    file = str(tmp_path / "client.properties")
    assert run("topics", "list", "--command-config", file, "-b", bootstrap).code == 0
    assert run("topics", "list", "--command-config", str(tmp_path / "none"), "-b", bootstrap).code == 2


def test_contexts_that_cannot_be_read_are_errors(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRANDLINE_BOOTSTRAP_SERVERS")
    contexts.path().write_text("{")
    ran = run("topics", "list")
    assert (ran.code, "correct the file or remove it" in ran.err) == (2, True)


def test_an_interrupted_reader_ends_at_once_and_without_a_traceback(run: Run, bootstrap: str) -> None:
    assert run("topics", "create", "followed").code == 0
    reader = subprocess.Popen(
        [sys.executable, "-m", "strandline", "consume", "followed", "-b", bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,  # noqa: PLW1509  it only sets a signal
    )
    try:
        time.sleep(1.5)
        reader.send_signal(signal.SIGINT)
        out, err = reader.communicate(timeout=15)
    finally:
        reader.kill()
    assert (reader.returncode, out, err) == (130, b"", b"")


def test_interrupted_measurement_ends_at_once_and_without_a_traceback(run: Run, bootstrap: str) -> None:
    assert run("topics", "create", "interrupted").code == 0
    producer = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "strandline",
            "perf",
            "produce",
            "interrupted",
            "-n",
            "9000000",
            "-b",
            bootstrap,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,  # noqa: PLW1509  it only sets a signal
    )
    try:
        wait_until(lambda: run("consume", "interrupted", "--exit", "--max", "1").out != "")
        producer.send_signal(signal.SIGINT)
        out, err = producer.communicate(timeout=30)
    finally:
        producer.kill()
    assert (producer.returncode, out, err) == (130, b"", b"")


def test_thousands_of_topics_are_listed(run: Run, json_of: Json, bootstrap: str) -> None:
    names = [f"many-{i}" for i in range(1000)]
    for start in range(0, len(names), 250):
        assert run("topics", "create", *names[start : start + 250]).code == 0
    assert len(json_of("topics", "list", "many-*")["topics"]) == len(names)
    assert run("topics", "delete", "many-*", "-y").code == 0
