"""Raft (Ongaro and Ousterhout, extended version) §5.1, §5.2, §5.4.1: epochs, votes, who may win."""

from __future__ import annotations

from strandline.quorum import messages as m
from strandline.quorum.messages import Election, OffsetAndEpoch, ReplicaKey
from strandline.quorum.roles import Candidate, Follower, Leader, Unattached
from tests.spec.quorums import Node, is_granted, key, of


def test_5_1_higher_epoch_ends_leadership() -> None:
    """§5.1: if one discovers that its term is out of date it reverts to follower state."""
    voter = Node()
    voter.lead()
    effects = voter.vote(3, voter.core.epoch + 1, OffsetAndEpoch(9, 9))
    assert of(effects, m.StopLeading)
    assert isinstance(voter.core.role, Unattached)


def test_5_1_request_of_a_past_epoch_is_refused() -> None:
    """§5.1: a request with a stale term number is rejected."""
    voter = Node(election=Election(7))
    assert not is_granted(voter.vote(2, 6))
    assert voter.core.epoch == 7
    response = of(voter.step(m.BeginEpochRequested(leader_id=2, epoch=6, token=object())), m.RespondToEpoch)[
        0
    ]
    assert response.error == "FENCED_LEADER_EPOCH"
    assert of(voter.fetched(2, 0, epoch=6), m.RespondToFetch)[0].error == "FENCED_LEADER_EPOCH"


def test_5_2_one_vote_in_an_epoch() -> None:
    """§5.2: each server votes for at most one candidate in a term, first come first served."""
    voter = Node()
    voter.vote(2, 1)
    assert is_granted(voter.sync())
    assert not is_granted(voter.vote(3, 1))
    assert is_granted(voter.vote(2, 1)), "the same again, whose response was lost"


def test_5_2_a_vote_survives_a_restart() -> None:
    """§5.2 and figure 2: votedFor is updated on stable storage before responding."""
    again = Node(election=Election(1, -1, key(2)))
    assert not is_granted(again.vote(3, 1))


def test_5_2_a_vote_is_sent_only_after_it_is_on_the_device() -> None:
    """Figure 2: persistent state is updated before responding to requests."""
    voter = Node()
    assert of(voter.vote(2, 1), m.RespondToVote) == []
    assert is_granted(voter.sync())


def test_5_2_a_repeated_request_gets_its_vote_only_after_that_is_on_the_device() -> None:
    voter = Node()
    voter.vote(2, 1)
    assert of(voter.vote(2, 1), m.RespondToVote) == []
    assert [response.granted for response in of(voter.sync(), m.RespondToVote)] == [True, True]


def test_5_2_candidate_asks_only_after_its_own_vote_is_on_the_device() -> None:
    voter = Node()
    voter.step(m.TimePassed(), after_s=10.0)
    asked = voter.responded(2, granted=True, pre=True)
    assert isinstance(voter.core.role, Candidate)
    assert [vote for vote in of(asked, m.SendVote) if not vote.is_pre_vote] == []
    assert len(of(voter.sync(), m.SendVote)) == 2


def test_5_2_majority_wins_and_one_vote_does_not() -> None:
    """§5.2: a candidate wins if it receives votes from a majority of the servers in the full cluster."""
    voter = Node(count=5)
    voter.step(m.TimePassed(), after_s=10.0)
    for other in (2, 3):
        voter.responded(other, granted=True, pre=True)
    voter.sync()
    voter.responded(2, granted=True, pre=False)
    assert isinstance(voter.core.role, Candidate)
    voter.responded(3, granted=True, pre=False)
    assert isinstance(voter.core.role, Leader)


def test_5_2_candidate_follows_a_leader_of_its_epoch() -> None:
    """§5.2: if the leader's term is at least as large as the candidate's, the candidate recognizes the leader."""
    voter = Node()
    voter.step(m.TimePassed(), after_s=10.0)
    voter.responded(2, granted=True, pre=True)
    voter.sync()
    voter.step(m.BeginEpochRequested(leader_id=3, epoch=voter.core.epoch, token=object()))
    role = voter.core.role
    assert isinstance(role, Follower)
    assert (role.leader_id, role.voted) == (3, key(1)), "its own vote of this epoch is not forgotten"


def test_5_4_1_candidate_whose_log_is_behind_gets_no_vote() -> None:
    """§5.4.1: a voter denies its vote if its own log is more up to date: by last term, then by length."""
    for last, expected in (
        (OffsetAndEpoch(10, 3), True),
        (OffsetAndEpoch(9, 3), False),
        (OffsetAndEpoch(99, 2), False),
        (OffsetAndEpoch(1, 4), True),
    ):
        voter = Node(epochs=[(1, 0), (3, 5)], end=10, election=Election(3))
        voter.vote(2, 5, last)
        assert is_granted(voter.effects + voter.sync()) is expected, last


def test_5_2_second_leader_of_an_epoch_is_not_believed() -> None:
    """§5.2: at most one leader can be elected in a term. Who names another changes nothing."""
    follower, leader = Node(2), Node(1)
    follower.follow(1, 1)
    leader.lead()
    for voter in (follower, leader):
        role = voter.core.role
        for event in (
            m.BeginEpochRequested(leader_id=3, epoch=voter.core.epoch, token=object()),
            m.LeaderFound(leader_id=3, epoch=voter.core.epoch),
        ):
            responses = of(voter.step(event), m.RespondToEpoch)
            assert all(response.error == "INVALID_REQUEST" for response in responses)
            assert voter.core.role is role


def test_nobody_votes_for_a_replica_without_an_id() -> None:
    """The state on the device would say that there was no vote, and another vote could be given."""
    voter = Node()
    asked = m.VoteRequested(
        candidate=ReplicaKey(-1, bytes(16)), epoch=1, last=OffsetAndEpoch(0, 0), is_pre_vote=False, token=0
    )
    (response,) = of(voter.step(asked), m.RespondToVote)
    assert (response.granted, response.error, voter.core.epoch) == (False, "INVALID_REQUEST", 0)
