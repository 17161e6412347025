"""Small pieces of the producer: promises, verdicts, sequences, backoff, queues of a topic."""

from __future__ import annotations

import asyncio

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import ProducerIdAndEpoch
from strandline.client.errors import IllegalStateError, KafkaError, error_for
from strandline.client.net.backoff import backoff_ms
from strandline.client.producer import sequences
from strandline.client.producer.accumulator import Accumulator, AccumulatorSettings
from strandline.client.producer.batch import Acknowledged, PartitionQueue, RecordMetadata, RecordPromise
from strandline.client.producer.produce_response import Verdict, verdict
from strandline.client.producer.record_encoder import encode_batch, encode_body
from strandline.client.producer.transaction_requests import first_error

SETTINGS = AccumulatorSettings(batch_bytes=100, memory_bytes=10_000, linger=1.0, delivery_timeout=10.0)


NOBODY = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}


async def settled(promise: RecordPromise) -> RecordMetadata:
    return await promise


def filled(count: int) -> tuple[Accumulator, PartitionQueue, list[RecordPromise]]:
    """Returns a queue with one batch per record."""
    accumulator, queue = Accumulator(SETTINGS), PartitionQueue("t", 3)
    sequences.begin_epoch(queue, ProducerIdAndEpoch(7, 0))
    queue.is_producer_known = True
    promises = []
    for number in range(count):
        promise = accumulator.append(queue, number, None, b"x" * 60, (), 0.0)
        assert promise is not None
        promises.append(promise)
    accumulator.close_all()
    return accumulator, queue, promises


def test_a_promise_is_awaited_by_many_and_resolved_once() -> None:
    async def main() -> None:
        accumulator, queue, (promise,) = filled(1)
        with pytest.raises(IllegalStateError):
            promise.result()
        called = []
        promise.add_done_callback(called.append)

        async def wait() -> object:
            return await promise

        waiters = [asyncio.create_task(wait()) for _ in range(3)]
        await asyncio.sleep(0)
        waiters[0].cancel()
        await asyncio.sleep(0)
        accumulator.resolve(accumulator.take(queue), Acknowledged(41, -1))
        assert await waiters[1] == await waiters[2] == ("t", 3, 41, 0)
        assert called == [promise]
        assert await promise == promise.result()

    asyncio.run(main())


@pytest.mark.parametrize("is_split", [False, True])
def test_a_callback_that_raises_is_told_of_and_keeps_nothing_from_the_others(is_split: bool) -> None:
    async def main() -> None:
        told: list[BaseException] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
        accumulator, queue = Accumulator(SETTINGS), PartitionQueue("t", 3)
        promises = [accumulator.append(queue, 0, None, b"x", (), 0.0) for _ in range(2)]
        assert promises[0] is not None
        assert promises[1] is not None
        mistake = ValueError("the application's")

        def fails(_: RecordPromise) -> None:
            raise mistake

        called: list[RecordPromise] = []
        promises[0].add_done_callback(fails)
        promises[0].add_done_callback(called.append)
        waiting = asyncio.ensure_future(settled(promises[1]))
        await asyncio.sleep(0)
        accumulator.close_all()
        batch = accumulator.take(queue)
        if is_split:
            batch.body, _ = encode_body(batch.records, 0)
            payload = encode_batch(
                batch.body, count=2, attributes=0, base_timestamp=0, max_timestamp=0, **NOBODY
            )
            accumulator.split(batch, payload, 0.0)
            for offset in (0, 1):
                accumulator.resolve(accumulator.take(queue), Acknowledged(offset, -1))
        else:
            accumulator.resolve(batch, Acknowledged(0, -1))
        assert (called, told) == ([promises[0]], [mistake])
        assert (await waiting).offset == 1
        promises[0].add_done_callback(fails)  # called at once, and nothing is raised here either
        assert told == [mistake, mistake]

    asyncio.run(asyncio.wait_for(main(), 30))


def test_records_that_a_broker_refuses_one_by_one_have_errors_of_their_own() -> None:
    accumulator, queue, promises = filled(1)
    batch = accumulator.take(queue)
    error = error_for(ErrorCode.INVALID_RECORD, "no key", ((0, "this one has no key"),))
    accumulator.resolve(batch, error)
    found = promises[0].exception()
    assert found is not None
    assert "this one has no key" in str(found)
    other = RecordPromise((batch, 1, 0)).exception()
    assert other is not None
    assert "send it again" in str(other)


@pytest.mark.parametrize(
    ("code", "facts", "expected"),
    [
        (ErrorCode.NONE, {}, Verdict.ACKNOWLEDGED),
        (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, {}, Verdict.ACKNOWLEDGED),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, {}, Verdict.RETRY),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, {"retries_left": False}, Verdict.GIVEN_UP),
        (ErrorCode.NOT_ENOUGH_REPLICAS, {"retries_left": False}, Verdict.REFUSED),
        (ErrorCode.MESSAGE_TOO_LARGE, {"count": 2}, Verdict.SPLIT),
        (ErrorCode.MESSAGE_TOO_LARGE, {"count": 1}, Verdict.REFUSED),
        (ErrorCode.MESSAGE_TOO_LARGE, {"count": 2, "is_in_doubt": True}, Verdict.GIVEN_UP),
        (ErrorCode.INVALID_RECORD, {}, Verdict.REFUSED),
        (ErrorCode.INVALID_RECORD, {"is_in_doubt": True}, Verdict.GIVEN_UP),
        (ErrorCode.UNKNOWN_SERVER_ERROR, {}, Verdict.GIVEN_UP),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, {"may_begin_epoch": True}, Verdict.RETRY),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, {"comes_too_early": True}, Verdict.RETRY),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, {"is_transactional": True}, Verdict.GIVEN_UP),
        (ErrorCode.INVALID_PRODUCER_EPOCH, {"is_transactional": True}, Verdict.FENCED),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, {}, Verdict.REFUSED),
    ],
)
def test_verdict_about_a_response(code: int, facts: dict[str, bool], expected: Verdict) -> None:
    usual = {
        "count": 1,
        "retries_left": True,
        "is_in_doubt": False,
        "may_begin_epoch": False,
        "comes_too_early": False,
        "is_transactional": False,
    }
    assert verdict(code, **{**usual, **facts}) is expected  # type: ignore[arg-type]


def test_a_refused_batch_gives_its_sequence_to_the_next_once_nothing_is_in_flight() -> None:
    accumulator, queue, _ = filled(3)
    one, two = accumulator.take(queue), accumulator.take(queue)
    sequences.assign(queue, one)
    sequences.assign(queue, two)
    sequences.refused(queue, one)
    accumulator.resolve(one, KafkaError(ErrorCode.INVALID_RECORD))
    sequences.apply_rewind(queue)
    assert not sequences.may_send(queue), "the second is still in flight"
    assert sequences.comes_too_early(queue, two)
    accumulator.reenqueue(two, 0.0)
    sequences.apply_rewind(queue)
    assert (two.has_sequence, queue.next_sequence) == (False, 0)
    assert sequences.may_send(queue)


def test_a_batch_in_doubt_leads_to_a_new_epoch_unless_a_later_one_is_acknowledged() -> None:
    for is_acknowledged in (True, False):
        accumulator, queue, _ = filled(3)
        one, two = accumulator.take(queue), accumulator.take(queue)
        sequences.assign(queue, one)
        sequences.assign(queue, two)
        sequences.abandoned(queue, one)
        accumulator.resolve(one, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
        assert not sequences.needs_new_epoch(queue)
        if is_acknowledged:
            sequences.acknowledged(queue, two)
            accumulator.resolve(two, Acknowledged(1, -1))
            assert not sequences.needs_new_epoch(queue)
            assert sequences.may_send(queue)
        else:
            assert not sequences.comes_too_early(queue, two)
            sequences.refused_as_out_of_order(queue, two)
            accumulator.reenqueue(two, 0.0)
            assert sequences.needs_new_epoch(queue)
            sequences.begin_epoch(queue, ProducerIdAndEpoch(7, 1))
            assert not two.has_sequence
            assert sequences.may_send(queue)


def test_the_first_batch_of_a_producer_goes_alone_and_at_most_five_are_in_flight() -> None:
    accumulator, queue, _ = filled(8)
    queue.is_producer_known = False
    first = accumulator.take(queue)
    sequences.assign(queue, first)
    assert not sequences.may_send(queue)
    sequences.acknowledged(queue, first)
    accumulator.resolve(first, Acknowledged(0, -1))
    taken = 0
    while sequences.may_send(queue):
        sequences.assign(queue, accumulator.take(queue))
        taken += 1
    assert taken == sequences.IN_FLIGHT_MAX


def test_nothing_new_is_sent_while_a_batch_in_doubt_is_in_flight_again() -> None:
    accumulator, queue, _ = filled(3)
    sequences.begin_epoch(queue, ProducerIdAndEpoch(7, 0))
    queue.is_producer_known = True
    first, second = accumulator.take(queue), accumulator.take(queue)
    for batch in (first, second):
        sequences.assign(queue, batch)
    assert sequences.may_send(queue)
    first.is_in_doubt = True  # its response was lost
    accumulator.reenqueue(first, 0.0)
    sequences.acknowledged(queue, second)
    accumulator.resolve(second, Acknowledged(1, -1))
    assert sequences.may_send(queue)
    assert accumulator.take(queue) is first
    assert not sequences.may_send(queue), "the broker would forget it after five more"


def test_sequences_wrap_and_epochs_end() -> None:
    accumulator, queue, _ = filled(2)
    queue.next_sequence = 0x7FFFFFFF
    one, two = accumulator.take(queue), accumulator.take(queue)
    sequences.assign(queue, one)
    sequences.assign(queue, two)
    assert (one.base_sequence, two.base_sequence, queue.next_sequence) == (0x7FFFFFFF, 0, 1)
    assert sequences.comes_too_early(queue, two)
    assert not sequences.comes_too_early(queue, one)
    assert sequences.next_epoch(ProducerIdAndEpoch(7, 5)) == (7, 6)
    assert sequences.next_epoch(ProducerIdAndEpoch(7, sequences.EPOCH_MAX - 1)) is None


def test_pauses_double_to_their_maximum_and_differ_by_a_fifth() -> None:
    assert [backoff_ms(n, 100, 1000, 0.5) for n in range(6)] == [0, 100, 200, 400, 800, 1000]
    assert backoff_ms(1, 100, 1000, 0.0) == pytest.approx(80)
    assert backoff_ms(1, 100, 1000, 0.999) == pytest.approx(120, rel=0.01)
    assert backoff_ms(10_000, 100, 1000, 0.5) == 1000


def test_of_several_errors_the_one_matters_that_nothing_heals_and_then_the_cause() -> None:
    attempted_not, later = ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert first_error([ErrorCode.NONE, attempted_not, later, refused]) == refused
    assert first_error([attempted_not, later]) == later
    assert first_error([attempted_not]) == attempted_not
    assert first_error([ErrorCode.NONE]) == ErrorCode.NONE
    assert first_error([]) == ErrorCode.NONE
