"""`strandline torture`, its pytest marker, and programs that misbehave."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.json_shapes import checked_lines

pytest_plugins = ["pytester"]
PRODUCERS = Path(__file__).parent / "programs" / "producers.py"
COMMAND = [sys.executable, "-m", "strandline.cli.main", "torture"]


IS_SOAK = os.environ.get("STRANDLINE_SOAK") == "1"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_ten_faults_are_listed() -> None:
    listed = run("--list")
    assert listed.returncode == 0
    assert len(listed.stdout.splitlines()) == 10


def test_unknown_fault_and_unknown_command_are_errors() -> None:
    assert run().returncode == 2
    unknown = run("--command", "true", "--fault", "earthquake")
    assert (unknown.returncode, "there is no fault earthquake" in unknown.stderr) == (2, True)
    missing = run("--command", "/no/such/program", "--fault", "poison-record")
    assert missing.returncode == 2
    assert "/no/such/program" in missing.stderr


@pytest.mark.skipif(not IS_SOAK, reason="one of the long ones: STRANDLINE_SOAK=1 runs it")
def test_command_that_never_ends_is_ended_and_reported() -> None:
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('begun'); time.sleep(600)"
    )
    verdict = run(
        "--role",
        "producer",
        "--command",
        shlex.join([sys.executable, "-c", script]),
        "--fault",
        "slow-broker",
        "--first-time",
        "4",
        "--json",
    )
    (result,) = checked_lines(verdict.stdout, ["torture", "--json"])
    assert (verdict.returncode, result["verdict"]) == (1, "failed")
    assert result["problems"][0]["kind"] == "stuck"
    assert any("did not end within" in note for note in result["notes"])


def test_marker_runs_a_test_once_for_each_fault(pytester: pytest.Pytester) -> None:
    command = shlex.join([sys.executable, str(PRODUCERS), "is_not_idempotent"])
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.strandline_torture(
            command={command!r}, role="producer", faults=["lost-commit-response", "rebalance"]
        )
        def test_my_producer(strandline_trial):
            strandline_trial.check()
        """
    )
    outcome = pytester.runpytest_subprocess("-q", "-rs")
    outcome.assert_outcomes(failed=1, skipped=1)
    outcome.stdout.fnmatch_lines(
        ["*duplicated: 1 in the log more than once*", "*does not concern a producer*"]
    )
