"""Oracles are fetched whole or not at all, and a missing one is never silent."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import pytest

from tests.oracle import cache, fetch
from tests.oracle.debian import CannotFetchError
from tests.oracle.fetch import JAVA, KAFKA_JARS, Oracle
from tests.oracle.java_worker import JavaWorkerError
from tests.oracle.kafka_tools import KafkaTools
from tests.oracle.require import require


class Absent(Oracle):
    """Is nowhere and cannot be had."""

    name = "absent"
    why_missing = "absent is nowhere"

    def locate(self) -> Path | None:
        return None

    def fetch(self) -> None:
        raise CannotFetchError("there is no such thing")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "strandline" / "oracles"


def build_slowly(into: Path) -> None:
    (into / "built").touch()
    with (into.parent / "builds").open("a") as builds:
        builds.write("built\n")
    time.sleep(0.3)


def install_slowly() -> None:
    cache.install("thing-1", build_slowly)


def test_oracle_is_installed_once(empty_cache: Path) -> None:
    install_slowly()
    assert cache.install("thing-1", build_slowly) == cache.installed("thing-1") == empty_cache / "thing-1"
    assert (empty_cache / "builds").read_text() == "built\n"
    assert (empty_cache / "thing-1" / "built").exists()


def test_two_processes_install_once(empty_cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=install_slowly) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    assert (empty_cache / "builds").read_text() == "built\n"


def test_failed_build_leaves_nothing_to_be_found(empty_cache: Path) -> None:
    def fail(into: Path) -> None:
        (into / "half").touch()
        raise CannotFetchError("the line broke")

    with pytest.raises(CannotFetchError):
        cache.install("thing-1", fail)
    assert cache.installed("thing-1") is None
    assert cache.newest_installed("thing") is None
    assert [path.name for path in empty_cache.iterdir()] == [".thing-1.lock"]


def test_missing_oracle_skips_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRANDLINE_REQUIRE_ORACLES", raising=False)
    with pytest.raises(pytest.skip.Exception, match="absent is nowhere"):
        require(Absent())


def test_missing_oracle_fails_where_oracles_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_REQUIRE_ORACLES", "1")
    with pytest.raises(pytest.fail.Exception, match="absent is nowhere"):
        require(Absent())


@pytest.mark.parametrize(("required", "exit_code"), [("0", 0), ("1", 1)])
def test_an_oracle_that_cannot_be_fetched_is_an_error_only_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], required: str, exit_code: int
) -> None:
    monkeypatch.setenv("STRANDLINE_REQUIRE_ORACLES", required)
    monkeypatch.setattr(fetch, "ORACLES", (Absent(),))
    assert fetch.main() == exit_code
    assert capsys.readouterr().out.splitlines() == [
        "absent: fetching",
        "absent: cannot be fetched: there is no such thing",
    ]


@pytest.mark.oracle
@pytest.mark.xdist_group("apache-kafka")
def test_tool_that_takes_too_long_is_ended_and_the_next_one_runs() -> None:
    nobody = "127.0.0.1:1"
    with KafkaTools(java=require(JAVA), jars=require(KAFKA_JARS)) as tools:
        with pytest.raises(JavaWorkerError, match="no answer within"):
            tools.run("TopicCommand", "--bootstrap-server", nobody, "--list", timeout_s=3.0)
        result = tools.run("TopicCommand", "--no-such-option")
    assert result.exit_code == 1
    assert "no-such-option is not a recognized option" in result.stderr
