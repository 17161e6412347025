"""A cluster under kills, power cuts and partitions: what is acknowledged with acks=all stays, once and in order."""

from __future__ import annotations

from tests.sim import cluster, scenarios
from tests.sim.seeds import seeds


@seeds(6)
def test_kills_of_any_nodes_at_any_moment(seed: int) -> None:
    scenarios.run(cluster.kills, seed)


@seeds(4)
def test_power_cuts_one_machine_at_a_time(seed: int) -> None:
    scenarios.run(cluster.power_cuts, seed)


@seeds(6)
def test_partitions_of_one_node_from_the_others(seed: int) -> None:
    scenarios.run(cluster.partitions, seed)


@seeds(3)
def test_rolling_restarts(seed: int) -> None:
    scenarios.run(cluster.rolling_restarts, seed)


@seeds(6)
def test_everything_together(seed: int) -> None:
    scenarios.run(cluster.everything, seed)
