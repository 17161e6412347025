"""Takes batches from the accumulator and sends them to the leaders of their partitions.

Everything happens in `_pump`, which looks at the queues that have become due, puts each into the lane of its leader,
and fills requests while a lane has fewer than max.in.flight.requests.per.connection under way. It runs when a batch is
full, when a timer is over, when an answer comes, when metadata changes and when a connection opens; nothing polls. What
an answer does to its batches is in `sender_delivery`.

A lane holds one connection. A request carries one batch per partition, up to max.request.size; partitions take turns.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from strandline.base.ids import ZERO_UUID, TopicPartition
from strandline.client.errors import (
    ConnectionFailedError,
    KafkaError,
)
from strandline.client.net.cluster import Cluster
from strandline.client.net.connections import NodeConnection
from strandline.client.producer import sequences
from strandline.client.producer.accumulator import FOREVER, Accumulator
from strandline.client.producer.batch import Acknowledged, Batch, PartitionQueue
from strandline.client.producer.delivery import Delivery, RetrySettings
from strandline.client.producer.idempotence import Identity
from strandline.client.producer.record_encoder import encode_body, seal
from strandline.telemetry.counters import Counters
from strandline.wire.api.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.wire.compression import compress
from strandline.wire.record_batch import TRANSACTIONAL_FLAG

# From this version on topics are named by their ids.
_TOPIC_ID_VERSION: Final = 13
# The last version in which a partition must be added to a transaction before records are sent to it (KIP-890).
TRANSACTION_V1_VERSION_MAX: Final = 11
# Compressing more than this at once would hold the loop up for longer than a millisecond or so.
_INLINE_COMPRESSION_BYTES_MAX: Final = 64 * 1024
# Without answers (acks=0) only the socket says that the broker cannot keep up.
_UNSENT_BYTES_MAX: Final = 1024 * 1024
_UNSENT_PAUSE_SECONDS: Final = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderSettings:
    acks: int
    request_bytes_max: int
    in_flight_max: int
    retry: RetrySettings
    request_timeout_ms: int
    codec: int
    compression_level: int | None


class _Lane:
    """The way to one broker."""

    __slots__ = ("in_flight", "is_opening", "node_id", "ready", "resume_at", "timer_at")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.ready: deque[PartitionQueue] = deque()
        self.in_flight = 0
        self.is_opening = False
        self.resume_at = 0.0  # a throttled, unreachable or clogged broker is left alone until then
        self.timer_at = 0.0


class Sender:
    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        settings: SenderSettings,
        identity: Identity | None,
        counters: Counters,
        on_memory_free: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self._settings = settings
        self._identity = identity
        self._counters = counters
        self._delivery = Delivery(cluster, accumulator, settings.retry, identity, counters, on_memory_free)
        self._clock = cluster.world.clock
        self._lanes: dict[int, _Lane] = {}
        self._homeless: deque[PartitionQueue] = deque()  # queues whose leader is not known
        self._is_scheduled = False
        self._is_stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = FOREVER
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        self._task_count = 0
        cluster.on_change(self._leaders_changed)
        if identity is not None:
            identity.on_change = self._identity_changed

    # Called by the producer

    def wake(self) -> None:
        """Something may be ready; looked at in the loop's next turn, so that many calls cost one look."""
        if not self._is_scheduled and not self._is_stopped:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._pump)

    def arm(self) -> None:
        """After a batch was begun: makes sure that its linger ends."""
        at = self._accumulator.next_deadline()
        if at >= self._timer_at or self._is_stopped:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        seconds = max(0.0, at - self._clock.monotonic())
        self._timer = asyncio.get_running_loop().call_later(seconds, self._timer_is_over)

    def fail_all(self, error: KafkaError) -> None:
        """Gives up every batch: the producer is closed or cannot go on."""
        self._delivery.fail_all(error)

    def abandon_waiting(self, error: KafkaError) -> None:
        """Gives up every batch that is not in flight."""
        self._delivery.abandon_waiting(error)

    async def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks.values()):
            task.cancel()

    # Looking

    def _timer_is_over(self) -> None:
        self._timer = None
        self._timer_at = FOREVER
        self._pump()

    def _pump(self) -> None:
        self._is_scheduled = False
        if self._is_stopped:
            return
        now = self._clock.monotonic()
        accumulator = self._accumulator
        for batch in accumulator.expire(now):
            self._delivery.expired(batch, now)
        for queue in accumulator.due(now):
            self._place(queue, now)
        for lane in list(self._lanes.values()):
            if lane.ready:
                self._drain(lane, now)
        self.arm()

    def _place(self, queue: PartitionQueue, now: float) -> None:
        """Puts a queue into its leader's lane, if it has something to send; otherwise a timer speaks of it again."""
        if queue.is_listed or self._accumulator.sendable_at(queue, now) > now:
            return
        queue.is_listed = True
        partition = self._cluster.metadata.partition(TopicPartition(queue.topic, queue.partition))
        if partition is None or partition.leader_id not in self._cluster.metadata.nodes:
            self._homeless.append(queue)
            self._cluster.add_topic(queue.topic)
            self._cluster.request_update()
            return
        lane = self._lanes.get(partition.leader_id)
        if lane is None:
            lane = self._lanes[partition.leader_id] = _Lane(partition.leader_id)
        queue.leader_id = partition.leader_id
        lane.ready.append(queue)

    def _leaders_changed(self) -> None:
        """Queues go to where their leaders are now, out of the lanes of dead brokers too; and what waits to be sent
        again to a former leader need not wait any longer, for the new one has refused nothing (KIP-951)."""
        now = self._clock.monotonic()
        moved, self._homeless = list(self._homeless), deque()
        for lane in self._lanes.values():
            leaving = [queue for queue in lane.ready if self._leader_id(queue) != lane.node_id]
            if leaving:
                lane.ready = deque(queue for queue in lane.ready if self._leader_id(queue) == lane.node_id)
                moved += leaving
        for queue in self._accumulator.retrying(now):
            if self._leader_id(queue) not in (-1, queue.leader_id):
                queue.retry_at = now
                moved.append(queue)
        for queue in dict.fromkeys(moved):
            queue.is_listed = False
            self._place(queue, now)
        self.wake()

    def _leader_id(self, queue: PartitionQueue) -> int:
        """-1 if it is not known."""
        leader = self._cluster.metadata.leader(TopicPartition(queue.topic, queue.partition))
        return -1 if leader is None else leader.node_id

    def _identity_changed(self) -> None:
        assert self._identity is not None
        for queue in self._identity.take_blocked():
            self._accumulator.look_at(queue, 0.0)
        self.wake()

    # Draining

    def _drain(self, lane: _Lane, now: float) -> None:
        if self._identity is not None and not self._identity.is_usable():
            self._identity.fetch_in_background()
            return
        connection = self._connection(lane, now)
        if connection is None:
            return
        while lane.ready and lane.in_flight < self._settings.in_flight_max:
            if not self._settings.acks and connection.unsent_bytes > _UNSENT_BYTES_MAX:
                self._pause(lane, now + _UNSENT_PAUSE_SECONDS)
                return
            batches = self._collect(lane, now)
            if not batches:
                return
            self._send(lane, connection, batches)

    def _connection(self, lane: _Lane, now: float) -> NodeConnection | None:
        """The lane's connection if requests can go out on it now."""
        if lane.resume_at > now:
            self._pause(lane, lane.resume_at)
            return None
        if lane.is_opening:
            return None
        try:
            connection = self._cluster.connection(lane.node_id)
        except ConnectionFailedError:
            self._rehome(lane)
            return None
        if connection.is_open:
            return connection
        if connection.retry_seconds > 0:
            self._pause(lane, now + connection.retry_seconds)
            return None
        lane.is_opening = True
        self._start(self._open(lane, connection))
        return None

    async def _open(self, lane: _Lane, connection: NodeConnection) -> None:
        try:
            await connection.open()
        except KafkaError:
            self._cluster.request_update()
        finally:
            lane.is_opening = False
            self.wake()

    def _pause(self, lane: _Lane, until: float) -> None:
        lane.resume_at = until
        if lane.timer_at != until:
            lane.timer_at = until
            self._accumulator.look_at(
                lane.ready[0], until
            )  # any queue's timer makes the sender look at the lane

    def _rehome(self, lane: _Lane) -> None:
        """The lane's broker is gone from the cluster."""
        queues, lane.ready = lane.ready, deque()
        now = self._clock.monotonic()
        for queue in queues:
            queue.is_listed = False
            self._place(queue, now)

    def _collect(self, lane: _Lane, now: float) -> list[Batch]:
        """One batch of each queue in turn, up to the size of a request. Queues with nothing to send leave the lane."""
        batches: list[Batch] = []
        size = 0
        accumulator = self._accumulator
        for _ in range(len(lane.ready)):
            queue = lane.ready.popleft()
            queue.is_listed = False
            if not self._is_sendable(lane, queue, now):
                continue
            first = queue.waiting[0]
            if batches and size + first.size > self._settings.request_bytes_max:
                queue.is_listed = True
                lane.ready.appendleft(queue)
                break
            if not self._encode(first):
                continue
            batches.append(accumulator.take(queue))
            size += first.size
            if queue.waiting:
                self._place(queue, now)
        return batches

    def _is_sendable(self, lane: _Lane, queue: PartitionQueue, now: float) -> bool:
        """Whether the queue's first batch may go out on this lane now. If not, something else speaks of it later: a
        timer, an answer, or the leader's own lane."""
        if self._accumulator.sendable_at(queue, now) > now:
            return False
        partition = self._cluster.metadata.partition(TopicPartition(queue.topic, queue.partition))
        if partition is None or partition.leader_id != lane.node_id:
            self._place(queue, now)
            return False
        if queue.waiting[0].is_compressing:
            return False
        if self._settings.in_flight_max == 1 and queue.in_flight:
            return False  # at its former leader
        return self._identity is None or self._identity.may_send(queue)

    def _encode(self, batch: Batch) -> bool:
        """Makes the batch's body; False if another thread does, which speaks of the queue when it is done."""
        if batch.body is not None:
            return True
        if batch.is_open:
            self._accumulator.close_open(batch.queue)
        body, batch.max_timestamp = encode_body(batch.records, batch.base_timestamp)
        codec, level = self._settings.codec, self._settings.compression_level
        if codec and len(body) > _INLINE_COMPRESSION_BYTES_MAX:
            batch.is_compressing = True
            self._start(self._compress(batch, body))
            return False
        batch.records = []
        batch.codec = codec
        batch.body = compress(codec, body, level) if codec else body
        return True

    async def _compress(self, batch: Batch, body: bytes) -> None:
        codec = self._settings.codec
        smaller = await self._cluster.world.workers.run(
            compress, codec, body, self._settings.compression_level
        )
        batch.is_compressing = False
        if batch.outcome is None:
            batch.records = []
            batch.codec, batch.body = codec, smaller
            self._accumulator.look_at(batch.queue, 0.0)
            self.wake()

    # Sending

    def _send(self, lane: _Lane, connection: NodeConnection, batches: list[Batch]) -> None:
        identity = self._identity
        is_transactional = identity is not None and identity.is_transactional
        topics: dict[str, list[PartitionProduceData]] = {}
        for batch in batches:
            queue = batch.queue
            if identity is not None and not batch.has_sequence:
                sequences.assign(queue, batch)
            batch.attempts += 1
            assert batch.body is not None
            payload = seal(
                batch.body,
                count=batch.count,
                attributes=batch.codec | (TRANSACTIONAL_FLAG if is_transactional else 0),
                base_timestamp=batch.base_timestamp,
                max_timestamp=batch.max_timestamp,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.base_sequence,
            )
            topics.setdefault(queue.topic, []).append(
                PartitionProduceData(index=queue.partition, records=payload)
            )
        try:
            request, version = self._request(connection, topics)
            self._count_sent(batches)
            if not self._settings.acks:
                connection.send_unanswered(request, version)
                for batch in batches:
                    self._delivery.acknowledge(batch, Acknowledged(-1, -1))
                return
            sent_at = self._clock.monotonic()
            connection.send_to(
                request,
                lambda answer, error: self._answered(lane, batches, sent_at, answer, error),
                version=version,
            )
            lane.in_flight += 1
        except KafkaError as error:
            self._delivery.all_failed(batches, error)

    def _request(
        self, connection: NodeConnection, topics: dict[str, list[PartitionProduceData]]
    ) -> tuple[ProduceRequest, int]:
        identity = self._identity
        ids = {name: self._topic_id(name) for name in topics}
        at_most = None if ZERO_UUID not in ids.values() else _TOPIC_ID_VERSION - 1
        if identity is not None and identity.is_transactional and not identity.is_transaction_v2:
            at_most = TRANSACTION_V1_VERSION_MAX
        request = ProduceRequest(
            transactional_id=None if identity is None else identity.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=tuple(
                TopicProduceData(name=name, topic_id=ids[name], partition_data=tuple(data))
                for name, data in topics.items()
            ),
        )
        return request, connection.version(ProduceRequest, at_most=at_most)

    def _topic_id(self, name: str) -> bytes:
        topic = self._cluster.metadata.topic(name)
        return ZERO_UUID if topic is None else topic.topic_id

    def _count_sent(self, batches: list[Batch]) -> None:
        counters = self._counters
        counters.add("request-total")
        for batch in batches:
            counters.add("batch-total")
            counters.add("record-send-total", batch.count)
            counters.add("byte-total", len(batch.body or b""))
            if batch.attempts > 1:
                counters.add("record-retry-total", batch.count)

    # Answers

    def _answered(
        self,
        lane: _Lane,
        batches: list[Batch],
        sent_at: float,
        answer: ProduceResponse,
        error: KafkaError | None,
    ) -> None:
        lane.in_flight -= 1
        now = self._clock.monotonic()
        if error is not None:
            self._delivery.all_failed(batches, error)
            self.wake()  # not at once: the connection is just being taken apart
            return
        self._counters.add("request-latency-total-ms", int((now - sent_at) * 1000))
        if answer.throttle_time_ms > 0:
            self._counters.add("produce-throttle-total-ms", answer.throttle_time_ms)
            lane.resume_at = now + answer.throttle_time_ms / 1000
        self._delivery.take_in(batches, answer, now)
        self._pump()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._task_count += 1
        number = self._task_count
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[number] = task
        task.add_done_callback(lambda done: self._tasks.pop(number, None) and None)
