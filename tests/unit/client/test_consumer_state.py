"""The consumer's pure state: subscriptions and positions, fetch sessions, and the buffer of what was fetched."""

from __future__ import annotations

import json
import re

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.consumer.fetch_buffer import CompletedFetch, Deserializers, FetchBuffer
from strandline.client.consumer.fetch_session import FetchRequestPartition, FetchSessionHandler
from strandline.client.consumer.positions import check_reset_policy, duration_ms
from strandline.client.consumer.subscription import (
    OffsetAndMetadata,
    PositionStatus,
    SubscriptionState,
    TopicPartitionState,
)
from strandline.client.errors import ConfigError, IllegalStateError, KafkaError, SerializationError
from strandline.wire.api.k01_fetch import AbortedTransaction
from strandline.wire.record_batch import TRANSACTIONAL_FLAG, Record, build_batch

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def assigned(*partitions: TopicPartition) -> SubscriptionState:
    subscription = SubscriptionState()
    subscription.assign_from_user(partitions)
    for state in subscription.partitions.values():
        subscription.set_position(state, 0)
    return subscription


# Subscription


def test_topics_pattern_and_partitions_exclude_each_other() -> None:
    subscription = assigned(A0)
    with pytest.raises(IllegalStateError, match="unsubscribe"):
        subscription.subscribe(["a"], None)
    subscription.unsubscribe()
    subscription.subscribe(["b", "a"], None)
    assert subscription.topics == ("a", "b")
    with pytest.raises(IllegalStateError):
        subscription.subscribe_pattern(re.compile("a"), None, on_server=False)


def test_a_pattern_matches_the_beginning_of_names() -> None:
    subscription = SubscriptionState()
    subscription.subscribe_pattern(re.compile("or.*s"), None, on_server=False)
    assert subscription.match_pattern(["orders", "order", "ors-more", "x-orders"])
    assert subscription.topics == ("orders", "ors-more")
    assert not subscription.match_pattern(["ors-more", "orders"])


def test_partitions_that_stay_keep_where_they_stand() -> None:
    subscription = assigned(A0, A1)
    subscription.set_position(subscription.state(A0), 7)
    subscription.assign_from_group([A0, B0])
    assert subscription.state(A0).position == 7
    assert subscription.state(B0).status is PositionStatus.INITIALIZING
    with pytest.raises(IllegalStateError, match="not assigned"):
        subscription.state(A1)


def test_a_position_with_an_epoch_is_checked_before_it_is_read_from() -> None:
    subscription = assigned(A0)
    state = subscription.state(A0)
    subscription.set_position(state, 5, 3)
    assert state.status is PositionStatus.AWAIT_VALIDATION
    assert not state.is_fetchable
    assert subscription.positions() == {A0: OffsetAndMetadata(5, "", 3)}


def test_positions_that_are_being_looked_for_are_not_committed() -> None:
    subscription = assigned(A0, A1)
    subscription.request_reset(subscription.state(A0), None)
    assert list(subscription.positions()) == [A1]


# Fetch sessions (KIP-227)


def want(offset: int, topic_id: bytes = b"1") -> FetchRequestPartition:
    return FetchRequestPartition(topic_id, offset, 0, -1, 100)


def test_a_session_names_everything_once_and_then_what_changed() -> None:
    session = FetchSessionHandler()
    plan = session.next_request({A0: want(0), A1: want(0)})
    assert (plan.session_id, plan.epoch, set(plan.changed)) == (0, 0, {A0, A1})
    session.handle_response(ErrorCode.NONE, 77)
    plan = session.next_request({A0: want(9), A1: want(0)})
    assert plan == (77, 1, {A0: want(9)}, {})
    session.handle_response(ErrorCode.NONE, 77)
    plan = session.next_request({A1: want(0), B0: want(3)})
    assert plan == (77, 2, {B0: want(3)}, {A0: b"1"})


def test_a_lost_session_begins_again() -> None:
    session = FetchSessionHandler()
    session.next_request({A0: want(0)})
    session.handle_response(ErrorCode.NONE, 77)
    session.next_request({A0: want(1)})
    session.handle_response(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert session.next_request({A0: want(1)})[:2] == (0, 0)


def test_after_a_failure_the_old_session_is_closed() -> None:
    session = FetchSessionHandler()
    session.next_request({A0: want(0)})
    session.handle_response(ErrorCode.NONE, 77)
    session.handle_error()
    plan = session.next_request({A0: want(1)})
    assert (plan.session_id, plan.epoch, plan.changed) == (77, 0, {A0: want(1)})


def test_a_broker_without_sessions_is_told_everything_each_time() -> None:
    session = FetchSessionHandler()
    for offset in range(3):
        assert session.next_request({A0: want(offset)}) == (0, 0, {A0: want(offset)}, {})
        session.handle_response(ErrorCode.NONE, 0)


def test_a_topic_that_is_created_again_is_forgotten_and_named_again() -> None:
    session = FetchSessionHandler()
    session.next_request({A0: want(0)})
    session.handle_response(ErrorCode.NONE, 77)
    plan = session.next_request({A0: want(0, b"2")})
    assert (plan.changed, plan.forgotten) == ({A0: want(0, b"2")}, {A0: b"1"})


# Buffer


def chunk(
    state: TopicPartitionState, offsets: range, *, batch: int = 3, end: int | None = None
) -> CompletedFetch:
    data = b""
    numbers = list(offsets)
    for start in range(0, len(numbers), batch):
        some = numbers[start : start + batch]
        data += build_batch([Record(n, 0, b"k", b"%d" % n) for n in some], leader_epoch=4)
    return CompletedFetch(
        state, state.fetch_offset, memoryview(data), numbers[-1] + 1 if end is None else end, None, True
    )


def buffer_of(subscription: SubscriptionState, *chunks: CompletedFetch, **how: Deserializers) -> FetchBuffer:
    buffer = FetchBuffer(subscription, how.get("deserializers", Deserializers()))
    for each in chunks:
        buffer.add(each)
    return buffer


def test_records_come_in_order_and_positions_follow() -> None:
    subscription = assigned(A0)
    state = subscription.state(A0)
    buffer = buffer_of(subscription, chunk(state, range(10)), chunk(state, range(10, 14)))
    seen = []
    for count, position in ((4, 4), (1, 5), (100, 14), (100, 14)):
        seen += [record.offset for record in buffer.take(count)]
        assert state.position == position
    assert seen == list(range(14))
    assert (buffer.size, state.position_epoch) == (0, 4)


def test_the_position_ends_after_batches_that_are_not_seen() -> None:
    subscription = assigned(A0)
    state = subscription.state(A0)
    buffer = buffer_of(subscription, chunk(state, range(3), end=9))
    assert len(buffer.take(10)) == 3
    assert state.position == 9


def test_partitions_take_turns() -> None:
    subscription = assigned(A0, A1)
    chunks = [chunk(subscription.state(where), range(4)) for where in (A0, A1)]
    buffer = buffer_of(subscription, *chunks)
    seen = [(r.partition, r.offset) for _ in range(3) for r in buffer.take(3)]
    assert sorted(seen) == [(p, n) for p in (0, 1) for n in range(4)]
    assert seen[4][0] == 1


@pytest.mark.parametrize("way", ["seek", "unassign", "reset"])
def test_records_that_were_fetched_for_another_position_are_dropped(way: str) -> None:
    subscription = assigned(A0, A1)
    state = subscription.state(A0)
    buffer = buffer_of(subscription, chunk(state, range(4)))
    if way == "seek":
        subscription.set_position(state, 2)
    elif way == "reset":
        subscription.request_reset(state, None)
    else:
        subscription.assign_from_group([A1])
    assert buffer.take(10) == []
    assert buffer.size == 0


def test_a_paused_partition_keeps_its_records_for_later() -> None:
    subscription = assigned(A0, A1)
    buffer = buffer_of(subscription, *(chunk(subscription.state(where), range(4)) for where in (A0, A1)))
    subscription.state(A0).is_paused = True
    assert {record.partition for record in buffer.take(10)} == {1}
    subscription.state(A0).is_paused = False
    assert [record.offset for record in buffer.take(10)] == [0, 1, 2, 3]


@pytest.mark.parametrize("as_batches", [False, True])
def test_no_partition_misses_its_turn_after_one_that_has_nothing_left(as_batches: bool) -> None:
    subscription = assigned(A0, A1, B0)
    states = [subscription.state(where) for where in (A0, A1, B0)]
    states[0].is_paused = True
    empty = CompletedFetch(states[1], 0, memoryview(b""), 3, None, True)
    buffer = buffer_of(subscription, chunk(states[0], range(2)), empty, chunk(states[2], range(2)))
    found = buffer.take_batches(100, 1 << 20) if as_batches else buffer.take(100)
    assert [each[0] for each in found] == ["b"] * len(found)
    assert found
    assert states[1].position == 3


def test_the_same_records_twice_are_given_once() -> None:
    subscription = assigned(A0)
    state = subscription.state(A0)
    buffer = buffer_of(subscription, chunk(state, range(9)), chunk(state, range(9)))
    assert [record.offset for record in buffer.take(100)] == list(range(9))
    assert state.position == 9


def test_batches_for_tables_begin_where_records_ended() -> None:
    subscription = assigned(A0)
    state = subscription.state(A0)
    buffer = buffer_of(subscription, chunk(state, range(7)))
    assert [record.offset for record in buffer.take(4)] == [0, 1, 2, 3]
    parts = buffer.take_batches(100, 1 << 20)
    assert [(position, header.base_offset) for _, _, position, header, _ in parts] == [(4, 3), (6, 6)]
    assert state.position == 7


def test_batches_that_were_taken_in_vain_are_read_again_unless_the_position_was_moved() -> None:
    subscription = assigned(A0, A1, B0)
    states = [subscription.state(where) for where in (A0, A1, B0)]
    buffer = buffer_of(subscription, *(chunk(state, range(7)) for state in states))
    buffer.take(2)
    undo = buffer.undo_of(buffer.take_batches(100, 1 << 20))
    assert [state.position for state in states] == [7, 7, 7]
    subscription.set_position(states[1], 5)
    subscription.assign_from_user([A0, A1])
    undo()
    assert [state.position for state in states] == [2, 5, 7]
    assert states[0].fetch_offset == 2


def test_a_record_that_cannot_be_deserialized_stops_the_reader_exactly_there() -> None:
    subscription = assigned(A0)
    state = subscription.state(A0)
    data = build_batch([Record(n, 0, None, value) for n, value in enumerate([b"1", b"2", b"{", b"4"])])
    made = CompletedFetch(state, 0, memoryview(data), 4, None, True)
    buffer = buffer_of(
        subscription, made, deserializers=Deserializers(None, lambda topic, data: json.loads(data))
    )
    assert [record.value for record in buffer.take(10)] == [1, 2]
    assert state.position == 2
    for _ in range(2):
        with pytest.raises(SerializationError, match="offset 2"):
            buffer.take(10)
    assert state.position == 2


def test_damage_is_raised_once_what_comes_before_it_is_read() -> None:
    subscription = assigned(A0)
    state = subscription.state(A0)
    good = build_batch([Record(0, 0, None, b"x")])
    bad = bytearray(build_batch([Record(1, 0, None, b"x")]))
    bad[-2] ^= 1
    buffer = buffer_of(subscription, CompletedFetch(state, 0, memoryview(good + bytes(bad)), 2, None, True))
    assert len(buffer.take(10)) == 1
    with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
        buffer.take(10)


def damaged_log(state: TopicPartitionState) -> CompletedFetch:
    """Batches at 0, 5 (damaged) and 10, of five records each."""
    batches = [bytearray(build_batch([Record(n + i, 0, None, b"x") for i in range(5)])) for n in (0, 5, 10)]
    batches[1][-2] ^= 1
    return CompletedFetch(state, state.fetch_offset, memoryview(b"".join(batches)), 15, None, True)


def test_a_table_ends_before_damage_which_is_raised_until_somebody_seeks() -> None:
    subscription = assigned(A0)
    state = subscription.state(A0)
    buffer = buffer_of(subscription, damaged_log(state))
    parts = buffer.take_batches(100, 1 << 20)
    assert [header.base_offset for _, _, _, header, _ in parts] == [0]
    for _ in range(3):
        with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
            buffer.take_batches(100, 1 << 20)
        assert state.position == 5
    with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
        buffer.take(10)
    subscription.set_position(state, 10)
    assert buffer.take_batches(100, 1 << 20) == []


def test_a_table_after_records_does_not_begin_before_the_damage_again() -> None:
    subscription = assigned(A0)
    state = subscription.state(A0)
    buffer = buffer_of(subscription, damaged_log(state))
    assert len(buffer.take(100)) == 5
    for take in (lambda: buffer.take(100), lambda: buffer.take_batches(100, 1 << 20)):
        with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
            take()
        assert state.position == 5


def test_damage_in_one_partition_does_not_lose_the_table_of_another() -> None:
    subscription = assigned(A0, A1)
    good, bad = subscription.state(A0), subscription.state(A1)
    subscription.set_position(bad, 5)
    buffer = buffer_of(subscription, chunk(good, range(3)), damaged_log(bad))
    parts = buffer.take_batches(100, 1 << 20)
    assert [(partition, header.base_offset) for _, partition, _, header, _ in parts] == [(0, 0)]
    with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
        buffer.take_batches(100, 1 << 20)


# auto.offset.reset


@pytest.mark.parametrize(
    ("text", "expected"),
    [("P1D", 86_400_000), ("PT1H30M", 5_400_000), ("P2DT3.5S", 172_803_500), ("pt0.001s", 1)],
)
def test_durations_are_iso_8601(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize(
    "policy", ["newest", "by_duration:1h", "by_duration:P", "by_duration:PT", "by_duration:"]
)
def test_a_policy_that_is_none_is_refused(policy: str) -> None:
    with pytest.raises(ConfigError):
        check_reset_policy(policy)


def test_position_after_batches_that_are_not_seen_has_their_leader_epoch() -> None:
    """Otherwise the position would seem to be after the end of an epoch, and records would be read again."""
    subscription = assigned(A0)
    state = subscription.state(A0)
    seen = build_batch([Record(0, 0, b"k", b"0")], leader_epoch=4)
    aborted = build_batch(
        [Record(1, 0, b"k", b"1")], leader_epoch=5, producer_id=7, attributes=TRANSACTIONAL_FLAG
    )
    data = memoryview(seen + aborted)
    aborted_list = (AbortedTransaction(producer_id=7, first_offset=1),)
    buffer = buffer_of(subscription, CompletedFetch(state, 0, data, 2, aborted_list, True, 5))

    assert [record.offset for record in buffer.take(10)] == [0]
    assert (state.position, state.position_epoch) == (2, 5)
