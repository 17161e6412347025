"""Batches that follow a refused one are refused likewise, one rule at a time."""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.partition.refused_batches import REFUSED_MAX, RETRY_S, RefusedBatches, error_after
from strandline.wire.record_batch import BatchHeader
from tests.batches import batch, header

PRODUCER = 42
TOO_FEW = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "One replica is in sync.")


def sent(sequence: int, *, epoch: int = 0, producer_id: int = PRODUCER) -> BatchHeader:
    return header(batch(1, producer_id=producer_id, epoch=epoch, sequence=sequence))


def refused(*batches: BatchHeader, expected: int | None = None) -> RefusedBatches:
    noted = RefusedBatches()
    for each in batches:
        noted.note(each, expected, TOO_FEW, now=10.0)
    return noted


def test_a_batch_after_a_refused_one_gets_the_same_error() -> None:
    noted = refused(sent(5), expected=5)
    earlier = noted.before(sent(6), expected=5)
    assert earlier is not None
    error = error_after(earlier, sent(6), now=10.0 + RETRY_S)
    assert (error.code, error.message) == (TOO_FEW.code, TOO_FEW.message)


def test_a_producer_that_does_not_come_back_with_the_refused_batch_hears_of_the_gap() -> None:
    earlier = refused(sent(5), expected=5).before(sent(6), expected=5)
    assert earlier is not None
    error = error_after(earlier, sent(6), now=10.1 + RETRY_S)
    assert error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_refused_batch_itself_and_earlier_ones_are_not_held_up() -> None:
    noted = refused(sent(5), expected=5)
    assert noted.before(sent(5), expected=5) is None
    assert noted.before(sent(4), expected=5) is None


def test_a_gap_that_another_batch_left_is_not_excused() -> None:
    """Meanwhile the refused batch was appended by another leader and replicated to here."""
    noted = refused(sent(5), expected=5)
    assert noted.before(sent(9), expected=7) is None


def test_a_batch_that_left_a_gap_itself_excuses_nothing() -> None:
    assert refused(sent(6), expected=5).before(sent(7), expected=5) is None


def test_a_later_refusal_does_not_move_the_place_of_the_first_batch() -> None:
    noted = refused(sent(0), sent(3), expected=None)
    assert noted.before(sent(3), expected=None) is not None
    assert noted.before(sent(0), expected=None) is None


def test_a_lower_sequence_that_is_refused_later_takes_the_place_of_the_first_batch() -> None:
    noted = refused(sent(3), sent(0), expected=None)
    assert noted.before(sent(3), expected=None) is not None


def test_sequences_that_wrap_follow_each_other() -> None:
    noted = refused(sent(0x7FFFFFFF), expected=0x7FFFFFFF)
    assert noted.before(sent(0), expected=0x7FFFFFFF) is not None


def test_a_new_epoch_does_not_wait_for_the_batch_that_the_old_one_was_refused() -> None:
    noted = refused(sent(5), expected=5)
    assert noted.before(sent(6, epoch=1), expected=0) is None


def test_a_late_batch_of_an_old_epoch_does_not_replace_what_the_new_one_waits_for() -> None:
    noted = refused(sent(0, epoch=1), sent(0), expected=None)
    assert noted.before(sent(1, epoch=1), expected=None) is not None


def test_an_appended_batch_ends_it() -> None:
    noted = refused(sent(5), expected=5)
    noted.forget(PRODUCER)
    assert noted.before(sent(6), expected=5) is None


def test_refusals_of_a_limited_number_of_producers_are_kept() -> None:
    noted = refused(*(sent(0, producer_id=number) for number in range(REFUSED_MAX + 1)))
    assert len(noted) == REFUSED_MAX
    assert noted.before(sent(9, producer_id=0), expected=None) is None
    assert noted.before(sent(9, producer_id=1), expected=None) is not None


def test_batches_without_a_producer_or_sequence_are_not_noted() -> None:
    noted = refused(sent(0)._replace(producer_id=-1), sent(0)._replace(base_sequence=-1))
    assert len(noted) == 0
