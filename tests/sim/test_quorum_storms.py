"""The cores of the metadata quorum in storms of chance: nothing that is committed is lost, and all agree in the end."""

from __future__ import annotations

from tests.sim import quorum_stories
from tests.sim.seeds import seeds


@seeds(30)
def test_what_is_committed_stays_whoever_votes_dies_or_leaves(seed: int) -> None:
    assert quorum_stories.run(seed).committed_count > 0
