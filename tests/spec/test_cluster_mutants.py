"""Each of these takes one safety rule of the quorum, the controller or replication away; a test of the rule notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strandline.controller import configs, partitions
from strandline.controller.partitions import UNCLEAN, PartitionChange
from strandline.partition import follower, leader
from strandline.partition.leader import PartitionLeader
from strandline.quorum import elections, fetching, state
from strandline.quorum.changes import VoterChanges
from strandline.quorum.elections import Elections
from strandline.quorum.messages import Effect
from strandline.quorum.roles import Prospective, Unattached
from strandline.quorum.state import QuorumState
from strandline.quorum.voters import VoterHistory
from tests.spec import test_kip_101_497_966_replication as replication
from tests.spec import test_kip_595_and_996 as kip_996
from tests.spec import test_kip_853_voters as kip_853
from tests.spec import test_kip_966_elections as kip_966
from tests.spec import test_raft_elections as raft_elections
from tests.spec import test_raft_log as raft_log
from tests.unit.controller import test_reassignments as reassignments

Patch = pytest.MonkeyPatch
Test = Callable[[], None]


def votes_are_sent_before_they_are_on_the_device(patch: Patch) -> Test:
    original = QuorumState._persist

    def persist(self: QuorumState, election: Any, then: list[Effect]) -> list[Effect]:
        return [*original(self, election, []), *then]

    patch.setattr(QuorumState, "_persist", persist)
    return raft_elections.test_5_2_a_vote_is_sent_only_after_it_is_on_the_device


def two_votes_in_an_epoch(patch: Patch) -> Test:
    may_vote_for = Elections._may_vote_for

    def vote(self: Any, candidate: Any) -> bool:
        if isinstance(self.role, Unattached | Prospective):
            self.role.voted = None  # as if it had given none
        return may_vote_for(self, candidate)

    patch.setattr(Elections, "_may_vote_for", vote)
    return raft_elections.test_5_2_one_vote_in_an_epoch


def any_log_may_win(patch: Patch) -> Test:
    patch.setattr(elections, "is_up_to_date", lambda candidate, own: True)
    return raft_elections.test_5_4_1_candidate_whose_log_is_behind_gets_no_vote


def one_vote_is_a_majority(patch: Patch) -> Test:
    patch.setattr(QuorumState, "_is_majority", lambda self, ids: len(ids) > 1)
    return raft_elections.test_5_2_majority_wins_and_one_vote_does_not


def divergence_is_not_looked_for(patch: Patch) -> Test:
    patch.setattr(fetching, "diverging_point", lambda *_: None)
    return raft_log.test_5_3_replica_whose_log_parts_is_told_where_to_go_back_to


def followers_go_back_to_the_leader_s_offset_alone(patch: Patch) -> Test:
    patch.setattr(fetching, "end_of", lambda epochs, end, epoch: None)
    return raft_log.test_5_3_follower_truncates_to_where_the_logs_agree_and_not_further


def pre_votes_are_granted_to_anyone(patch: Patch) -> Test:
    patch.setattr(Elections, "_grants_pre_vote", lambda self: True)
    return kip_996.test_996_a_voter_that_has_heard_from_the_leader_refuses_a_pre_vote


def high_watermark_is_the_leader_s_end(patch: Patch) -> Test:
    patch.setattr(leader, "high_watermark", max)
    return replication.test_high_watermark_is_the_smallest_end_over_the_in_sync_set


def proposed_members_do_not_count(patch: Patch) -> Test:
    patch.setattr(PartitionLeader, "maximal_in_sync", property(lambda self: self.in_sync))
    return replication.test_a_replica_that_is_being_taken_in_holds_the_high_watermark_already


def high_watermark_advances_below_the_minimum(patch: Patch) -> Test:
    patch.setattr(PartitionLeader, "is_below_minimum", lambda self, minimum: False)
    return replication.test_high_watermark_stands_while_the_in_sync_set_is_below_the_minimum


def followers_truncate_to_the_leader_s_end_of_whatever_epoch(patch: Patch) -> Test:
    patch.setattr(follower, "truncation_point", lambda epochs, end, epoch, leader_end: min(end, leader_end))
    return replication.test_truncation_goes_back_to_the_end_of_the_last_epoch_that_both_have


def unclean_election_everywhere(patch: Patch) -> Test:
    original = PartitionChange.record

    def record(self: PartitionChange) -> Any:
        self.election = UNCLEAN
        return original(self)

    patch.setattr(PartitionChange, "record", record)
    return kip_966.test_nobody_leads_when_nobody_in_sync_or_eligible_lives


def nobody_is_eligible(patch: Patch) -> Test:
    patch.setattr(PartitionChange, "_eligible", lambda self, replicas, in_sync, factor: ())
    return kip_966.test_eligible_leader_is_elected_when_nobody_is_in_sync


def who_was_eligible_stays_so_under_another_minimum(patch: Patch) -> Test:
    patch.setattr(configs, "forgotten_eligible_leaders", lambda image, resource: [])
    return kip_966.test_another_minimum_makes_nobody_eligible_that_was


def unclean_ends_stay_eligible(patch: Patch) -> Test:
    original = PartitionChange.record

    def record(self: PartitionChange) -> Any:
        self.unclean_shutdown = frozenset()
        return original(self)

    patch.setattr(PartitionChange, "record", record)
    return kip_966.test_replica_that_ended_uncleanly_is_not_eligible


def last_known_leaders_stay_known(patch: Patch) -> Test:
    original = PartitionChange.record

    def record(self: PartitionChange) -> Any:
        changed = original(self)
        if changed is not None and changed.last_known_elr == ():
            changed.last_known_elr = None
        return changed

    patch.setattr(PartitionChange, "record", record)
    return kip_966.test_last_known_leader_is_forgotten_when_another_leads


def reassignments_do_not_wait_for_who_stays(patch: Patch) -> Test:
    def complete(replicas: Any, removing: Any, adding: Any, in_sync: Any) -> Any:
        def left(nodes: Any) -> Any:
            return tuple(node for node in nodes if node not in removing)

        return left(replicas), (), (), left(in_sync)

    patch.setattr(partitions, "_complete_reassignment", complete)
    return reassignments.test_one_that_leaves_fewer_replicas_waits_for_all_that_stay


def changes_overlap(patch: Patch) -> Test:
    patch.setattr(VoterChanges, "_refusal", lambda self, role: None)
    return kip_853.test_4_1_one_change_at_a_time


def changes_begin_before_the_epoch_is_committed(patch: Patch) -> Test:
    original = VoterChanges._refusal

    def refusal(self: VoterChanges, role: Any) -> Any:
        role.epoch_start = -1
        return original(self, role) if self.history.last_offset < self.high_watermark else None

    patch.setattr(VoterChanges, "_refusal", refusal)
    return kip_853.test_4_1_no_change_before_the_leader_has_committed_a_record_of_its_epoch


def laggards_are_added(patch: Patch) -> Test:
    patch.setattr(VoterChanges, "_is_caught_up", lambda self, role, key, now: True)
    return kip_853.test_4_2_1_voter_that_has_not_caught_up_is_not_added


def old_sets_count_until_the_new_is_committed(patch: Patch) -> Test:
    newest = VoterHistory.last.fget

    def last(self: VoterHistory) -> Any:
        return self.before_last if len(self._entries) > 1 else newest(self)

    patch.setattr(VoterHistory, "last", property(last))
    return kip_853.test_4_1_new_set_counts_from_the_moment_it_is_appended


def sets_outlive_the_log(patch: Patch) -> Test:
    patch.setattr(VoterHistory, "truncate", lambda self, end_offset: None)
    return kip_853.test_4_1_set_goes_with_the_log_that_is_cut_off


def removed_leaders_count_themselves(patch: Patch) -> Test:
    patch.setattr(fetching, "is_same", lambda known, other: True)
    return kip_853.test_4_2_2_removed_leader_does_not_count_itself_and_resigns_when_it_is_committed


def removed_leaders_stay(patch: Patch) -> Test:
    patch.setattr(VoterChanges, "_resign", lambda self, now: [])
    return kip_853.test_4_2_2_removed_leader_does_not_count_itself_and_resigns_when_it_is_committed


def nobody_that_is_left_out_stands(patch: Patch) -> Test:
    patch.setattr(QuorumState, "may_stand", QuorumState.is_voter)
    return kip_853.test_4_2_2_node_that_is_left_out_may_stand_until_that_is_committed


def observers_stand(patch: Patch) -> Test:
    patch.setattr(QuorumState, "may_stand", True)
    return kip_853.test_853_observer_never_stands


def new_disks_vote_for_old_ones(patch: Patch) -> Test:
    patch.setattr(Elections, "_is_addressed", lambda self, addressee: True)
    return kip_853.test_853_vote_for_another_disk_of_this_id_is_not_given


def new_disks_count_for_old_ones(patch: Patch) -> Test:
    def by_id(known: Any, other: Any) -> bool:
        return bool(known.replica_id == other.replica_id)

    patch.setattr(fetching, "is_same", by_id)
    patch.setattr(state, "is_same", by_id)
    return kip_853.test_853_fetches_of_another_disk_of_this_id_do_not_count


MUTANTS = (
    changes_overlap,
    changes_begin_before_the_epoch_is_committed,
    laggards_are_added,
    old_sets_count_until_the_new_is_committed,
    sets_outlive_the_log,
    removed_leaders_count_themselves,
    removed_leaders_stay,
    nobody_that_is_left_out_stands,
    observers_stand,
    new_disks_vote_for_old_ones,
    new_disks_count_for_old_ones,
    votes_are_sent_before_they_are_on_the_device,
    two_votes_in_an_epoch,
    any_log_may_win,
    one_vote_is_a_majority,
    divergence_is_not_looked_for,
    followers_go_back_to_the_leader_s_offset_alone,
    pre_votes_are_granted_to_anyone,
    high_watermark_is_the_leader_s_end,
    proposed_members_do_not_count,
    high_watermark_advances_below_the_minimum,
    followers_truncate_to_the_leader_s_end_of_whatever_epoch,
    unclean_election_everywhere,
    nobody_is_eligible,
    who_was_eligible_stays_so_under_another_minimum,
    unclean_ends_stay_eligible,
    last_known_leaders_stay_known,
    reassignments_do_not_wait_for_who_stays,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_test_of_a_rule_notices_that_it_is_missing(
    mutant: Callable[[Patch], Test], monkeypatch: Patch
) -> None:
    test = mutant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test()
