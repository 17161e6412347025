"""A process that is killed loses nothing that it had written, at whatever moment.

The scenarios are in `scenarios.py`, because `test_mutants.py` and `search_mutants.py` run them too.
"""

from __future__ import annotations

from tests.sim import scenarios
from tests.sim.seeds import seeds


@seeds(30)
def test_every_acknowledged_record_is_there_once_after_kills_at_random_moments(seed: int) -> None:
    scenarios.run(scenarios.kills_under_load, seed)


@seeds(10)
def test_a_log_that_nobody_opened_since_an_unclean_end_is_repaired_after_a_clean_stop_too(seed: int) -> None:
    scenarios.run(scenarios.clean_stop_after_an_unclean_end, seed)


@seeds(10)
def test_a_node_killed_while_it_starts_or_stops_starts_again(seed: int) -> None:
    scenarios.run(scenarios.kills_at_start_and_stop, seed)
