"""The accumulator under any order of appends, sends, responses and passing time: rules 1 to 6 of its module."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from strandline.client.errors import DeliveryTimeoutError, KafkaError
from strandline.client.producer.accumulator import FOREVER, Accumulator, AccumulatorSettings
from strandline.client.producer.batch import Acknowledged, PartitionQueue, ProducerBatch, RecordPromise
from strandline.client.producer.record_encoder import encode_batch, encode_body
from strandline.wire.record_batch import HEADER_BYTES, Record, build_batch, records_in
from tests.properties.effort import effort

LINGER = 5.0
DELIVERY_TIMEOUT = 50.0
PARTITIONS = 2


class AccumulatorMachine(RuleBasedStateMachine):
    """A model beside it: per partition, the values in the order of their appends."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.number = 0
        self.queues = [PartitionQueue("t", number) for number in range(PARTITIONS)]
        self.appended: list[list[tuple[bytes, RecordPromise]]] = [[] for _ in range(PARTITIONS)]
        self.taken: list[ProducerBatch] = []
        self.paused_until = [0.0] * PARTITIONS

    @initialize(batch_bytes=st.integers(30, 400), memory_bytes=st.integers(100, 3000))
    def settle(self, batch_bytes: int, memory_bytes: int) -> None:
        self.batch_bytes, self.memory_bytes = batch_bytes, memory_bytes
        self.accumulator = Accumulator(
            AccumulatorSettings(
                batch_bytes=batch_bytes,
                memory_bytes=memory_bytes,
                linger=LINGER,
                delivery_timeout=DELIVERY_TIMEOUT,
            )
        )

    @rule(
        partition=st.integers(0, PARTITIONS - 1),
        size=st.integers(0, 300),
        key=st.none() | st.binary(max_size=5),
    )
    def append(self, partition: int, size: int, key: bytes | None) -> None:
        self.number += 1
        value = b"%d|" % self.number + b"x" * size
        free = self.accumulator.memory_free
        promise = self.accumulator.append(self.queues[partition], self.number, key, value, (), self.now)
        if promise is None:
            assert len(value) + 100 > free, "a record was refused though there was room for it"
        else:
            self.appended[partition].append((value, promise))

    @rule(seconds=st.sampled_from([1.0, LINGER, LINGER, 20.0, DELIVERY_TIMEOUT]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def take(self, partition: int) -> None:
        queue = self.queues[partition]
        at = self.accumulator.sendable_at(queue, self.now)
        if not queue.waiting:
            assert at == FOREVER
            return
        first = queue.waiting[0]
        if first.is_open:
            assert at >= first.created_at + LINGER, "an open batch lingers"
        if at > self.now:
            return
        if not first.attempts:
            assert all(batch.order < first.order for batch in queue.in_flight), "batches leave in order"
        assert self.now >= self.paused_until[partition] or first.outcome is not None, "a pause is kept"
        batch = self.accumulator.take(queue)
        assert batch is first
        batch.attempts += 1
        self.taken.append(batch)
        if batch.records:
            body, latest = encode_body(batch.records, batch.base_timestamp)
            assert len(body) <= self.batch_bytes or batch.count == 1
            assert latest == max(timestamp for timestamp, _, _, _ in batch.records)
            batch.body, batch.max_timestamp, batch.records = body, latest, []

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), how=st.sampled_from(["acknowledge", "retry", "fail", "split"]))
    def response(self, data: st.DataObject, how: str) -> None:
        batch = self.taken.pop(data.draw(st.integers(0, len(self.taken) - 1)))
        if how == "retry":
            self.accumulator.reenqueue(batch, self.now + 1)
            if batch.outcome is None:  # one that expired in flight is not sent again
                self.paused_until[batch.queue.partition] = self.now + 1
        elif how == "split" and batch.count > 1 and batch.outcome is None:
            self.accumulator.split(batch, self._payload(batch), self.now)
        elif how == "fail":
            self.accumulator.resolve(batch, KafkaError(None, "refused"))
        else:
            self.accumulator.resolve(batch, Acknowledged(0, -1))

    @rule()
    def expire(self) -> None:
        for batch in self.accumulator.expire(self.now):
            assert batch.deadline <= self.now
            self.accumulator.time_out(batch, DeliveryTimeoutError())
        assert all(batch.deadline > self.now for batch in self.accumulator.incomplete())

    @rule()
    def flush(self) -> None:
        self.accumulator.close_all()
        assert all(queue.open is None for queue in self.queues)

    @rule()
    def look(self) -> None:
        """Waiting until the next deadline, and looking at the queues that are due, misses nothing."""
        deadline = self.accumulator.next_deadline()
        due = self.accumulator.due(self.now)
        for queue in self.queues:
            if self.accumulator.sendable_at(queue, self.now) <= self.now:
                self.accumulator.schedule(queue, self.now)  # as the sender does with what it cannot send yet
            elif queue.waiting and queue not in due:
                assert (
                    deadline <= self.accumulator.sendable_at(queue, self.now) + 1e-9 or deadline <= self.now
                )

    @invariant()
    def memory_is_what_incomplete_batches_hold(self) -> None:
        if not hasattr(self, "accumulator"):
            return
        held = sum(batch.limit for batch in self.accumulator.incomplete())
        assert self.accumulator.memory_free == self.memory_bytes - held
        assert self.accumulator.memory_free >= 0

    @invariant()
    def every_record_is_in_one_place_and_in_order(self) -> None:
        for queue, appended in zip(self.queues, self.appended, strict=True):
            waiting = [int(value.split(b"|")[0]) for batch in queue.waiting for value in self._values(batch)]
            assert waiting == sorted(waiting), "records wait in the order in which they were appended"
            places = [promise._current_batch() for _, promise in appended]
            assert len(set(places)) == len(places), "no two records share a place"
            for (value, _), (batch, index) in zip(appended, places, strict=True):
                assert (batch.outcome is not None) or batch in queue.waiting or batch in queue.in_flight
                if batch.outcome is None:
                    assert self._values(batch)[index] == value

    def _payload(self, batch: ProducerBatch) -> bytearray:
        assert batch.body is not None
        return encode_batch(
            batch.body,
            count=batch.count,
            attributes=0,
            base_timestamp=batch.base_timestamp,
            max_timestamp=batch.max_timestamp,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
        )

    def _values(self, batch: ProducerBatch) -> list[bytes]:
        if batch.records:
            return [value or b"" for _, _, value, _ in batch.records]
        return [record.value or b"" for record in records_in(self._payload(batch))]


TestAccumulator = AccumulatorMachine.TestCase
TestAccumulator.settings = settings(effort(120, soak=3000), stateful_step_count=80)

_records = st.lists(
    st.tuples(
        st.integers(0, 1 << 45),
        st.none() | st.binary(max_size=100),
        st.none() | st.binary(max_size=200) | st.integers(8000, 9000).map(bytes),
        st.just(())
        | st.lists(st.tuples(st.binary(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(
            tuple
        ),
    ),
    min_size=1,
    max_size=40,
)


@given(_records)
@effort(150)
def test_encoded_bodies_are_what_the_plain_encoder_makes(records: list[tuple]) -> None:  # type: ignore[type-arg]
    """The fast encoder and wire's own agree byte for byte, and a bound on sizes holds."""
    base = records[0][0]
    body, latest = encode_body(records, base)
    plain = build_batch([Record(offset, *record) for offset, record in enumerate(records)])
    assert body == plain[HEADER_BYTES:]
    assert latest == max(timestamp for timestamp, _, _, _ in records)
    sealed = encode_batch(
        body,
        count=len(records),
        attributes=0,
        base_timestamp=base,
        max_timestamp=latest,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
    )
    assert bytes(sealed) == plain
