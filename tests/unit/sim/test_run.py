"""A trial's verdict, and how it is told: whatever goes wrong is a verdict, and what replay prints can be given back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.cli.main import main
from strandline.sim.search import run as trial
from strandline.sim.search.faults import FaultEvent
from strandline.sim.search.run import RunResult, events_of
from strandline.sim.search.scenario import Scenario, load_events, shipped


def test_an_error_that_nobody_expected_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "what a reader was given")

    monkeypatch.setattr(trial._ScenarioRun, "run", fail)
    outcome = trial.run(shipped()["kills"], 1)
    assert (outcome.verdict, outcome.is_ok) == ("KafkaError", False)
    assert "what a reader was given" in outcome.message


@pytest.fixture
def one_kill_is_enough(monkeypatch: pytest.MonkeyPatch) -> list[FaultEvent]:
    """Runs fail as long as the second fault of the seed is among them."""
    needed = events_of(shipped()["kills"], 7)[1]

    def run(plan: Scenario, seed: int, events: list[FaultEvent] | None = None) -> RunResult:
        given = events_of(plan, seed) if events is None else events
        failed = RunResult(
            scenario=plan.name,
            scenario_path=plan.path,
            seed=seed,
            events=given,
            message="lost-write: one\nmore",
        )
        failed.verdict = "lost-write" if needed in given else "ok"
        return failed

    monkeypatch.setattr(trial, "run", run)
    return [needed]


def test_faults_that_replay_prints_can_be_given_back(
    one_kill_is_enough: list[FaultEvent], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plan, path = shipped()["kills"], tmp_path / "faults.toml"
    for shrink, expected in (["--shrink"], one_kill_is_enough), ([], events_of(plan, 7)):
        assert main(["sim", "replay", "7", "--scenario", "kills", *shrink]) == 1
        path.write_text(capsys.readouterr().out)
        assert load_events(str(path), plan) == expected


def test_replay_for_machines_is_one_object(
    one_kill_is_enough: list[FaultEvent], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "replay", "7", "--scenario", "kills", "--shrink", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [FaultEvent(**each) for each in found["enough"]] == one_kill_is_enough
    assert [FaultEvent(**each) for each in found["events"]] == events_of(shipped()["kills"], 7)


def test_a_failure_in_a_scenario_of_one_s_own_can_be_replayed_by_what_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "what a reader was given")

    path = tmp_path / "mine.toml"
    path.write_text(
        'about = "one"\nspeed = "fast"\nworkloads = ["log"]\nnodes = 3\n'
        '[faults]\nkinds = ["kill"]\ncount = 1\nevery_s = 1.0\nseconds = [0.0, 1.0]\n'
    )
    monkeypatch.setattr(trial._ScenarioRun, "run", fail)
    assert main(["sim", "run", str(path), "--seeds", "1", "--workers", "1"]) == 1
    said = next(line for line in capsys.readouterr().out.splitlines() if "sim replay" in line).split()
    assert main([*said[1:]]) == 1


def test_a_seed_alone_replays_what_a_search_tries_with_it_up_to_the_first_failure(
    one_kill_is_enough: list[FaultEvent], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "replay", "7"]) == 1
    headings = [line for line in capsys.readouterr().out.splitlines() if ", seed 7:" in line]
    assert headings[-1] == "# kills, seed 7: lost-write"
    assert [line.rpartition(" ")[2] for line in headings[:-1]] == ["ok"] * (len(headings) - 1)


def test_a_search_tells_how_fast_each_scenario_was(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(plan: Scenario, seed: int, events: list[FaultEvent] | None = None) -> RunResult:
        cpu_s = 2.0 if plan.name == "kills" else 4.0
        return RunResult(scenario=plan.name, seed=seed, virtual_s=10.0 * (seed + 1), cpu_s=cpu_s)

    monkeypatch.setattr(trial, "run", run)
    assert main(["sim", "run", "kills", "power", "--seeds", "2"]) == 0
    assert "times real time: kills 7.5, power 3.8" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--seeds", "many"], "many is not a whole number"),
        (["run", "--seeds", "0"], "at least 1"),
        (["run", "--first", "x"], "x is not a whole number"),
        (["replay", "first"], "first is not a whole number"),
        (["replay", "7", "--faults", "faults.toml"], "--faults needs --scenario"),
        (["replay", "7", "--scenario", "fires"], "there is no scenario fires"),
    ],
)
def test_a_command_that_makes_no_sense_says_why(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["sim", *arguments])
    except SystemExit as ended:
        code = ended.code  # type: ignore[assignment]
    assert code == 2
    assert said in capsys.readouterr().err
