"""Each scenario of the lab ends as it says, and its timeline is the one that was reviewed.

`pytest tests/lab --rewrite-traces "the reason"` writes the traces again; the change is reviewed as a diff.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.lab.run import run_simulated
from strandline.lab.scenario import load, names

TRACES = Path(__file__).parent / "traces"


@pytest.mark.parametrize("name", names())
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
