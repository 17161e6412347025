"""Events by which the shell tells the core what became of its effects (`quorum.messages`)."""

from __future__ import annotations

from strandline.quorum import messages as m
from strandline.quorum.messages import OffsetAndEpoch
from strandline.quorum.roles import Candidate, Follower, Unattached
from tests.spec.quorums import Node, key, of

SNAPSHOT = OffsetAndEpoch(10, 1)


def follower() -> Node:
    """Follows node 2 in epoch 1, and has a fetch on its way."""
    node = Node()
    node.follow(2, 1)
    node.effects.clear()
    return node


def role_of(node: Node) -> Follower:
    assert isinstance(node.core.role, Follower)
    return node.core.role


def test_the_only_voter_stands_for_election_as_soon_as_its_node_has_started() -> None:
    alone = Node(count=1)
    alone.step(m.NodeStarted())
    assert isinstance(alone.core.role, Candidate)


def test_one_of_several_voters_waits_for_its_deadline() -> None:
    node = Node()
    assert node.step(m.NodeStarted()) == []
    assert isinstance(node.core.role, Unattached)


def test_after_a_failed_fetch_the_next_one_is_sent_when_the_backoff_has_ended() -> None:
    node = follower()
    assert node.step(m.FetchBackoffEnded()) == [], "one is on its way"
    assert node.step(m.FetchRequestFailed(leader_id=2, epoch=1)) == []
    assert len(of(node.step(m.FetchBackoffEnded()), m.SendFetch)) == 1


def test_a_fetch_that_failed_in_an_earlier_epoch_changes_nothing() -> None:
    node = follower()
    node.step(m.FetchRequestFailed(leader_id=3, epoch=0))
    assert role_of(node).is_fetching


def test_a_snapshot_that_could_not_be_fetched_is_asked_for_again() -> None:
    node = follower()
    assert of(node.brought(2, 1, snapshot=SNAPSHOT), m.FetchSnapshot)
    assert role_of(node).is_writing
    effects = node.step(m.SnapshotFetchFailed(leader_id=2, epoch=1))
    assert len(of(effects, m.SendFetch)) == 1


def test_a_failed_snapshot_of_an_earlier_epoch_does_not_end_the_present_write() -> None:
    node = follower()
    node.brought(2, 1, records=b"records")
    assert node.step(m.SnapshotFetchFailed(leader_id=3, epoch=0)) == []
    assert role_of(node).is_writing


def test_a_leader_offers_its_snapshot_to_a_replica_that_ends_before_the_log() -> None:
    leader = Node(epochs=((1, 0),), end=20)
    leader.lead()
    leader.step(m.SnapshotWritten(snapshot=SNAPSHOT, log_start=10))
    (response,) = of(leader.fetched(2, 4, last_epoch=1), m.RespondToFetch)
    assert response.snapshot == SNAPSHOT


def test_a_fetch_whose_wait_has_expired_gets_its_response_once() -> None:
    leader = Node(recorded=None, count=3)
    leader.lead()
    leader.commit()
    token = object()
    request = m.FetchRequested(
        replica=key(2),
        epoch=leader.core.epoch,
        offset=leader.core.log_end,
        last_fetched_epoch=leader.core.epoch,
        token=token,
    )
    assert of(leader.step(request), m.RespondToFetch) == []
    (response,) = of(leader.step(m.FetchWaitExpired(token=token)), m.RespondToFetch)
    assert response.token is token
    assert leader.step(m.FetchWaitExpired(token=token)) == []
