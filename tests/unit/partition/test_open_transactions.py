"""Transactions in one partition: what opens and ends them, and how far a read_committed reader sees."""

from __future__ import annotations

import pytest

from strandline.base.aborted_transaction import AbortedTransaction
from strandline.base.errors import ErrorCode, KafkaError
from strandline.partition.producers import Producers
from strandline.wire.record_batch import TRANSACTIONAL_FLAG, BatchHeader, read_header
from strandline.wire.records.markers import Marker, marker_batch, read_marker
from tests.batches import batch, header, resealed

COMMIT = Marker(True, 3)
ABORT = Marker(False, 3)


def data(
    producer_id: int, sequence: int = 0, *, epoch: int = 0, offset: int = 0, count: int = 1
) -> BatchHeader:
    plain = batch(count, producer_id=producer_id, epoch=epoch, sequence=sequence)
    return header(resealed(plain, attributes=TRANSACTIONAL_FLAG, base_offset=offset))


def end(
    producers: Producers, producer_id: int, marker: Marker, offset: int, epoch: int = 0
) -> AbortedTransaction | None:
    written, _ = marker_batch(producer_id, epoch, marker, 5)
    return producers.replay(read_header(written)._replace(base_offset=offset), written)


def stable(producers: Producers, high_watermark: int = 1000) -> int:
    return producers.transactions.last_stable_offset(high_watermark)


def refusal(producers: Producers, epoch: int, marker: Marker, version: int) -> int:
    with pytest.raises(KafkaError) as refused:
        producers.check_marker(1, epoch, marker, version)
    return refused.value.code


def test_a_marker_says_what_it_was_made_of() -> None:
    written, head = marker_batch(7, 2, ABORT, 99)
    assert head.is_control
    assert head.is_transactional
    assert head.producer_epoch == 2
    assert read_marker(written) == ABORT


def test_the_last_stable_offset_is_where_the_earliest_open_transaction_begins() -> None:
    producers = Producers()
    producers.appended(data(1), 10)
    producers.appended(data(2), 11)
    assert stable(producers) == 10
    assert stable(producers, 5) == 5
    end(producers, 1, COMMIT, 12)
    assert stable(producers) == 11
    end(producers, 2, COMMIT, 13)
    assert stable(producers) == 1000


def test_a_transaction_whose_marker_is_not_committed_counts_as_open() -> None:
    producers = Producers()
    producers.appended(data(1), 10)
    end(producers, 1, COMMIT, 12)
    assert stable(producers, 12) == 10
    assert stable(producers, 13) == 13


def test_an_abort_says_which_records_it_takes_back_and_what_is_open_beside_it() -> None:
    producers = Producers()
    producers.appended(data(1), 10)
    producers.appended(data(2), 11)
    assert end(producers, 2, ABORT, 12) == AbortedTransaction(2, 11, 12, 10)
    assert end(producers, 1, ABORT, 13) == AbortedTransaction(1, 10, 13, 14)
    assert end(producers, 1, ABORT, 14) is None


def test_open_transactions_survive_a_snapshot_in_the_order_of_the_log() -> None:
    producers = Producers()
    producers.appended(data(9), 10)
    producers.appended(data(1), 11)
    again = Producers()
    again.load(reversed(producers.entries()))
    assert stable(again) == 10
    end(again, 9, COMMIT, 12)
    assert stable(again) == 11


def test_a_plain_batch_is_refused_while_a_transaction_is_open() -> None:
    producers = Producers()
    producers.appended(data(1), 10)
    with pytest.raises(KafkaError) as refused:
        producers.check(header(batch(producer_id=1, epoch=0, sequence=1)))
    assert refused.value.code == ErrorCode.INVALID_TXN_STATE


def test_after_a_marker_with_a_new_epoch_sequences_begin_with_zero() -> None:
    producers = Producers()
    producers.appended(data(1), 10)
    end(producers, 1, COMMIT, 11, epoch=1)
    assert producers.check(data(1, 0, epoch=1)) is None
    with pytest.raises(KafkaError) as refused:
        producers.check(data(1, 1, epoch=1))
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    with pytest.raises(KafkaError) as refused:
        producers.check(data(1, 1, epoch=0))
    assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_late_markers_and_those_of_old_coordinators_are_refused() -> None:
    producers = Producers()
    producers.appended(data(1, epoch=4), 10)
    assert refusal(producers, 3, COMMIT, 0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(producers, 4, COMMIT, 2) == ErrorCode.INVALID_PRODUCER_EPOCH
    producers.check_marker(1, 4, COMMIT, 1)
    producers.check_marker(1, 5, COMMIT, 2)
    end(producers, 1, COMMIT, 11, epoch=5)
    # Written again, because its response was lost.
    producers.check_marker(1, 5, COMMIT, 2)
    assert refusal(producers, 6, Marker(True, 2), 2) == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_makes_the_coordinators_response_worthless() -> None:
    transactions = Producers().transactions
    guard = transactions.begin_check(1, 0, 0, begins_with_zero=True)
    assert transactions.holds(1, guard)
    assert transactions.begin_check(1, 0, 5, begins_with_zero=True) is guard
    transactions.forget_guard(1)
    assert not transactions.holds(1, guard)
    assert not transactions.holds(1, None)


def test_a_batch_waits_for_the_one_before_it_that_the_coordinator_has_to_be_asked_about_again() -> None:
    producers = Producers()
    guard = producers.transactions.begin_check(1, 0, 5, begins_with_zero=False)
    assert producers.transactions.begin_check(1, 0, 3, begins_with_zero=False) is guard
    with pytest.raises(KafkaError, match="batch with sequence 3 must be appended first") as refused:
        producers.check(data(1, 5), guard)
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.check(data(1, 3), guard) is None


def test_a_batch_of_an_older_epoch_does_not_hold_back_those_of_the_newer() -> None:
    producers = Producers()
    guard = producers.transactions.begin_check(1, 4, 7, begins_with_zero=False)
    producers.transactions.begin_check(1, 3, 2, begins_with_zero=False)
    assert producers.check(data(1, 7, epoch=4), guard) is None


def test_the_marker_of_one_transaction_leaves_alone_what_the_next_one_asked() -> None:
    """KIP-890: EndTxn gets its response, with the next epoch, before all markers are written; a batch may overtake
    one."""
    producers = Producers()
    producers.appended(data(1), 10)
    guard = producers.transactions.begin_check(1, 1, 0, begins_with_zero=True)
    written, _ = marker_batch(1, 1, COMMIT, 5)
    producers.ended(read_header(written), COMMIT, 11, transaction_version=2)
    assert producers.transactions.holds(1, guard)
    assert producers.check(data(1, 0, epoch=1), guard) is None
    # With version 1 the marker has the epoch of its own transaction.
    producers.ended(read_header(written), COMMIT, 12, transaction_version=1)
    assert not producers.transactions.holds(1, guard)


def test_a_marker_ends_what_was_asked_for_its_transaction() -> None:
    producers = Producers()
    guard = producers.transactions.begin_check(1, 0, 0, begins_with_zero=True)
    written, _ = marker_batch(1, 1, ABORT, 5)
    producers.ended(read_header(written), ABORT, 11, transaction_version=2)
    assert not producers.transactions.holds(1, guard)
