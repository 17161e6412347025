"""Raft §5.3, §5.4.2 and KIP-595: matching logs, truncation, and what counts as committed."""

from __future__ import annotations

import pytest

from strandline.quorum import messages as m
from strandline.quorum.messages import Election, OffsetAndEpoch
from strandline.quorum.roles import Follower, Leader
from tests.spec.quorums import SETTINGS, Node, key, of


def test_5_3_replica_whose_log_parts_is_told_where_to_go_back_to() -> None:
    """§5.3, KIP-595 'Fetch': the leader responds with the largest epoch it shares and where that one ended."""
    voter = Node(epochs=[(1, 0), (3, 5)], end=8, election=Election(3))
    voter.lead()
    response = of(voter.fetched(2, 7, last_epoch=2), m.RespondToFetch)[0]
    assert response.diverging == OffsetAndEpoch(5, 1)


def test_5_3_replica_that_has_more_of_an_epoch_than_the_leader_goes_back() -> None:
    voter = Node(epochs=[(1, 0), (3, 5)], end=8, election=Election(3))
    voter.lead()
    response = of(voter.fetched(2, 7, last_epoch=1), m.RespondToFetch)[0]
    assert response.diverging == OffsetAndEpoch(5, 1)


def test_5_3_follower_truncates_to_where_the_logs_agree_and_not_further() -> None:
    """§5.3: the leader never overwrites its log; the follower deletes what conflicts."""
    voter = Node(2, epochs=[(1, 0), (2, 5)], end=9, election=Election(2))
    voter.follow(1, 3)
    effects = voter.brought(1, 3, diverging=OffsetAndEpoch(5, 1))
    assert of(effects, m.TruncateLog) == [m.TruncateLog(offset=5)]


def test_5_3_what_is_committed_is_never_truncated() -> None:
    """§5.4.3 leader completeness: a leader that asks for it cannot exist, so a node that sees one stops."""
    voter = Node(2, epochs=[(1, 0)], end=9, election=Election(1))
    voter.follow(1, 2)
    voter.brought(1, 2, 8)
    with pytest.raises(AssertionError, match="committed"):
        voter.brought(1, 2, 8, diverging=OffsetAndEpoch(4, 1))


def test_5_4_2_records_of_past_epochs_are_committed_only_along_with_one_of_the_own() -> None:
    """§5.4.2 and figure 8: counting replicas commits only entries of the leader's current term."""
    voter = Node(epochs=[(1, 0)], end=5, election=Election(1))
    voter.lead()
    assert voter.core.log_end == 6
    assert of(voter.fetched(2, 5, last_epoch=1), m.HighWatermarkAdvanced) == []
    assert of(voter.fetched(2, 6), m.HighWatermarkAdvanced) == [m.HighWatermarkAdvanced(offset=6)]


def test_high_watermark_is_what_a_majority_has_synced() -> None:
    """§5.3 and KIP-595: committed is what is on a majority of voters, the leader's own synced end included."""
    voter = Node(count=5)
    voter.lead()
    voter.append(4)
    assert of(voter.fetched(2, 5), m.HighWatermarkAdvanced) == []
    assert of(voter.fetched(3, 3), m.HighWatermarkAdvanced) == [m.HighWatermarkAdvanced(offset=3)]
    assert of(voter.fetched(4, 1), m.HighWatermarkAdvanced) == []
    assert voter.core.high_watermark == 3


def test_high_watermark_never_goes_back() -> None:
    voter = Node()
    voter.lead()
    voter.append(4)
    voter.fetched(2, 5)
    voter.fetched(2, 1)
    assert voter.core.high_watermark == 5


def test_an_observer_counts_for_nothing() -> None:
    """KIP-595 'Observers': they replicate and do not take part in the quorum."""
    voter = Node()
    voter.lead()
    voter.append(4)
    voter.fetched(9, 5)
    assert voter.core.high_watermark == 0


def test_follower_s_high_watermark_does_not_pass_its_own_end() -> None:
    voter = Node(2)
    voter.follow(1, 1)
    voter.brought(1, 1, 100)
    assert voter.core.high_watermark == 0


def test_records_that_two_fetches_bring_are_appended_once() -> None:
    """A leader that is back so soon that fetches of its last epoch are still waited for: they fail in the next."""
    voter = Node(2)
    voter.follow(1, 1)
    voter.follow(1, 2)
    voter.step(m.FetchRequestFailed(leader_id=1, epoch=1))
    assert of(voter.step(m.FetchBackoffEnded()), m.SendFetch) == []
    assert of(voter.brought(1, 2, records=b"three records"), m.AppendFetched) != []
    assert voter.brought(1, 2, records=b"three records") == []  # while they are written
    voter.append(3)
    assert voter.brought(1, 2, offset=0, records=b"three records") == []
    assert of(voter.brought(1, 2, records=b"others"), m.AppendFetched) != []


def test_a_leader_is_fetched_from_after_what_an_earlier_one_sent_is_written() -> None:
    """Otherwise the end of the log that is told is not the one that the records are appended to."""
    voter = Node(2, count=5)
    voter.follow(1, 1)
    assert of(voter.brought(1, 1, records=b"two records"), m.AppendFetched) != []
    begun = voter.step(m.BeginEpochRequested(leader_id=3, epoch=2, token=object()))
    assert of(begun, m.SendFetch) == []
    written = voter.step(m.LogSynced(end_offset=2, epochs=((1, 0),)))
    assert of(written, m.SendFetch) == [], "the epoch is not on the device yet"
    (asked,) = of(voter.sync(), m.SendFetch)
    assert (asked.to, asked.offset, asked.last_fetched_epoch) == (3, 2, 1)


def snapshot_leader() -> Node:
    """Its log begins at 5 with one of epoch 3; what is before is a snapshot, whose last record is of epoch 2."""
    voter = Node(epochs=[(2, 5), (3, 5)], end=6, election=Election(3))
    voter.core.high_watermark = 5
    voter.step(m.SnapshotWritten(snapshot=OffsetAndEpoch(5, 2), log_start=5))
    voter.lead()
    return voter


def test_kip_630_replica_that_has_the_snapshot_goes_on_behind_it() -> None:
    (response,) = of(snapshot_leader().fetched(2, 5, last_epoch=2), m.RespondToFetch)
    assert (response.offset, response.diverging, response.snapshot) == (5, None, None)


@pytest.mark.parametrize(("offset", "last_epoch"), [(4, 2), (5, 1), (5, 3), (7, 1)])
def test_kip_630_replica_whose_log_cannot_be_compared_gets_the_snapshot(offset: int, last_epoch: int) -> None:
    (response,) = of(snapshot_leader().fetched(2, offset, last_epoch=last_epoch), m.RespondToFetch)
    assert (response.snapshot, response.diverging) == (OffsetAndEpoch(5, 2), None)


def test_kip_630_each_piece_of_a_snapshot_shows_that_the_leader_is_there() -> None:
    voter = Node(2)
    voter.follow(1, 1)
    (asked,) = of(voter.brought(1, 1, snapshot=OffsetAndEpoch(5, 1)), m.FetchSnapshot)
    for _ in range(5):
        voter.step(
            m.SnapshotPieceFetched(leader_id=asked.leader_id, epoch=asked.epoch),
            after_s=0.8 * SETTINGS.fetch_timeout_s,
        )
        assert voter.step(m.TimePassed()) == []
    assert isinstance(voter.core.role, Follower)
    voter.step(m.SnapshotPieceFetched(leader_id=3, epoch=1), after_s=0.8 * SETTINGS.fetch_timeout_s)
    voter.step(m.TimePassed(), after_s=0.8 * SETTINGS.fetch_timeout_s)
    assert not isinstance(voter.core.role, Follower), "what another node gives says nothing of it"


def test_kip_630_who_takes_a_snapshot_counts_for_check_quorum() -> None:
    voter = snapshot_leader()
    for _ in range(5):
        voter.step(
            m.SnapshotRequested(replica=key(2), epoch=voter.core.epoch), after_s=0.8 * SETTINGS.check_quorum_s
        )
        voter.step(m.TimePassed())
    assert isinstance(voter.core.role, Leader)
    voter.step(m.SnapshotRequested(replica=key(9), epoch=voter.core.epoch), after_s=SETTINGS.check_quorum_s)
    voter.step(m.TimePassed())
    assert not isinstance(voter.core.role, Leader), "an observer does not count"


def test_kip_630_snapshot_replaces_a_log_that_had_left_the_committed_one() -> None:
    voter = Node(2, epochs=[(1, 0)], end=9)
    voter.follow(1, 3)
    voter.brought(1, 3, snapshot=OffsetAndEpoch(5, 2))
    voter.step(m.SnapshotAdopted(snapshot=OffsetAndEpoch(5, 2), version=0, voters=None))
    (asked,) = of(voter.step(m.LogSynced(end_offset=5, epochs=((2, 5),))), m.SendFetch)
    assert (voter.core.high_watermark, asked.offset, asked.last_fetched_epoch) == (5, 5, 2)
