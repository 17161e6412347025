"""Cores in storms of chance: nothing that is committed is lost, and all agree in the end."""

from __future__ import annotations

from tests.sim import group_stories, partition_stories, quorum_stories, transaction_stories
from tests.sim.seeds import seeds


@seeds(30)
def test_committed_metadata_stays_whoever_votes_dies_or_leaves(seed: int) -> None:
    assert quorum_stories.run(seed).judge.committed_count > 0


@seeds(60)
def test_what_readers_were_shown_stays_whoever_leads_dies_or_comes_back(seed: int) -> None:
    assert partition_stories.run(seed).committed


@seeds(30)
def test_members_share_what_there_is_whoever_dies_hangs_or_coordinates(seed: int) -> None:
    assert group_stories.run(seed).judge.committed.count > 0


@seeds(20)
def test_a_transaction_ends_as_its_producer_was_told_whoever_leads_or_is_late(seed: int) -> None:
    assert transaction_stories.run(seed).judge.attempts
