"""The rules of idempotence, one by one."""

from __future__ import annotations

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.partition.producers import BATCHES_REMEMBERED, UNKNOWN_OFFSET, AppendedBatch, Producers
from strandline.wire.record_batch import BatchHeader
from tests.batches import NOW_MS, batch, header

PRODUCER = 42


def sent(sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = PRODUCER) -> BatchHeader:
    return header(batch(count, producer_id=producer_id, epoch=epoch, sequence=sequence))


def append(producers: Producers, *batches: BatchHeader, offset: int = 100) -> int:
    """Appends what is allowed, at ascending offsets; the offset behind the last."""
    for each in batches:
        assert producers.check(each) is None
        producers.appended(each, offset)
        offset += each.last_offset_delta + 1
    return offset


def refusal(producers: Producers, batch: BatchHeader) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        producers.check(batch)
    return ErrorCode(refused.value.code)


# Rule 1


def test_batch_of_an_older_epoch_is_refused() -> None:
    producers = Producers()
    append(producers, sent(0, epoch=3))
    assert refusal(producers, sent(1, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(producers, sent(0, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH


# Rule 2


def test_each_of_the_last_five_batches_gets_its_own_offset() -> None:
    producers = Producers()
    append(producers, *(sent(3 * number, 3) for number in range(BATCHES_REMEMBERED)))
    for number in range(BATCHES_REMEMBERED):
        assert producers.check(sent(3 * number, 3)) == AppendedBatch(
            3 * number, 3 * number + 2, 100 + 3 * number, 102 + 3 * number, NOW_MS + 2
        )


def test_batch_with_the_same_beginning_and_another_end_is_no_repetition() -> None:
    producers = Producers()
    append(producers, sent(0, 3), sent(3, 3))
    assert refusal(producers, sent(0, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(producers, sent(3, 4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


# Rule 3


def test_a_repetition_from_before_the_last_five_is_committed_when_all_before_them_is() -> None:
    producers = Producers()
    append(producers, *(sent(number) for number in range(BATCHES_REMEMBERED + 2)))
    assert producers.check(sent(0)) == AppendedBatch(0, 0, UNKNOWN_OFFSET, 101, -1)
    assert producers.check(sent(0, 2)) == AppendedBatch(0, 1, UNKNOWN_OFFSET, 101, -1)
    assert refusal(producers, sent(1, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_from_before_the_producer_began_are_no_repetitions() -> None:
    producers = Producers()
    append(producers, *(sent(number) for number in range(50, 57)))
    assert refusal(producers, sent(49)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.check(sent(50)) is not None


def test_after_a_restart_nothing_older_than_the_snapshot_is_called_written() -> None:
    """The producer may have begun with any sequence: a snapshot does not say with which."""
    producers, restarted = Producers(), Producers()
    append(producers, *(sent(number) for number in range(BATCHES_REMEMBERED + 2)))
    restarted.load(producers.snapshot())
    assert producers.check(sent(0)) is not None
    assert refusal(restarted, sent(0)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_repetitions_are_told_apart_from_gaps_across_the_wrap() -> None:
    producers = Producers()
    append(producers, sent(0x7FFFFFFE), sent(0x7FFFFFFF), *(sent(number) for number in range(5)))
    assert producers.check(sent(0x7FFFFFFF)) == AppendedBatch(0x7FFFFFFF, 0x7FFFFFFF, UNKNOWN_OFFSET, 101, -1)
    assert refusal(producers, sent(6)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_snapshot_keeps_each_of_the_last_five_batches() -> None:
    producers, restarted = Producers(), Producers()
    batches = [sent(3 * number, 3) for number in range(BATCHES_REMEMBERED + 1)]
    append(producers, *batches, sent(0, producer_id=7))
    restarted.load(producers.snapshot())
    assert restarted.entries() == producers.entries()
    for each in batches[1:]:
        assert restarted.check(each) == producers.check(each)
    assert refusal(restarted, batches[0]) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_snapshot_with_the_newest_batch_alone_is_read() -> None:
    """Kafka writes such snapshots, and so did version 0.1.0."""
    producers, restarted = Producers(), Producers()
    append(producers, sent(0), sent(1), sent(2))
    restarted.load(producers.entries())
    assert restarted.check(sent(2)) == producers.check(sent(2))
    assert refusal(restarted, sent(1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(restarted, sent(3))


def test_the_last_entry_of_a_producer_in_a_snapshot_is_its_newest() -> None:
    """A reader that keeps one entry of each producer, as Kafka does, keeps the last."""
    producers = Producers()
    append(producers, sent(0), sent(1), sent(0, producer_id=7), sent(2))
    last = {entry.producer_id: entry for entry in producers.snapshot()}
    assert list(last.values()) == producers.entries()


def test_a_snapshot_across_the_wrap_of_sequences_keeps_the_batches() -> None:
    producers, restarted = Producers(), Producers()
    batches = [sent(0x7FFFFFFE, 3), sent(1), sent(2, 2)]
    append(producers, *batches)
    restarted.load(producers.snapshot())
    assert [restarted.check(each) for each in batches] == [producers.check(each) for each in batches]


# Rule 4


@pytest.mark.parametrize("sequence", [4, 5, 1000])
def test_a_gap_is_out_of_order(sequence: int) -> None:
    producers = Producers()
    append(producers, sent(0, 3))
    assert refusal(producers, sent(sequence)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.check(sent(3)) is None


def test_the_sequence_after_the_largest_is_zero() -> None:
    producers = Producers()
    append(producers, sent(0x7FFFFFFD, 2), sent(0x7FFFFFFF, 3), sent(2))


def test_a_new_epoch_begins_with_sequence_0() -> None:
    producers = Producers()
    append(producers, sent(0), sent(1))
    assert refusal(producers, sent(2, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(producers, sent(0, epoch=1), sent(1, epoch=1), offset=200)


def test_a_new_epoch_forgets_the_batches_of_the_old_one() -> None:
    producers = Producers()
    append(producers, sent(0), sent(1), sent(0, epoch=1))
    assert refusal(producers, sent(5, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [(e.epoch, e.last_sequence) for e in producers.entries()] == [(1, 0)]


# Rule 5


@pytest.mark.parametrize("sequence", [0, 17, 0x7FFFFFFF])
def test_an_unknown_producer_begins_with_any_sequence(sequence: int) -> None:
    producers = Producers()
    append(producers, sent(sequence, epoch=9))


# Rule 6


def test_replaying_the_log_gives_the_state_that_appending_gave() -> None:
    live, replayed = Producers(), Producers()
    batches = [sent(0, 2), sent(2, 3), sent(0, epoch=1), sent(7, producer_id=9, epoch=4)]
    append(live, *batches)
    offset = 100
    for each in batches:
        replayed.replay(each._replace(base_offset=offset), None)
        offset += each.last_offset_delta + 1
    assert replayed.entries() == live.entries()
    assert replayed.check(sent(0, epoch=1)) == live.check(sent(0, epoch=1))


def test_checking_changes_nothing() -> None:
    producers = Producers()
    append(producers, sent(0, 3))
    before = producers.entries()
    for each in (sent(3), sent(9), sent(0, 3), sent(0, epoch=5), sent(0, producer_id=77)):
        try:
            producers.check(each)
        except KafkaError:
            continue
    assert producers.entries() == before
    assert len(producers) == 1


def test_control_batches_and_batches_without_sequences_leave_no_batch_behind() -> None:
    producers = Producers()
    control = sent(0)._replace(attributes=0x30, base_sequence=-1)
    producers.replay(control, b"")
    assert producers.entries() == []


# Expiry


def test_producers_that_wrote_nothing_for_long_are_forgotten() -> None:
    producers = Producers()
    append(producers, sent(0), sent(0, producer_id=9))
    producers.appended(sent(1)._replace(max_timestamp=NOW_MS + 500), 300)
    assert producers.expire(NOW_MS + 100) == 1
    assert [entry.producer_id for entry in producers.entries()] == [PRODUCER]
    append(producers, sent(55, producer_id=9), offset=400)


def test_a_producer_with_an_open_transaction_is_not_forgotten() -> None:
    producers = Producers()
    producers.appended(sent(0)._replace(attributes=0x10), 5)
    assert producers.expire(NOW_MS * 2) == 0
    assert producers.entries()[0].current_txn_first_offset == 5
