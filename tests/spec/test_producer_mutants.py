"""Each of these takes one rule of producers, transactions or acknowledgements away; the test of the rule notices.

The random search finds them too, most of them by storms of coordinators (docs/internals/simulator.md).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch
from strandline.base.planned import Planned
from strandline.broker.coordinator import group_runtime
from strandline.broker.coordinator.group_runtime import GroupRuntime
from strandline.broker.coordinator.txn_runtime import TxnRuntime
from strandline.broker.replication import delayed_produce
from strandline.broker.replication.delayed_produce import PendingAppend
from strandline.groups.result import CoordinatorResult
from strandline.partition import producers
from strandline.partition.producers import Producers
from strandline.transactions import ending, shard
from strandline.transactions.shard import TransactionShard
from strandline.transactions.transaction import EMPTY, ONGOING, Transaction
from strandline.wire.record_batch import BatchHeader
from tests.sim import test_repeated_batches as repeated_batches
from tests.spec import test_kip_890_transactions as kip_890
from tests.unit.broker.api import test_produce as produce
from tests.unit.broker.coordinator import test_group_coordinator as group_coordinator
from tests.unit.partition import test_open_transactions as open_transactions
from tests.unit.partition import test_producers as idempotence

Patch = pytest.MonkeyPatch
Test = Callable[..., None]


# Producers


def let_in(patch: Patch, code: ErrorCode) -> None:
    """Batches that `check` refuses with this error."""
    original = Producers.check

    def check(self: Producers, header: BatchHeader, guard: Any = None) -> Any:
        try:
            return original(self, header, guard)
        except KafkaError as error:
            if error.code != code:
                raise
            return None

    patch.setattr(Producers, "check", check)


def old_epochs_write(patch: Patch) -> Test:
    patch.setattr(Producers, "check_epoch", lambda self, producer_id, epoch: None)
    return idempotence.test_batch_of_an_older_epoch_is_refused


def duplicates_are_known_by_their_number(patch: Patch) -> Test:
    repeated_batches.duplicates_are_known_by_their_number(patch)
    return idempotence.test_after_a_restart_nothing_older_than_the_snapshot_is_called_written


def followers_learn_of_no_producer(patch: Patch) -> Test:
    patch.setattr(Producers, "replay", lambda self, header, batch: None)
    return repeated_batches.test_a_new_leader_recognises_batches_that_the_former_one_appended


def gaps_are_let_in(patch: Patch) -> Test:
    let_in(patch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    return lambda: idempotence.test_a_gap_is_out_of_order(4)


def new_epochs_begin_anywhere(patch: Patch) -> Test:
    let_in(patch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    return idempotence.test_a_new_epoch_begins_with_sequence_0


def refusals_are_forgotten(patch: Patch) -> Test:
    repeated_batches.refusals_are_forgotten(patch)
    return repeated_batches.test_a_batch_after_a_refused_first_one_does_not_take_its_place


def plain_batches_enter_transactions(patch: Patch) -> Test:
    let_in(patch, ErrorCode.INVALID_TXN_STATE)
    return open_transactions.test_a_plain_batch_is_refused_while_a_transaction_is_open


def batches_overtake_one_that_is_asked_about(patch: Patch) -> Test:
    patch.setattr(producers, "_check_turn", lambda header, guard: None)
    return open_transactions.test_a_batch_waits_for_the_one_before_it_that_the_coordinator_has_to_be_asked_about_again


def late_markers_count(patch: Patch) -> Test:
    patch.setattr(Producers, "check_marker", lambda self, *_: None)
    return open_transactions.test_late_markers_and_those_of_old_coordinators_are_refused


# Transactions


def beginners_share_an_epoch(patch: Patch) -> Test:
    original = shard._next_identity

    def next_identity(transaction: Transaction, *more: Any) -> tuple[int, int, int]:
        producer_id, epoch, last_epoch = original(transaction, *more)
        return producer_id, max(transaction.epoch, 0) if epoch > 0 else epoch, last_epoch

    patch.setattr(shard, "_next_identity", next_identity)
    return kip_890.test_a_producer_that_begins_fences_the_one_before_also_where_no_transaction_is_open


def fenced_producers_go_on(patch: Patch) -> Test:
    original = TransactionShard._known

    def known(self: TransactionShard, name: str, identity: ProducerIdAndEpoch) -> Transaction:
        return original(self, name, identity._replace(epoch=self.transactions[name].epoch))

    patch.setattr(TransactionShard, "_known", known)
    return kip_890.test_a_producer_that_begins_fences_the_one_before_also_where_no_transaction_is_open


def beginners_leave_open_what_they_find(patch: Patch) -> Test:
    original = TransactionShard.plan_init

    def plan_init(self: TransactionShard, name: str, *more: Any) -> Planned[Any]:
        found = self.transactions.get(name)
        if found is not None and found.state == ONGOING:
            self.transactions[name] = replace(found, state=EMPTY, partitions=())
        return original(self, name, *more)

    patch.setattr(TransactionShard, "plan_init", plan_init)
    return kip_890.test_a_producer_that_begins_fences_the_one_before_and_aborts_its_transaction


def partitions_are_added_to_what_is_decided(patch: Patch) -> Test:
    original = TransactionShard.plan_add

    def plan_add(self: TransactionShard, name: str, *more: Any) -> Planned[Any]:
        self.transactions[name] = replace(self.transactions[name], state=ONGOING)
        return original(self, name, *more)

    patch.setattr(TransactionShard, "plan_add", plan_add)
    return kip_890.test_a_prepared_transaction_is_completed_after_a_restart


def without_bump(patch: Patch, module: Any) -> None:
    original = module.prepared

    def prepared(transaction: Transaction, *more: Any) -> Transaction:
        return replace(original(transaction, *more), epoch=transaction.epoch)

    patch.setattr(module, "prepared", prepared)


def transactions_share_an_epoch(patch: Patch) -> Test:
    without_bump(patch, ending)
    return kip_890.test_a_late_end_or_record_of_the_last_transaction_cannot_enter_the_next


def transactions_stay_open(patch: Patch) -> Test:
    patch.setattr(TransactionShard, "timed_out", lambda self, now: [])
    return kip_890.test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced


def late_producers_are_not_fenced(patch: Patch) -> Test:
    without_bump(patch, shard)
    return kip_890.test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced


# What waits until it is committed


def markers_come_before_the_decision(patch: Patch) -> Test:
    original = TxnRuntime._until_done

    async def until_done(self: TxnRuntime, step: Callable[[], Awaitable[None]]) -> bool:
        return step == self.committed or await original(self, step)

    patch.setattr(TxnRuntime, "_until_done", until_done)
    return kip_890.test_markers_and_the_response_wait_until_the_decision_is_committed


def producers_are_told_before_the_decision(patch: Patch) -> Test:
    async def committed(self: TxnRuntime) -> None:
        pass

    patch.setattr(TxnRuntime, "committed", committed)
    return kip_890.test_markers_and_the_response_wait_until_the_decision_is_committed


def members_are_told_what_may_be_taken_back(patch: Patch) -> Test:
    def respond_at_once(self: GroupRuntime, result: CoordinatorResult) -> None:
        group_runtime._respond(result.responses)

    patch.setattr(GroupRuntime, "_respond_when_settled", respond_at_once)
    return group_coordinator.test_a_response_that_depends_on_uncommitted_records_waits_for_them


def appends_are_acknowledged_at_once(patch: Patch) -> Test:
    original = delayed_produce.error_of

    def error_of(pending: PendingAppend) -> int:
        return original(pending) or ErrorCode.NONE

    patch.setattr(delayed_produce, "error_of", error_of)
    return produce.test_acks_all_gets_its_response_when_the_high_watermark_has_passed


MUTANTS = (
    old_epochs_write,
    duplicates_are_known_by_their_number,
    followers_learn_of_no_producer,
    gaps_are_let_in,
    new_epochs_begin_anywhere,
    refusals_are_forgotten,
    plain_batches_enter_transactions,
    batches_overtake_one_that_is_asked_about,
    late_markers_count,
    beginners_share_an_epoch,
    fenced_producers_go_on,
    beginners_leave_open_what_they_find,
    partitions_are_added_to_what_is_decided,
    transactions_share_an_epoch,
    transactions_stay_open,
    late_producers_are_not_fenced,
    markers_come_before_the_decision,
    producers_are_told_before_the_decision,
    members_are_told_what_may_be_taken_back,
    appends_are_acknowledged_at_once,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_test_of_a_rule_notices_that_it_is_missing(
    mutant: Callable[[Patch], Test], monkeypatch: Patch, tmp_path: Path
) -> None:
    test = mutant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test(tmp_path) if test.__code__.co_argcount else test()
