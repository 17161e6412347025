"""Each scenario of the lab ends as it says, and its timeline is the one that was reviewed.

`pytest tests/lab --rewrite-traces "the reason"` writes the traces again; the change is reviewed as a diff. `make test`
plays a spread of scenarios, `make soak` and `--rewrite-traces` all.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from strandline.lab.run import run_simulated
from strandline.lab.scenario import load, names

TRACES = Path(__file__).parent / "traces"
IS_SOAK = os.environ.get("STRANDLINE_SOAK") == "1"
# One of so many is played in `make test`, others of each group than a test of pages or commands plays.
SPREAD = 3


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        is_all = IS_SOAK or metafunc.config.getoption("--rewrite-traces", None)
        metafunc.parametrize("name", names()[:: 1 if is_all else SPREAD])


def test_outcome_is_the_expected_one_and_the_timeline_the_reviewed_one(
    name: str, request: pytest.FixtureRequest
) -> None:
    run = run_simulated(load(name))
    assert run.differences == []
    path, now = TRACES / f"{name}.txt", run.timeline.as_text() + "\n"
    reason = request.config.getoption("--rewrite-traces", None)
    if reason:
        if not path.exists() or now != path.read_text().partition("\n")[2]:
            path.write_text(f"# {reason}\n{now}")
    else:
        assert now == path.read_text().partition("\n")[2], "the flag --rewrite-traces shows it as a diff"


def test_every_trace_belongs_to_a_scenario() -> None:
    assert sorted(path.stem for path in TRACES.iterdir()) == sorted(names())
