"""The time at which a batch may be sent: a batch that is full does not linger."""

from __future__ import annotations

from strandline.client.producer.accumulator import Accumulator, AccumulatorSettings
from strandline.client.producer.batch import PartitionQueue

LINGER = 10.0
SETTINGS = AccumulatorSettings(batch_bytes=100, memory_bytes=10_000, linger=LINGER, delivery_timeout=60.0)
NOW = 5.0


def queue_of(count: int) -> tuple[Accumulator, PartitionQueue]:
    """Returns a queue with this many records, of which a batch has room for one only."""
    accumulator, queue = Accumulator(SETTINGS), PartitionQueue("t", 0)
    for number in range(count):
        assert accumulator.append(queue, number, None, b"x" * 60, (), NOW) is not None
    return accumulator, queue


def test_an_open_batch_lingers() -> None:
    accumulator, queue = queue_of(1)
    assert accumulator.sendable_at(queue, NOW) == NOW + LINGER
    assert accumulator.due(NOW) == []
    assert accumulator.due(NOW + LINGER) == [queue]


def test_a_batch_into_which_the_next_record_does_not_fit_is_sent_before_it_has_lingered() -> None:
    accumulator, queue = queue_of(2)
    assert accumulator.sendable_at(queue, NOW) <= NOW
    assert accumulator.due(NOW) == [queue]
    assert accumulator.take(queue).count == 1
    assert accumulator.sendable_at(queue, NOW) == NOW + LINGER, "the second record is in an open batch"
