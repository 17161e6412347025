"""The shipped scenarios with a few fixed seeds; `make sim` searches with many."""

from __future__ import annotations

import os

import pytest

from strandline.groups.consumer import changes
from strandline.sim.checks.groups import ConsumerGroups
from strandline.sim.checks.leaders import Leaders
from strandline.sim.checks.quorum import QuorumSafety
from strandline.sim.history import Violation
from strandline.sim.search.run import run
from strandline.sim.search.scenario import shipped
from strandline.sim.world import World

SOAK_FACTOR = 50
SEEDS = {"fast": 2, "slow": 1, "rare": 1}
PLANS = shipped()


def cases() -> list[tuple[str, int]]:
    if "STRANDLINE_SEED" in os.environ:
        return [(name, int(os.environ["STRANDLINE_SEED"])) for name in PLANS]
    factor = SOAK_FACTOR if os.environ.get("STRANDLINE_SOAK") else 1
    return [(name, seed) for name, plan in PLANS.items() for seed in range(SEEDS[plan.speed] * factor)]


@pytest.mark.parametrize(("name", "seed"), cases())
def test_nothing_forbidden_happens_and_all_is_well_in_the_end(name: str, seed: int) -> None:
    outcome = run(PLANS[name], seed)
    assert outcome.is_ok, outcome.message
    assert outcome.acknowledged > 0
    assert sum(outcome.fault_counts.values()) > 0


def test_one_seed_gives_one_trace() -> None:
    first, second = (run(PLANS["groups"], 3) for _ in range(2))
    assert first.trace_hash == second.trace_hash
    assert first.virtual_s == second.virtual_s


def test_members_that_get_what_another_still_holds_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    reconcile = changes.reconcile
    monkeypatch.setattr(changes, "reconcile", lambda _, *rest: reconcile(lambda *_: None, *rest))
    outcome = run(PLANS["groups"], 1)  # a seed with the consumer protocol
    assert outcome.verdict == "owned-twice", outcome.message


@pytest.mark.parametrize("watcher", [Leaders, QuorumSafety, ConsumerGroups])
def test_a_violation_that_a_watcher_sees_ends_the_run(
    watcher: type[Leaders | QuorumSafety | ConsumerGroups], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(self: object, world: World) -> None:
        raise Violation("seen", "as if it were")

    monkeypatch.setattr(watcher, "look", look)
    assert run(PLANS["kills"], 0).verdict == "seen"
