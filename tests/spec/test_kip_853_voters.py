"""KIP-853 and Raft's thesis, chapter 4: voters come and go, one at a time, while the quorum works."""

from __future__ import annotations

from strandline.quorum import messages as m
from strandline.quorum.messages import Effect, Election, OffsetAndEpoch, ReplicaKey
from strandline.quorum.roles import Leader, Resigned, Unattached
from strandline.quorum.voters import Endpoint, Voter
from tests.spec.quorums import SETTINGS, Node, as_voter, is_granted, key, of, voter_set

OTHER_DISK = ReplicaKey(2, b"x" * 16)


def leader(*ids: int) -> Node:
    """Node 1, which leads a quorum of these and has committed the first record of its epoch."""
    node = Node(1, recorded=voter_set(*ids))
    node.lead()
    node.commit()
    assert isinstance(node.core.role, Leader)
    assert node.core.high_watermark == node.core.log_end
    return node


def with_observer(node: Node, node_id: int) -> Node:
    node.fetched(node_id, node.core.log_end)
    return node


def responses(effects: list[Effect]) -> list[tuple[object, str]]:
    return [(response.token, response.error) for response in of(effects, m.RespondToVoterChange)]


def test_853_first_leader_records_the_voters_that_the_quorum_was_formatted_with() -> None:
    node = leader(1)
    (change,) = of(node.effects, m.AppendLeaderChange)
    assert change.recorded == voter_set(1)
    assert change.version == 1
    assert node.core.history.last_offset == 2


def test_853_leader_with_other_endpoints_records_them_when_its_epoch_begins() -> None:
    moved = Voter(key=key(1), endpoints=(Endpoint("CONTROLLER", "elsewhere", 9093),))
    node = Node(1, recorded=voter_set(2, 3).with_voter(moved), epochs=[(1, 0)], end=3)
    node.core.history.append(2, voter_set(2, 3).with_voter(moved))
    node.lead()
    assert of(node.effects, m.AppendLeaderChange)[-1].recorded == voter_set(1, 2, 3)


def test_853_configured_voters_are_in_no_record_and_do_not_change() -> None:
    node = Node(1, count=1)
    node.lead()
    assert of(node.effects, m.AppendLeaderChange)[-1].recorded is None
    assert responses(with_observer(node, 2).add(2)) == [("add 2", "UNSUPPORTED_VERSION")]
    assert responses(node.remove(1)) == [("remove 1", "UNSUPPORTED_VERSION")]


def test_4_1_new_set_counts_from_the_moment_it_is_appended() -> None:
    node = with_observer(leader(1), 2)
    end = node.core.log_end
    node.recorded(node.add(2))
    assert node.core.voters == (key(1), key(2))
    assert node.core.high_watermark == end, "the leader alone is no majority of two"
    told = node.fetched(2, node.core.log_end)
    assert responses(told) == [("add 2", "")]
    assert node.core.high_watermark == end + 1


def test_4_1_removed_voter_does_not_count_for_the_set_without_it() -> None:
    node = leader(1, 2, 3)
    node.recorded(node.remove(3))
    end = node.core.log_end
    assert responses(node.fetched(3, end)) == []
    assert node.core.high_watermark == end - 1
    assert responses(node.fetched(2, end)) == [("remove 3", "")]


def test_4_1_one_change_at_a_time() -> None:
    node = with_observer(with_observer(leader(1, 2, 3), 4), 5)
    node.step(m.AddVoterRequested(voter=as_voter(4), token="first"))
    assert responses(node.add(5)) == [("add 5", "REQUEST_TIMED_OUT")], "another is being checked"
    node.recorded(node.step(m.VoterChecked(key=key(4), version_range=(0, 1))))
    assert responses(node.remove(3)) == [("remove 3", "REQUEST_TIMED_OUT")], "another is not committed"
    node.commit()
    assert of(node.remove(3), m.AppendVoters)


def test_4_1_set_without_a_response_in_time_still_bars_the_next() -> None:
    node = with_observer(leader(1, 2, 3), 4)
    node.recorded(node.add(4))
    late = node.step(m.TimePassed(), after_s=SETTINGS.request_timeout_s)
    assert responses(late) == [("add 4", "REQUEST_TIMED_OUT")]
    assert responses(node.remove(3)) == [("remove 3", "REQUEST_TIMED_OUT")]


def test_4_1_no_change_before_the_leader_has_committed_a_record_of_its_epoch() -> None:
    """The error that was found in the thesis in 2015: two sets without a common majority."""
    node = Node(1, recorded=voter_set(1, 2, 3))
    node.lead()
    with_observer(node, 4)
    assert responses(node.add(4)) == [("add 4", "REQUEST_TIMED_OUT")]
    assert responses(node.remove(3)) == [("remove 3", "REQUEST_TIMED_OUT")]


def test_4_1_set_goes_with_the_log_that_is_cut_off() -> None:
    node = Node(2, recorded=voter_set(1, 2, 3), epochs=[(1, 0)], end=5)
    node.step(m.VotersAppended(offset=4, voters=voter_set(1, 2, 3, 4)))
    node.follow(leader=3, epoch=2)
    node.brought(3, 2, diverging=OffsetAndEpoch(4, 1))
    assert of(node.effects, m.TruncateLog)[-1].offset == 4
    assert node.core.voters == voter_set(1, 2, 3).keys


def test_4_2_1_voter_that_has_not_caught_up_is_not_added() -> None:
    node = leader(1, 2, 3)
    assert responses(node.add(4)) == [("add 4", "REQUEST_TIMED_OUT")], "never heard of"
    node.fetched(4, 1)
    assert responses(node.add(4)) == [("add 4", "REQUEST_TIMED_OUT")], "has not reached the end"
    with_observer(node, 4)
    assert of(node.add(4), m.AppendVoters)


def test_4_2_1_voter_that_caught_up_long_ago_is_not_added() -> None:
    node = with_observer(leader(1), 4)
    node.now += 10 * SETTINGS.check_quorum_s
    assert responses(node.add(4)) == [("add 4", "REQUEST_TIMED_OUT")]


def test_853_voter_that_does_not_respond_or_knows_no_kraft_version_is_not_added() -> None:
    for told, error in ((None, "REQUEST_TIMED_OUT"), ((0, 0), "INVALID_REQUEST")):
        node = with_observer(leader(1), 2)
        node.add(2, checked=False)
        effects = node.step(m.VoterChecked(key=key(2), version_range=told))
        assert responses(effects) == [("add 2", error)]
        assert node.core.voters == (key(1),)


def test_853_known_id_is_not_added_again_and_unknown_voters_are_not_removed() -> None:
    node = leader(1, 2, 3)
    assert responses(with_observer(node, 2).add(2)) == [("add 2", "DUPLICATE_VOTER")]
    assert responses(node.remove(4)) == [("remove 4", "VOTER_NOT_FOUND")]
    other_disk = node.step(m.RemoveVoterRequested(key=OTHER_DISK, token="disk"))
    assert responses(other_disk) == [("disk", "VOTER_NOT_FOUND")]
    assert responses(leader(1).remove(1)) == [("remove 1", "VOTER_NOT_FOUND")], "the last one stays"
    assert not of(node.effects, m.AppendVoters)


def test_853_only_the_leader_changes_voters() -> None:
    node = Node(2, recorded=voter_set(1, 2, 3))
    node.follow(leader=1, epoch=1)
    assert responses(node.add(4)) == [("add 4", "NOT_LEADER_OR_FOLLOWER")]
    assert responses(node.remove(3)) == [("remove 3", "NOT_LEADER_OR_FOLLOWER")]


def test_4_2_2_removed_leader_does_not_count_itself_and_resigns_when_it_is_committed() -> None:
    node = leader(1, 2, 3)
    node.recorded(node.remove(1))
    end = node.core.log_end
    node.fetched(2, end)
    assert isinstance(node.core.role, Leader)
    assert node.core.high_watermark == end - 1
    told = node.fetched(3, end)
    assert responses(told) == [("remove 1", "")]
    assert isinstance(node.core.role, Resigned)
    assert {effect.to for effect in of(told, m.SendEndEpoch)} == {2, 3}
    assert node.step(m.TimePassed(), after_s=10.0) == [], "it does not stand again"
    assert isinstance(node.core.role, Unattached)


def test_4_2_2_node_that_is_left_out_may_stand_until_that_is_committed() -> None:
    """Figure 4.6: the other has not got the new set, and cannot be elected by a node that has more of the log."""
    node = Node(1, recorded=voter_set(1, 2), epochs=[(1, 0)], end=5)
    node.step(m.VotersAppended(offset=4, voters=voter_set(2)))
    asked = of(node.step(m.TimePassed(), after_s=10.0), m.SendVote)
    assert [(vote.to, vote.is_pre_vote) for vote in asked] == [(2, True)]
    node.responded(2, granted=True, pre=True)
    node.sync()
    assert not isinstance(node.core.role, Leader), "its own vote does not count"
    node.responded(2, granted=True, pre=False)
    node.sync()
    node.append(1)
    assert isinstance(node.core.role, Leader)
    node.fetched(2, node.core.log_end)
    assert isinstance(node.core.role, Resigned)


def test_853_observer_never_stands() -> None:
    node = Node(4, recorded=voter_set(1, 2, 3))
    assert node.core.next_deadline() is None
    assert node.step(m.TimePassed(), after_s=100.0) == []


def test_853_vote_for_another_disk_of_this_id_is_not_given() -> None:
    node = Node(2, recorded=voter_set(1, 2, 3))
    effects = node.step(
        m.VoteRequested(
            candidate=key(1),
            epoch=1,
            last=OffsetAndEpoch(0, 0),
            is_pre_vote=False,
            addressee=OTHER_DISK,
            token=object(),
        )
    )
    assert not is_granted([*effects, *node.sync()])
    assert of(effects, m.RespondToVote)[0].error == "INVALID_VOTER_KEY"


def test_853_fetches_of_another_disk_of_this_id_do_not_count() -> None:
    node = leader(1, 2)
    before = node.core.high_watermark
    node.append(1)
    node.step(
        m.FetchRequested(
            replica=OTHER_DISK,
            epoch=node.core.epoch,
            offset=node.core.log_end,
            last_fetched_epoch=node.core.epoch,
            token=object(),
        )
    )
    assert node.core.high_watermark == before


def test_853_anyone_votes_for_a_candidate_that_it_does_not_know_as_a_voter() -> None:
    """Its own set may be older than the candidate's."""
    node = Node(2, recorded=voter_set(1, 2, 3))
    node.vote(candidate=4, epoch=1)
    assert is_granted(node.sync())


def test_853_changed_endpoints_are_recorded_and_who_votes_stays_the_same() -> None:
    node = leader(1, 2, 3)
    moved = Voter(key=key(2), endpoints=(Endpoint("CONTROLLER", "elsewhere", 1),))
    effects = node.step(m.UpdateVoterRequested(voter=moved, epoch=node.core.epoch, token="update"))
    assert responses(effects) == [("update", "")]
    assert node.recorded(effects).by_id(2) == moved
    assert node.core.voters == voter_set(1, 2, 3).keys
    for voter, epoch, error in (
        (as_voter(4), node.core.epoch, "VOTER_NOT_FOUND"),
        (moved, node.core.epoch - 1, "FENCED_LEADER_EPOCH"),
        (moved, node.core.epoch + 1, "UNKNOWN_LEADER_EPOCH"),
    ):
        node.commit()
        assert responses(node.step(m.UpdateVoterRequested(voter=voter, epoch=epoch, token=0))) == [(0, error)]


def test_853_change_of_a_leader_that_is_deposed_gets_not_leader() -> None:
    node = with_observer(leader(1, 2, 3), 4)
    node.recorded(node.add(4))
    effects = node.vote(candidate=2, epoch=node.core.epoch + 1, last=OffsetAndEpoch(9, 9))
    assert responses(effects) == [("add 4", "NOT_LEADER_OR_FOLLOWER")]


def test_853_check_quorum_counts_the_voters_of_the_latest_set() -> None:
    node = with_observer(leader(1), 2)
    assert node.step(m.TimePassed(), after_s=100.0) == [], "nobody else is needed"
    with_observer(node, 2)
    node.recorded(node.add(2))
    node.step(m.TimePassed(), after_s=2 * SETTINGS.check_quorum_s)
    assert isinstance(node.core.role, Resigned), "a majority of two has not been heard of"


def test_853_snapshot_brings_its_voters() -> None:
    node = Node(4, recorded=voter_set(1), election=Election(1))
    node.step(m.SnapshotAdopted(snapshot=OffsetAndEpoch(10, 2), version=1, voters=voter_set(2, 3, 4)))
    assert node.core.is_voter
    assert node.core.history.last_offset == 9
    assert node.core.high_watermark == node.core.log_end == 10


def test_853_snapshot_keeps_the_voters_that_the_log_has_behind_it() -> None:
    node = Node(4, recorded=voter_set(1), epochs=[(2, 0)], end=20, election=Election(2))
    for offset, ids in ((5, (1, 2)), (15, (1, 2, 4))):
        node.step(m.VotersAppended(offset=offset, voters=voter_set(*ids)))
    node.step(m.SnapshotAdopted(snapshot=OffsetAndEpoch(10, 2), version=1, voters=voter_set(1, 2)))
    assert node.core.history.last == voter_set(1, 2, 4)
    assert node.core.history.at(9) == (1, voter_set(1, 2))
    assert (node.core.log_end, node.core.high_watermark) == (20, 10)
    node.step(m.SnapshotAdopted(snapshot=OffsetAndEpoch(12, 3), version=1, voters=voter_set(1, 2)))
    assert node.core.history.last == voter_set(1, 2), "of a log that had left the committed one nothing stays"
    assert node.core.log_end == 12


def test_853_configured_voters_go_into_the_log_when_kraft_version_is_raised() -> None:
    node = Node(1, configured_by_id=True)
    node.lead()
    early = node.step(m.VersionUpgradeRequested(token="early"))
    assert responses(early) == [("early", "REQUEST_TIMED_OUT")], "its epoch is not committed"
    node.fetched(2, node.core.log_end)
    unknown = node.step(m.VersionUpgradeRequested(token="unknown"))
    assert responses(unknown) == [("unknown", "INVALID_UPDATE_VERSION")], "voter 3 has not fetched"
    node.fetched(3, node.core.log_end)
    assert responses(node.step(m.VersionUpgradeRequested(token="check", validates_only=True))) == [
        ("check", "")
    ]
    assert not node.core.history.is_dynamic
    recorded = node.recorded(node.step(m.VersionUpgradeRequested(token="raise")))
    assert recorded.keys == (key(1), key(2), key(3))
    assert responses(node.fetched(2, node.core.log_end)) == [("raise", "")]
    assert node.core.history.is_dynamic
    assert of(with_observer(node, 4).add(4), m.AppendVoters)
