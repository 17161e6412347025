"""KIP-595 (check quorum, resignation, BeginQuorumEpoch) and KIP-996 (pre-vote)."""

from __future__ import annotations

from strandline.quorum import messages as m
from strandline.quorum.messages import OffsetAndEpoch
from strandline.quorum.roles import Candidate, Follower, Leader, Prospective, Resigned
from tests.spec.quorums import SETTINGS, Node, is_granted, key, of


def test_595_new_leader_tells_every_voter() -> None:
    """'BeginQuorumEpoch': sent to all voters, and again until each knows of the epoch."""
    voter = Node()
    voter.lead()
    assert {begin.to for begin in of(voter.effects, m.SendBeginEpoch)} == {2, 3}
    voter.step(m.BeginEpochResponseReceived(voter_id=2, epoch=voter.core.epoch, leader_id=1, accepted=True))
    again = voter.step(m.TimePassed(), after_s=SETTINGS.begin_interval_s)
    assert [begin.to for begin in of(again, m.SendBeginEpoch)] == [3]


def test_595_leader_that_no_majority_fetches_from_resigns() -> None:
    """'Leader state': a leader that is cut off steps down, so that none believes it for ever."""
    voter = Node()
    voter.lead()
    effects = voter.step(m.TimePassed(), after_s=SETTINGS.check_quorum_s + 0.1)
    assert of(effects, m.StopLeading)
    assert isinstance(voter.core.role, Resigned)


def test_595_leader_that_a_majority_fetches_from_stays() -> None:
    voter = Node()
    voter.lead()
    for _ in range(5):
        voter.now += SETTINGS.check_quorum_s * 0.6
        voter.fetched(2, 1)
        voter.step(m.TimePassed())
    assert isinstance(voter.core.role, Leader)


def test_595_resignation_names_the_successor_that_has_most() -> None:
    """'EndQuorumEpoch': the preferred successors are in the order of their logs."""
    voter = Node()
    voter.lead()
    voter.append(5)
    voter.fetched(2, 2)
    voter.fetched(3, 6)
    ends = of(voter.step(m.ResignationRequested()), m.SendEndEpoch)
    assert {end.successors for end in ends} == {(3, 2)}


def test_595_waiting_fetches_are_refused_when_leadership_ends() -> None:
    voter = Node()
    voter.lead()
    voter.fetched(2, 1)
    voter.fetched(2, 1)
    responses = of(voter.step(m.ResignationRequested()), m.RespondToFetch)
    assert responses
    assert all(response.error == "NOT_LEADER_OR_FOLLOWER" for response in responses)


def test_996_pre_vote_changes_nothing_at_the_voter() -> None:
    """'Pre-Vote': the voter does not change its epoch or vote, and several may be granted."""
    voter = Node()
    assert is_granted(voter.vote(2, 0, pre=True))
    assert is_granted(voter.vote(3, 0, pre=True))
    assert of(voter.effects, m.PersistElection) == []


def test_996_a_voter_that_has_heard_from_the_leader_refuses_a_pre_vote() -> None:
    """A node that was cut off cannot depose a healthy leader."""
    voter = Node()
    voter.follow(2, 1)
    assert not is_granted(voter.vote(3, 1, OffsetAndEpoch(99, 1), pre=True))
    assert isinstance(voter.core.role, Follower)


def test_996_pre_vote_needs_an_up_to_date_log_too() -> None:
    voter = Node(epochs=[(1, 0)], end=5)
    assert not is_granted(voter.vote(2, 1, OffsetAndEpoch(4, 1), pre=True))


def test_996_epoch_rises_only_after_a_majority_of_pre_votes() -> None:
    voter = Node(count=5)
    voter.step(m.TimePassed(), after_s=10.0)
    voter.responded(2, granted=True, pre=True)
    assert isinstance(voter.core.role, Prospective)
    assert voter.core.epoch == 0
    voter.responded(3, granted=True, pre=True)
    assert isinstance(voter.core.role, Candidate)
    assert voter.core.epoch == 1


def test_996_prospective_that_is_refused_in_favour_of_a_leader_follows_it() -> None:
    """'Prospective': a node that learns of the epoch's leader from another that hears it becomes its follower."""
    voter = Node()
    voter.follow(2, 1)
    voter.step(m.TimePassed(), after_s=SETTINGS.fetch_timeout_s + 0.1)
    assert isinstance(voter.core.role, Prospective)
    voter.responded(3, granted=False, pre=True, leader=2)
    assert isinstance(voter.core.role, Follower)


def test_996_pre_vote_of_one_that_only_remembers_the_leader_counts() -> None:
    """Two voters whose leader fell silent: if each led the other back to it, there would never be an election."""
    voter = Node()
    voter.follow(2, 1)
    voter.step(m.TimePassed(), after_s=SETTINGS.fetch_timeout_s + 0.1)
    voter.responded(3, granted=True, pre=True, leader=2)
    assert isinstance(voter.core.role, Candidate)


def test_1166_replica_that_does_not_know_the_high_watermark_is_told_at_once() -> None:
    leader = Node(1)
    leader.lead()
    leader.fetched(2, leader.core.log_end)
    assert leader.core.high_watermark == leader.core.log_end
    for known, has_response in ((0, True), (leader.core.high_watermark, False)):
        effects = leader.step(
            m.FetchRequested(
                replica=key(3),
                epoch=leader.core.epoch,
                offset=leader.core.log_end,
                last_fetched_epoch=leader.core.epoch,
                high_watermark=known,
                token=object(),
            )
        )
        assert bool(of(effects, m.RespondToFetch)) is has_response
