"""Clients on one node that is killed and stopped.

The scenarios are in `alone.py`, because `search_mutants.py` runs them too.
"""

from __future__ import annotations

import pytest

from strandline.sim.search.run import run
from strandline.sim.search.scenario import Scenario
from tests.sim import alone
from tests.sim.seeds import seeds


@seeds(2)
@pytest.mark.parametrize("plan", alone.plans(), ids=lambda plan: plan.workloads[0])
def test_clients_of_one_node_get_what_they_were_promised(plan: Scenario, seed: int) -> None:
    outcome = run(plan, seed)
    assert outcome.is_ok, outcome.message
