"""Small programs with a planted mistake: the fault that it cannot survive finds it, and the mended twin survives.

One pair runs always; all of them, and the mended ones under every fault, with STRANDLINE_SOAK=1.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from strandline.testing.clusters import Cluster, cluster
from strandline.testing.torture.run import Torture
from strandline.testing.torture.stage import CLUSTER_SETTINGS
from strandline.testing.torture.trials import BY_NAME, TRIALS
from tests.json_shapes import checked_lines

PROGRAMS = Path(__file__).parent / "programs"


class Mistake(NamedTuple):
    role: str
    program: str
    fault: str
    kind: str  # that the verdict has to name
    guarantee: str | None = None


MISTAKES = (
    Mistake("consumer", "commit_before_processing", "full-restart", "lost"),
    Mistake("producer", "is_not_idempotent", "lost-commit-response", "duplicated"),
    Mistake("consumer", "crashes_on_poison", "poison-record", "stuck"),
    Mistake("consumer", "resets_to_latest", "retention-overtaking", "lost"),
    Mistake("consumer", "gives_up_when_slow", "slow-broker", "stuck"),
    Mistake("consumer", "does_again_what_was_done", "duplicate-delivery", "duplicated", "exactly-once"),
    Mistake("producer", "does_not_retry", "duplicate-delivery", "lost"),
    Mistake("producer", "asks_one_replica", "leader-change", "lost"),
    Mistake("producer", "swallows_errors", "duplicate-delivery", "lost"),
    Mistake("producer", "has_many_in_flight", "duplicate-delivery", "reordered"),
    Mistake("producer", "goes_on_when_fenced", "fenced-producer", "lost"),
    Mistake("consumer", "drops_its_buffer", "rebalance", "lost"),
    Mistake("consumer", "stops_at_the_first_error", "coordinator-move", "stuck"),
    Mistake("producer", "drops_a_slow_commit", "coordinator-move", "lost"),
)
IS_SOAK = os.environ.get("STRANDLINE_SOAK") == "1"
CHOSEN = MISTAKES if IS_SOAK else MISTAKES[1:2]


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with cluster(nodes=3, **CLUSTER_SETTINGS) as started:  # type: ignore[arg-type]
        yield started


def trials_of(three: Cluster, mistake: Mistake, *, mended: bool) -> Torture:
    script = PROGRAMS / f"{mistake.role}s.py"
    words = [sys.executable, str(script), mistake.program, *(["mended"] if mended else [])]
    return Torture(
        three,
        shlex.join(words),
        role=mistake.role,
        guarantee=mistake.guarantee,
        quiet_s=6 if not mended else 20,
    )


@pytest.mark.parametrize("mistake", CHOSEN, ids=lambda mistake: mistake.program)
def test_planted_mistake_is_found_and_its_mended_twin_survives(
    three: Cluster, mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where programs remember
    fault = BY_NAME[mistake.fault]
    wrong = trials_of(three, mistake, mended=False).run(fault)
    print(wrong)
    assert not wrong.passed
    assert mistake.kind in {problem.kind for problem in wrong.problems if not problem.is_allowed}
    mended = trials_of(three, mistake, mended=True).run(fault)
    print(mended)
    assert not mended.skipped
    assert mended.passed
    documents = "\n".join(json.dumps(each.as_json()) for each in (wrong, mended))
    checked_lines(documents, ["torture", "--json"])


@pytest.mark.skipif(not IS_SOAK, reason="one of the long ones: STRANDLINE_SOAK=1 runs it")
def test_group_with_a_strategy_of_its_own_is_rebalanced(
    three: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRATEGY", "roundrobin")
    (mistake,) = (each for each in MISTAKES if each.program == "drops_its_buffer")
    result = trials_of(three, mistake, mended=False).run(BY_NAME["rebalance"])
    print(result)
    assert "lost" in {problem.kind for problem in result.problems}


@pytest.mark.skipif(not IS_SOAK, reason="one of the long ones: STRANDLINE_SOAK=1 runs it")
def test_program_that_waits_for_the_session_of_its_killed_self_is_not_stuck(
    three: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSION_MS", "30000")
    mended = trials_of(three, MISTAKES[0], mended=True)
    mended._quiet_s = 6
    result = mended.run(BY_NAME["full-restart"])
    print(result)
    assert result.passed


@pytest.mark.skipif(not IS_SOAK, reason="one of the long ones: STRANDLINE_SOAK=1 runs it")
@pytest.mark.parametrize("fault", [trial.name for trial in TRIALS])
@pytest.mark.parametrize("mistake", [MISTAKES[0], MISTAKES[1]], ids=lambda mistake: mistake.role)
def test_mended_programs_survive_every_fault(three: Cluster, mistake: Mistake, fault: str) -> None:
    result = trials_of(three, mistake, mended=True).run(BY_NAME[fault])
    print(result)
    assert result.passed
    assert not result.skipped or mistake.role not in BY_NAME[fault].roles or "transaction" in result.skipped
