"""No peer's number uses up the epochs of the metadata quorum, and none is kept that could not be sent."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.quorum import messages as m
from strandline.quorum.epochs import EPOCH_MAX, EPOCH_STEP_MAX, EPOCH_TRUSTED_MAX, is_believable
from strandline.quorum.messages import Election, OffsetAndEpoch
from tests.spec.quorums import Node, key

FAR = OffsetAndEpoch(1 << 60, EPOCH_MAX)
TOO_HIGH = (EPOCH_TRUSTED_MAX + 1, EPOCH_MAX - 1, EPOCH_MAX)


def forged(epoch: int) -> dict[str, Any]:
    return {
        "Vote": m.VoteRequested(candidate=key(2), epoch=epoch, last=FAR, is_pre_vote=False, token=1),
        "pre-vote": m.VoteRequested(candidate=key(2), epoch=epoch, last=FAR, is_pre_vote=True, token=1),
        "Vote response": m.VoteResponseReceived(
            voter_id=2, epoch=epoch, leader_id=-1, granted=False, request_epoch=0, is_pre_vote=True
        ),
        "BeginQuorumEpoch": m.BeginEpochRequested(leader_id=2, epoch=epoch, token=1),
        "BeginQuorumEpoch response": m.BeginEpochResponseReceived(
            voter_id=2, epoch=epoch, leader_id=2, accepted=False
        ),
        "EndQuorumEpoch": m.EndEpochRequested(leader_id=2, epoch=epoch, successors=(1,), token=1),
        "a leader": m.LeaderFound(leader_id=2, epoch=epoch),
    }


@pytest.mark.parametrize("what", list(forged(0)))
@pytest.mark.parametrize("epoch", TOO_HIGH)
def test_an_epoch_that_leaves_no_room_is_refused_and_not_kept(what: str, epoch: int) -> None:
    node = Node()
    before = node.core.role
    effects = node.step(forged(epoch)[what])
    assert node.core.role is before
    assert not any(isinstance(effect, m.PersistElection) for effect in effects)
    assert m.WarnOfEpoch(epoch=epoch) in effects
    for effect in effects:
        if isinstance(effect, m.RespondToVote | m.RespondToEpoch):
            assert effect.error == "INVALID_REQUEST"
            assert effect.epoch == node.core.epoch


def test_an_epoch_that_leaves_room_is_taken_over() -> None:
    node = Node()
    node.step(forged(EPOCH_TRUSTED_MAX)["Vote"])
    assert node.core.epoch == EPOCH_TRUSTED_MAX


def test_elections_go_on_beyond_what_is_believed_of_strangers() -> None:
    """A cluster that got there all the same has as many elections left as there are epochs."""
    node = Node(election=Election(EPOCH_TRUSTED_MAX + 100))
    node.step(forged(EPOCH_TRUSTED_MAX + 101)["Vote"])
    assert node.core.epoch == EPOCH_TRUSTED_MAX + 101
    assert is_believable(EPOCH_MAX - 1, EPOCH_MAX)
    assert not is_believable(EPOCH_TRUSTED_MAX + 1, EPOCH_TRUSTED_MAX + 2 + EPOCH_STEP_MAX)
    assert not is_believable(EPOCH_MAX, EPOCH_MAX + 1)


def test_a_node_at_the_last_epoch_stands_for_no_election_and_says_so() -> None:
    node = Node(count=1, election=Election(EPOCH_MAX))
    effects = node.step(m.NodeStarted())
    assert effects == [m.WarnOfEpoch(epoch=EPOCH_MAX, is_used_up=True)]
    assert node.core.epoch == EPOCH_MAX
    assert node.step(m.TimePassed(), after_s=60.0) == [m.WarnOfEpoch(epoch=EPOCH_MAX, is_used_up=True)]
