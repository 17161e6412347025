"""Counts the switched-off safety rules that the random search finds.

    python -m tests.sim.search_mutants --seconds 30

Every mutant also has a test that looks for it. Here nothing says where to look: the shipped scenarios take turns with
the random stories of one node, of controllers that come and go, and of cores without a shell.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from strandline.sim.search.run import run
from strandline.sim.search.scenario import Scenario, shipped
from tests.sim import (
    alone,
    group_stories,
    partition_stories,
    quorum_stories,
    scenarios,
    test_mutants,
    test_transaction_mutants,
    transaction_stories,
    voters,
)
from tests.spec import test_cluster_mutants, test_group_mutants, test_producer_mutants

Patch = pytest.MonkeyPatch


def mutants(*, of_clients: bool) -> dict[str, Callable[[Patch], Any]]:
    """Returns mutants by name: those of the cluster, or those of producers, transactions and groups."""
    found: list[Callable[[Patch], Any]] = [
        *test_cluster_mutants.MUTANTS,
        *test_mutants.MUTANTS,
        *test_transaction_mutants.MUTANTS,
    ]
    if of_clients:
        found = [*test_producer_mutants.MUTANTS, *test_group_mutants.MUTANTS]
    return {each.__name__: each for each in found}


# How many of each are tried in a turn, beside scenarios: the shorter they are, the more.
STORIES: dict[Any, int] = {
    scenarios.kills_under_load: 2,
    scenarios.power_cuts_with_flushes: 20,
    scenarios.power_cuts_without_flushes: 3,
    scenarios.kills_at_start_and_stop: 2,
    scenarios.power_cuts_while_topics_are_created: 2,
    scenarios.failed_sync_under_load: 6,
    scenarios.clean_stop_after_an_unclean_end: 6,
    scenarios.power_cut_after_clean_stop: 2,
    scenarios.full_disk_under_load: 2,
    voters.joining_and_leaving: 1,
    voters.replaced_disk: 1,
}
STORMS: dict[Callable[[int], object], int] = {quorum_stories.run: 50, partition_stories.run: 250}
# The first in a turn where rules of clients are looked for. Others have nothing to do with coordinators.
STORMS_OF_CLIENTS: dict[Callable[[int], object], int] = {group_stories.run: 60, transaction_stories.run: 20}
# Scenarios of one node are tried so many times for each of a cluster.
ALONE_PER_TURN = 3


def told(story: Any, seed: int) -> str | None:
    """Returns the violation that a story finds, or None."""
    return noticed(partial(scenarios.run, story), seed)


def noticed(run_story: Callable[[int], object], seed: int) -> str | None:
    try:
        run_story(seed)
    except Exception as error:
        return str(error).partition("\n")[0] or type(error).__name__
    return None


def tried(plan: Scenario, seed: int) -> str | None:
    try:
        outcome = run(plan, seed)
    except Exception as error:  # a node that cannot go on is noticed too
        return type(error).__name__
    return None if outcome.is_ok else outcome.verdict


def _turns(plans: list[Scenario]) -> Iterator[tuple[Scenario, int]]:
    return ((plan, seed) for seed in itertools.count() for plan in plans)


Attempt = tuple[str, int, Callable[[int], str | None]]


def _storms(storms: dict[Callable[[int], object], int], turn: int) -> Iterator[Attempt]:
    for storm, count in storms.items():
        for seed in range(turn * count, (turn + 1) * count):
            yield storm.__module__.rpartition(".")[2], seed, partial(noticed, storm)


def attempts(*, of_clients: bool) -> Iterator[Attempt]:
    by_name = sorted(shipped().values(), key=lambda plan: plan.name, reverse=True)
    clusters = _turns(sorted(by_name, key=lambda plan: ("fast", "slow", "rare").index(plan.speed)))
    single_nodes = _turns(alone.plans())
    for turn in itertools.count():
        if of_clients:
            yield from _storms(STORMS_OF_CLIENTS, turn)
        for plan, seed in itertools.islice(single_nodes, ALONE_PER_TURN):
            yield plan.name, seed, partial(tried, plan)
        for story, count in STORIES.items():
            for seed in range(turn * count, (turn + 1) * count):
                yield story.__name__, seed, partial(told, story)
        yield from _storms(STORMS, turn)
        plan, seed = next(clusters)
        yield plan.name, seed, partial(tried, plan)


def search(mutate: Callable[[Patch], Any], seconds: float, *, of_clients: bool) -> str | None:
    """Returns the attempt that noticed the mutant within this much time of one core, or None."""
    deadline = time.process_time() + seconds
    with Patch.context() as patch:
        mutate(patch)
        for name, seed, attempt in attempts(of_clients=of_clients):
            if time.process_time() > deadline:
                return None
            found = attempt(seed)
            if found is not None:
                return f"{name}, seed {seed}: {found}"
    raise AssertionError("attempts never end")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.search_mutants", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=40.0, help="of CPU time for each mutant (default: 40)"
    )
    parser.add_argument("--only", default="", help="only mutants whose name has this in it")
    parser.add_argument(
        "--clients", action="store_true", help="mutants of producers, transactions and groups instead"
    )
    options = parser.parse_args()
    known = mutants(of_clients=options.clients)
    chosen = {name: mutate for name, mutate in known.items() if options.only in name}
    count = 0
    for name, mutate in chosen.items():
        found = search(mutate, options.seconds, of_clients=options.clients)
        count += found is not None
        print(f"{name:<60} {found or 'not found'}", flush=True)
    print(f"{count} of {len(chosen)} mutants found")
    return 0 if count * 2 > len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
