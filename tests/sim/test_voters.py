"""Voters come and go in the simulated world.

The scenarios are in `voters.py`, because `search_mutants.py` runs them too.
"""

from __future__ import annotations

from tests.sim import scenarios, voters
from tests.sim.seeds import seeds


@seeds(6)
def test_controllers_join_and_leave_under_kills_and_partitions(seed: int) -> None:
    scenarios.run(voters.joining_and_leaving, seed)


@seeds(3)
def test_controller_comes_back_with_another_disk(seed: int) -> None:
    scenarios.run(voters.replaced_disk, seed)


@seeds(2)
def test_controllers_join_by_themselves(seed: int) -> None:
    scenarios.run(voters.joining_by_themselves, seed)


@seeds(2)
def test_voters_are_learned_from_a_snapshot(seed: int) -> None:
    scenarios.run(voters.voters_from_a_snapshot, seed)
