"""How many switched-off safety rules the random search finds: `python -m tests.sim.search_mutants --seconds 30`.

Every mutant has a directed test beside this; here the shipped scenarios have to find it without being told where.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from strandline.sim.plans import Plan, shipped
from strandline.sim.trial import run
from tests.sim import test_mutants, test_transaction_mutants
from tests.spec import test_cluster_mutants

Patch = pytest.MonkeyPatch


def mutants() -> dict[str, Callable[[Patch], Any]]:
    found = (*test_cluster_mutants.MUTANTS, *test_mutants.MUTANTS, *test_transaction_mutants.MUTANTS)
    return {each.__name__: each for each in found}


def attempts() -> Iterator[tuple[Plan, int]]:
    plans = sorted(shipped().values(), key=lambda plan: ("fast", "slow", "rare").index(plan.speed))
    seed = 0
    while True:
        for plan in plans:
            yield plan, seed
        seed += 1


def search(mutate: Callable[[Patch], Any], seconds: float) -> str | None:
    """What noticed, if anything did in time."""
    deadline = time.monotonic() + seconds
    with Patch.context() as patch:
        mutate(patch)
        for plan, seed in attempts():
            if time.monotonic() > deadline:
                return None
            try:
                outcome = run(plan, seed)
            except Exception as error:  # a node that cannot go on is noticed too
                return f"{plan.name}, seed {seed}: {type(error).__name__}"
            if not outcome.is_ok:
                return f"{plan.name}, seed {seed}: {outcome.verdict}"
    raise AssertionError("attempts never end")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.search_mutants", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each mutant (default: 60)")
    parser.add_argument("--only", default="", help="only mutants whose name has this in it")
    options = parser.parse_args()
    chosen = {name: mutate for name, mutate in mutants().items() if options.only in name}
    noticed = 0
    for name, mutate in chosen.items():
        found = search(mutate, options.seconds)
        noticed += found is not None
        print(f"{name:<60} {found or 'not found'}", flush=True)
    print(f"{noticed} of {len(chosen)} mutants found")
    return 0 if noticed * 2 > len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
