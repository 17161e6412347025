"""Cores in storms of chance: nothing that is committed is lost, and all agree in the end.

The stories are in `quorum_stories.py`, `partition_stories.py`, `group_stories.py` and `transaction_stories.py`, because
`search_mutants.py` runs them too; the `*_judge.py` beside them find violations.
"""

from __future__ import annotations

from tests.sim import group_stories, partition_stories, quorum_stories, transaction_stories
from tests.sim.seeds import seeds


@seeds(30)
def test_committed_metadata_stays_while_voters_die_and_leave(seed: int) -> None:
    assert quorum_stories.run(seed).judge.committed_count > 0


@seeds(60)
def test_records_that_readers_saw_stay_while_leaders_die_and_come_back(seed: int) -> None:
    assert partition_stories.run(seed).committed


@seeds(30)
def test_members_share_all_partitions_while_members_and_coordinators_die_and_hang(seed: int) -> None:
    assert group_stories.run(seed).judge.committed.count > 0


@seeds(20)
def test_a_transaction_ends_as_its_producer_was_told_while_coordinators_change(seed: int) -> None:
    assert transaction_stories.run(seed).judge.attempts
