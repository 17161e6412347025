"""Each of these takes one safety rule of groups away; the test of the rule must notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.groups import offset_requests
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.classic.protocol import ClassicGroupProtocol
from strandline.groups.classic.rebalance import ClassicRebalance
from strandline.groups.committed_offset import GroupOffset
from strandline.groups.committed_view import CommittedView
from strandline.groups.consumer import changes, protocol, reconciliation
from strandline.groups.consumer.protocol import ConsumerProtocol
from strandline.groups.migration import migration
from strandline.groups.migration.classic_requests import ClassicMemberRequests
from strandline.groups.migration.migration import GroupMigration
from strandline.groups.offset_requests import OffsetRequests
from strandline.groups.offsets import GroupOffsets
from strandline.groups.result import CoordinatorResult, Entry
from strandline.groups.shard import GroupShard
from tests.spec import test_kip_62_heartbeats_and_rebalance_timeout as kip_62
from tests.spec import test_kip_345_static_membership as kip_345
from tests.spec import test_kip_429_cooperative_rebalancing as kip_429
from tests.spec import test_kip_848_consumer_protocol as kip_848
from tests.unit.groups import test_assignment_is_written_first as written_first
from tests.unit.groups import test_committed_view as committed_view
from tests.unit.groups import test_offsets_of_former_topics as former_topics
from tests.unit.groups import test_what_is_kept as kept

Patch = pytest.MonkeyPatch
Test = Callable[[], None]


def silent_members_stay(patch: Patch) -> Test:
    patch.setattr(ClassicGroupProtocol, "session_expired", lambda *_: CoordinatorResult())
    return kip_62.test_a_member_that_is_silent_for_its_session_is_removed_and_the_others_rebalance


def rebalances_wait_for_ever(patch: Patch) -> Test:
    patch.setattr(ClassicRebalance, "join_expired", lambda *_: CoordinatorResult())
    return kip_62.test_a_member_that_does_not_rejoin_within_the_rebalance_timeout_is_removed_though_it_sends_heartbeats


def rebalances_wait_for_the_quickest(patch: Patch) -> Test:
    quickest = property(lambda self: min(m.rebalance_timeout_ms for m in self.members.values()))
    patch.setattr(ClassicGroup, "rebalance_timeout_ms", quickest)
    return kip_62.test_a_rebalance_waits_for_the_longest_rebalance_timeout_of_all


def syncs_are_waited_for_for_ever(patch: Patch) -> Test:
    patch.setattr(ClassicRebalance, "sync_expired", lambda *_: CoordinatorResult())
    return kip_62.test_a_member_that_joined_and_never_syncs_is_removed_after_the_rebalance_timeout


def twins_are_not_fenced(patch: Patch) -> Test:
    original = ClassicGroup.check_member
    patch.setattr(ClassicGroup, "check_member", lambda self, member, _: original(self, member, None))
    return kip_345.test_of_two_with_one_instance_id_the_older_is_fenced


def waiting_twins_are_forgotten(patch: Patch) -> Test:
    patch.setattr(ClassicGroupProtocol, "_fence_waiting", lambda *_: None)
    return kip_345.test_a_process_that_waits_under_the_old_id_is_fenced_at_once


def restarted_leaders_assign(patch: Patch) -> Test:
    original = ClassicGroupProtocol._return_static

    def return_static(self: Any, *arguments: Any) -> CoordinatorResult:
        result = original(self, *arguments)
        result.responses[-1][1].skip_assignment = False  # type: ignore[attr-defined]
        return result

    patch.setattr(ClassicGroupProtocol, "_return_static", return_static)
    return kip_345.test_a_leader_that_restarts_is_told_not_to_assign_again


def old_generations_commit(patch: Patch) -> Test:
    def unchecked(self: Any, *_: Any) -> None:
        return None

    patch.setattr(OffsetRequests, "_late_member", unchecked)
    return kip_429.test_a_commit_of_a_generation_that_is_over_is_refused


def commits_do_not_wait_for_the_assignment(patch: Patch) -> Test:
    patch.setattr(offset_requests, "COMPLETING_REBALANCE", "no such state")
    return kip_429.test_a_commit_between_join_and_sync_is_told_to_wait_for_the_assignment


def anyone_is_let_in(patch: Patch) -> Test:
    patch.setattr(ClassicGroup, "supports", lambda *_: True)
    return kip_429.test_a_cooperative_only_member_is_not_let_in_beside_an_eager_only_one


def the_choice_of_the_last_wins(patch: Patch) -> Test:
    patch.setattr(
        ClassicGroup, "select_protocol", lambda self: list(self.members.values())[-1].protocols[0][0]
    )
    return kip_429.test_on_the_way_from_eager_to_cooperative_the_assignor_that_all_support_is_chosen


def assignments_are_told_before_they_are_written(patch: Patch) -> Test:
    original = GroupShard.sync

    def sync(self: GroupShard, *arguments: Any) -> CoordinatorResult:
        result = original(self, *arguments)
        if result.on_written is not None:
            told = self.written(result.on_written, arguments[-1])
            result.responses += told.responses
        return result

    patch.setattr(GroupShard, "sync", sync)
    return written_first.test_nobody_is_told_an_assignment_that_is_not_written


def partitions_have_no_owners(patch: Patch) -> Test:
    original = reconciliation.reconcile
    patch.setattr(changes, "reconcile", lambda owner_of, *rest: original(lambda *_: None, *rest))
    return kip_848.test_a_partition_is_given_only_after_its_owner_has_confirmed_to_have_let_go


def letting_go_is_taken_for_granted(patch: Patch) -> Test:
    patch.setattr(reconciliation, "_still_holds", lambda *_: False)
    return kip_848.test_a_partition_is_given_only_after_its_owner_has_confirmed_to_have_let_go


def stuck_consumers_stay(patch: Patch) -> Test:
    patch.setattr(ConsumerProtocol, "_watch_revocation", lambda *_: None)
    return kip_848.test_a_member_that_does_not_let_go_within_its_rebalance_timeout_is_removed


def silent_consumers_stay(patch: Patch) -> Test:
    patch.setattr(ClassicMemberRequests, "removal", lambda *_: CoordinatorResult())
    return kip_848.test_a_silent_member_is_removed_after_the_session_timeout


def epochs_are_not_checked(patch: Patch) -> Test:
    patch.setattr(protocol, "_check_epoch", lambda *_: None)
    return kip_848.test_an_unknown_member_and_a_wrong_epoch_are_refused


def stale_commits_pass(patch: Patch) -> Test:
    patch.setattr(offset_requests, "_had_already", lambda *_: True)
    return kip_848.test_a_commit_of_an_old_epoch_is_stale_unless_the_partition_never_left


def instance_ids_are_taken_over(patch: Patch) -> Test:
    original = ConsumerProtocol._find

    def find(
        self: Any, group: Any, member_id: str, instance_id: str | None, epoch: int, reported: Any
    ) -> Any:
        try:
            return original(self, group, member_id, instance_id, epoch, reported)
        except KafkaError as error:
            if error.code != ErrorCode.UNRELEASED_INSTANCE_ID:
                raise
            old = group.members[group.static_members[instance_id]]
            return old._replace(member_id=member_id, epoch=0, previous_epoch=0), old

    patch.setattr(ConsumerProtocol, "_find", find)
    return kip_848.test_an_instance_id_in_use_is_not_given_to_another


def members_that_go_away_are_removed(patch: Patch) -> Test:
    original = ConsumerProtocol.plan_leave

    def plan_leave(self: Any, group: Any, request: Any, now: Any) -> Any:
        request.member_epoch = -1
        return original(self, group, request, now)

    patch.setattr(ConsumerProtocol, "plan_leave", plan_leave)
    return kip_848.test_a_static_member_that_goes_away_keeps_its_partitions_and_its_successor_gets_them


def classic_members_are_not_told_to_rejoin(patch: Patch) -> Test:
    patch.setattr(GroupMigration, "must_rejoin", lambda *_: False)
    return kip_848.test_a_classic_group_becomes_a_consumer_group_when_the_first_consumer_joins


def upgrades_forget_what_members_own(patch: Patch) -> Test:
    original = GroupMigration.upgraded

    def upgraded(self: Any, *arguments: Any) -> Any:
        group = original(self, *arguments)
        group.members = {m: member._replace(assigned={}) for m, member in group.members.items()}
        group.owners = {}
        return group

    patch.setattr(GroupMigration, "upgraded", upgraded)
    return kip_848.test_a_classic_group_becomes_a_consumer_group_when_the_first_consumer_joins


def what_classic_members_keep_is_taken_for_released(patch: Patch) -> Test:
    patch.setattr(migration, "_by_id", lambda *_: {})
    return kip_848.test_a_classic_member_lets_go_by_rejoining_without_the_partitions


def uncommitted_offsets_are_shown(patch: Patch) -> Test:
    patch.setattr(CommittedView, "get", lambda self, *place: self._offsets.get(*place))
    return committed_view.test_an_offset_is_shown_when_its_record_is_committed_and_not_before


def offsets_belong_to_names(patch: Patch) -> Test:
    patch.setattr(GroupOffset, "is_of", lambda *_: True)
    return former_topics.test_an_offset_of_a_topic_that_was_deleted_is_not_shown_for_the_next_one_of_its_name


def groups_are_deleted_with_their_members(patch: Patch) -> Test:
    patch.setattr(GroupShard, "_is_empty", lambda *_: True)
    return kept.test_a_group_that_has_a_member_is_not_deleted_nor_are_offsets_of_what_it_subscribes_to


def subscriptions_keep_no_offsets(patch: Patch) -> Test:
    patch.setattr(OffsetRequests, "_subscribed", lambda *_: set())
    return kept.test_offsets_of_what_a_member_subscribes_to_are_kept_however_old_they_are


def offsets_expire_by_their_commit_alone(patch: Patch) -> Test:
    original = GroupOffsets.expired

    def expired(self: GroupOffsets, group_id: str, **how: Any) -> list[Entry]:
        return original(self, group_id, **{**how, "since_ms": lambda committed: committed.commit_ms})

    patch.setattr(GroupOffsets, "expired", expired)
    return kept.test_when_everyone_has_left_offsets_are_kept_for_their_time_from_then_on


MUTANTS = [
    silent_members_stay,
    rebalances_wait_for_ever,
    rebalances_wait_for_the_quickest,
    syncs_are_waited_for_for_ever,
    twins_are_not_fenced,
    waiting_twins_are_forgotten,
    restarted_leaders_assign,
    old_generations_commit,
    commits_do_not_wait_for_the_assignment,
    anyone_is_let_in,
    the_choice_of_the_last_wins,
    assignments_are_told_before_they_are_written,
    partitions_have_no_owners,
    letting_go_is_taken_for_granted,
    stuck_consumers_stay,
    silent_consumers_stay,
    epochs_are_not_checked,
    stale_commits_pass,
    instance_ids_are_taken_over,
    members_that_go_away_are_removed,
    classic_members_are_not_told_to_rejoin,
    upgrades_forget_what_members_own,
    what_classic_members_keep_is_taken_for_released,
    uncommitted_offsets_are_shown,
    offsets_belong_to_names,
    groups_are_deleted_with_their_members,
    subscriptions_keep_no_offsets,
    offsets_expire_by_their_commit_alone,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_rule_s_test_notices(mutant: Callable[[Patch], Test], monkeypatch: Patch) -> None:
    test = mutant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test()
