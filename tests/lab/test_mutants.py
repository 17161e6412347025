"""A scenario whose rule is switched off, or whose settings are others, must not end as expected.

`make test` plays one scenario for each rule; `make soak` plays all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import pytest

from strandline.base.errors import KafkaError
from strandline.lab import base
from strandline.lab.base import Stuck
from strandline.lab.run import run_simulated
from strandline.lab.scenario import load
from tests.lab.mutants import MUTANTS, Other

LONG: Final = pytest.mark.skipif(
    os.environ.get("STRANDLINE_SOAK") != "1", reason="another scenario with this rule: `make soak` has it"
)


def cases() -> Iterator[Any]:
    known = set()
    for name, mutant in MUTANTS.items():
        label = "other-settings" if isinstance(mutant, Other) else mutant.__name__
        is_first = label not in known
        known.add(label)
        yield pytest.param(name, id=f"{name}-{label}", marks=() if is_first else LONG)


@pytest.mark.parametrize("name", list(cases()))
def test_scenario_notices_that_its_rule_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, mutant = load(name), MUTANTS[name]
    if isinstance(mutant, Other):
        scenario = mutant.of(scenario)
    else:
        mutant(monkeypatch)
    monkeypatch.setattr(base, "PATIENCE_SECONDS", 60.0)
    try:
        differences = run_simulated(scenario).differences
    except (Stuck, AssertionError, KafkaError) as error:  # a node's own check may be the first to notice
        differences = [str(error)]
    assert differences
