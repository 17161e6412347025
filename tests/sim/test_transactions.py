"""Transactions in a cluster whose nodes are killed and cut off: a read_committed reader sees all of one, or nothing."""

from __future__ import annotations

from tests.sim import exactly_once, scenarios, transactions
from tests.sim.seeds import seeds


@seeds(4)
def test_kills_tear_no_transaction(seed: int) -> None:
    scenarios.run(transactions.kills, seed)


@seeds(4)
def test_partitions_of_the_network_tear_no_transaction(seed: int) -> None:
    scenarios.run(transactions.partitions, seed)


@seeds(3)
def test_reading_transforming_and_writing_under_kills_gives_the_image_of_the_input(seed: int) -> None:
    scenarios.run(exactly_once.loops_under_kills, seed)
