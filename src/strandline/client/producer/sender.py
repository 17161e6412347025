"""Takes batches from the accumulator and sends them to the leaders of their partitions.

Everything happens in `_run_once`: it looks at the queues that have become due, puts each into the queue of its
leader's node, and fills requests while a node has fewer than max.in.flight.requests.per.connection in flight. It
runs when a batch is full, a timer fires, a response comes, metadata changes or a connection opens; nothing polls.
`delivery` applies a response to its batches.

Each node queue uses one connection. A request carries one batch per partition, up to max.request.size; partitions
take turns.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from strandline.base.ids import ZERO_UUID, TopicPartition
from strandline.client.errors import (
    ConnectionFailedError,
    KafkaError,
)
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.connections import NodeConnection
from strandline.client.producer import sequences
from strandline.client.producer.accumulator import FOREVER, Accumulator
from strandline.client.producer.batch import Acknowledged, PartitionQueue, ProducerBatch
from strandline.client.producer.delivery import Delivery, RetrySettings
from strandline.client.producer.idempotence import Idempotence
from strandline.client.producer.record_encoder import encode_batch, encode_body
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
_TOPIC_IDS_SINCE: Final = 13
# The last version in which a partition must be added to a transaction before records are sent to it (KIP-890).
TRANSACTION_V1_VERSION_MAX: Final = 11
# Compressing more than this at once would hold the loop up for longer than a millisecond or so.
_INLINE_COMPRESSION_BYTES_MAX: Final = 64 * 1024
# Without responses (acks=0) only the socket shows that the broker cannot keep up.
_UNSENT_BYTES_MAX: Final = 1024 * 1024
_UNSENT_PAUSE_SECONDS: Final = 0.002

logger = logging.getLogger("strandline.client.producer")


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderSettings:
    """The producer's settings that the sender needs."""

    acks: int
    request_bytes_max: int
    in_flight_max: int
    retry: RetrySettings
    request_timeout_ms: int
    codec: int
    compression_level: int | None


class _NodeQueue:
    """The partitions with something to send to one broker, and the state of the requests to it."""

    __slots__ = ("in_flight", "is_opening", "node_id", "ready", "resume_at", "timer_at")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.ready: deque[PartitionQueue] = deque()
        self.in_flight = 0
        self.is_opening = False
        self.resume_at = 0.0  # nothing is sent before then to a throttled, unreachable or clogged broker
        self.timer_at = 0.0


class Sender:
    """Sends the accumulator's batches, several requests at a time to each broker."""

    def __init__(
        self,
        cluster: ClusterClient,
        accumulator: Accumulator,
        settings: SenderSettings,
        idempotence: Idempotence | None,
        counters: Counters,
        on_memory_free: Callable[[], None],
        on_failure: Callable[[KafkaError], None],
    ) -> None:
        """`on_failure` is called with an error after which nothing can be sent any more."""
        self._on_failure = on_failure
        self._cluster = cluster
        self._accumulator = accumulator
        self._settings = settings
        self._idempotence = idempotence
        self._counters = counters
        self._delivery = Delivery(cluster, accumulator, settings.retry, idempotence, counters, on_memory_free)
        self._clock = cluster.world.clock
        self._node_queues: dict[int, _NodeQueue] = {}
        self._unknown_leader: deque[PartitionQueue] = deque()  # queues whose leader is not known
        self._is_scheduled = False
        self._is_stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = FOREVER
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        self._task_count = 0
        cluster.on_change(self._leaders_changed)
        if idempotence is not None:
            idempotence.on_change = self._producer_id_changed

    # Called by the producer

    def wake(self) -> None:
        """Has `_run_once` run in the loop's next turn, so that many calls cost one run."""
        if not self._is_scheduled and not self._is_stopped:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._run_once)

    def arm_timer(self) -> None:
        """Makes sure that `_run_once` runs when the next linger or deadline ends, after a batch was begun."""
        at = self._accumulator.next_deadline()
        if at >= self._timer_at or self._is_stopped:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        seconds = max(0.0, at - self._clock.monotonic())
        self._timer = asyncio.get_running_loop().call_later(seconds, self._timer_fired)

    def fail_all(self, error: KafkaError) -> None:
        """Fails every batch, because the producer is closed or cannot go on."""
        self._delivery.fail_all(error)

    def abort_undrained(self, error: KafkaError) -> None:
        """Fails every batch that is not in flight."""
        self._delivery.abort_undrained(error)

    async def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks.values()):
            task.cancel()

    # Routing

    def _timer_fired(self) -> None:
        self._timer = None
        self._timer_at = FOREVER
        self._run_once()

    def _run_once(self) -> None:
        """Does what is due. An error that is no KafkaError is a flaw: the producer says so in every later call."""
        self._is_scheduled = False
        if self._is_stopped:
            return
        try:
            self._do_what_is_due()
        except Exception as error:
            logger.exception("the producer cannot go on")
            failure = KafkaError(
                None, f"the producer cannot go on after {error!r}", advice="make another one"
            )
            failure.__cause__ = error
            self._on_failure(failure)

    def _do_what_is_due(self) -> None:
        now = self._clock.monotonic()
        accumulator = self._accumulator
        for batch in accumulator.expire(now):
            self._delivery.expired(batch, now)
        for queue in accumulator.due(now):
            self._enqueue(queue, now)
        for node_queue in list(self._node_queues.values()):
            if node_queue.ready:
                self._drain(node_queue, now)
        self.arm_timer()

    def _enqueue(self, queue: PartitionQueue, now: float) -> None:
        """Puts a queue into its leader's node queue if it has something to send; otherwise a timer brings it up
        again."""
        if queue.is_enqueued or self._accumulator.sendable_at(queue, now) > now:
            return
        queue.is_enqueued = True
        partition = self._cluster.metadata.partition(TopicPartition(queue.topic, queue.partition))
        if partition is None or partition.leader_id not in self._cluster.metadata.nodes:
            self._unknown_leader.append(queue)
            self._cluster.add_topic(queue.topic)
            self._cluster.request_update()
            return
        node_queue = self._node_queues.get(partition.leader_id)
        if node_queue is None:
            node_queue = self._node_queues[partition.leader_id] = _NodeQueue(partition.leader_id)
        queue.leader_id = partition.leader_id
        node_queue.ready.append(queue)

    def _leaders_changed(self) -> None:
        """Moves queues to the nodes that lead them now, also from the queues of dead brokers. Batches that wait to
        be sent again to a former leader need not wait any longer, for the new leader has refused nothing (KIP-951)."""
        now = self._clock.monotonic()
        moved, self._unknown_leader = list(self._unknown_leader), deque()
        for node_queue in self._node_queues.values():
            leaving = [queue for queue in node_queue.ready if self._leader_id(queue) != node_queue.node_id]
            if leaving:
                node_queue.ready = deque(
                    queue for queue in node_queue.ready if self._leader_id(queue) == node_queue.node_id
                )
                moved += leaving
        for queue in self._accumulator.retrying(now):
            if self._leader_id(queue) not in (-1, queue.leader_id):
                queue.retry_at = now
                moved.append(queue)
        for queue in dict.fromkeys(moved):
            queue.is_enqueued = False
            self._enqueue(queue, now)
        self.wake()

    def _leader_id(self, queue: PartitionQueue) -> int:
        """Returns the leader of a queue's partition; -1 if it is not known."""
        leader = self._cluster.metadata.leader(TopicPartition(queue.topic, queue.partition))
        return -1 if leader is None else leader.node_id

    def _producer_id_changed(self) -> None:
        assert self._idempotence is not None
        for queue in self._idempotence.take_blocked():
            self._accumulator.schedule(queue, 0.0)
        self.wake()

    # Draining

    def _drain(self, node_queue: _NodeQueue, now: float) -> None:
        if self._idempotence is not None and not self._idempotence.has_producer_id():
            self._idempotence.request_in_background()
            return
        connection = self._connection(node_queue, now)
        if connection is None:
            return
        while node_queue.ready and node_queue.in_flight < self._settings.in_flight_max:
            if not self._settings.acks and connection.unsent_bytes > _UNSENT_BYTES_MAX:
                self._pause(node_queue, now + _UNSENT_PAUSE_SECONDS)
                return
            batches = self._collect_batches(node_queue, now)
            if not batches:
                return
            self._send(node_queue, connection, batches)

    def _connection(self, node_queue: _NodeQueue, now: float) -> NodeConnection | None:
        """Returns the node's connection if requests can be sent on it now."""
        if node_queue.resume_at > now:
            self._pause(node_queue, node_queue.resume_at)
            return None
        if node_queue.is_opening:
            return None
        try:
            connection = self._cluster.connection(node_queue.node_id)
        except ConnectionFailedError:
            self._reroute(node_queue)
            return None
        if connection.is_open:
            return connection
        if connection.retry_seconds > 0:
            self._pause(node_queue, now + connection.retry_seconds)
            return None
        node_queue.is_opening = True
        self._start_task(self._open(node_queue, connection))
        return None

    async def _open(self, node_queue: _NodeQueue, connection: NodeConnection) -> None:
        try:
            await connection.open()
        except KafkaError:
            self._cluster.request_update()
        finally:
            node_queue.is_opening = False
            self.wake()

    def _pause(self, node_queue: _NodeQueue, until: float) -> None:
        node_queue.resume_at = until
        if node_queue.timer_at != until:
            node_queue.timer_at = until
            # The timer of any queue makes the sender look at this node.
            self._accumulator.schedule(node_queue.ready[0], until)

    def _reroute(self, node_queue: _NodeQueue) -> None:
        """Moves the queues of a broker that is gone from the cluster."""
        queues, node_queue.ready = node_queue.ready, deque()
        now = self._clock.monotonic()
        for queue in queues:
            queue.is_enqueued = False
            self._enqueue(queue, now)

    def _collect_batches(self, node_queue: _NodeQueue, now: float) -> list[ProducerBatch]:
        """Takes one batch of each queue in turn, up to the size of a request. Queues with nothing to send leave the
        node queue."""
        batches: list[ProducerBatch] = []
        size = 0
        accumulator = self._accumulator
        for _ in range(len(node_queue.ready)):
            queue = node_queue.ready.popleft()
            queue.is_enqueued = False
            if not self._is_sendable(node_queue, queue, now):
                continue
            first = queue.waiting[0]
            if batches and size + first.size > self._settings.request_bytes_max:
                queue.is_enqueued = True
                node_queue.ready.appendleft(queue)
                break
            if not self._encode(first):
                continue
            batches.append(accumulator.take(queue))
            size += first.size
            if queue.waiting:
                self._enqueue(queue, now)
        return batches

    def _is_sendable(self, node_queue: _NodeQueue, queue: PartitionQueue, now: float) -> bool:
        """Returns True if the queue's first batch may be sent to this node now. If not, something else brings it up
        later: a timer, a response, or the leader's own queue."""
        if self._accumulator.sendable_at(queue, now) > now:
            return False
        partition = self._cluster.metadata.partition(TopicPartition(queue.topic, queue.partition))
        if partition is None or partition.leader_id != node_queue.node_id:
            self._enqueue(queue, now)
            return False
        if queue.waiting[0].is_compressing:
            return False
        if self._settings.in_flight_max == 1 and queue.in_flight:
            return False  # to its former leader
        return self._idempotence is None or self._idempotence.may_send(queue)

    def _encode(self, batch: ProducerBatch) -> bool:
        """Makes the batch's body; returns False if another thread does that, which brings the queue up again."""
        if batch.body is not None:
            return True
        if batch.is_open:
            self._accumulator.close_open(batch.queue)
        body, batch.max_timestamp = encode_body(batch.records, batch.base_timestamp)
        codec, level = self._settings.codec, self._settings.compression_level
        if codec and len(body) > _INLINE_COMPRESSION_BYTES_MAX:
            batch.is_compressing = True
            self._start_task(self._compress(batch, body))
            return False
        batch.records = []
        batch.codec = codec
        batch.body = compress(codec, body, level) if codec else body
        return True

    async def _compress(self, batch: ProducerBatch, body: bytes) -> None:
        codec = self._settings.codec
        smaller = await self._cluster.world.workers.run(
            compress, codec, body, self._settings.compression_level
        )
        batch.is_compressing = False
        if batch.outcome is None:
            batch.records = []
            batch.codec, batch.body = codec, smaller
            self._accumulator.schedule(batch.queue, 0.0)
            self.wake()

    # Sending

    def _send(self, node_queue: _NodeQueue, connection: NodeConnection, batches: list[ProducerBatch]) -> None:
        idempotence = self._idempotence
        is_transactional = idempotence is not None and idempotence.is_transactional
        topics: dict[str, list[PartitionProduceData]] = {}
        for batch in batches:
            queue = batch.queue
            if idempotence is not None and not batch.has_sequence:
                sequences.assign(queue, batch)
            batch.attempts += 1
            assert batch.body is not None
            payload = encode_batch(
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
                connection.send_without_response(request, version)
                for batch in batches:
                    self._delivery.acknowledge(batch, Acknowledged(-1, -1))
                return
            sent_at = self._clock.monotonic()
            connection.send_with_callback(
                request,
                lambda response, error: self._handle_response(node_queue, batches, sent_at, response, error),
                version=version,
            )
            node_queue.in_flight += 1
        except KafkaError as error:
            self._delivery.fail_request(batches, error)

    def _request(
        self, connection: NodeConnection, topics: dict[str, list[PartitionProduceData]]
    ) -> tuple[ProduceRequest, int]:
        idempotence = self._idempotence
        ids = {name: self._topic_id(name) for name in topics}
        at_most = None if ZERO_UUID not in ids.values() else _TOPIC_IDS_SINCE - 1
        if idempotence is not None and idempotence.is_transactional and not idempotence.is_transaction_v2:
            at_most = TRANSACTION_V1_VERSION_MAX
        request = ProduceRequest(
            transactional_id=None if idempotence is None else idempotence.transactional_id,
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

    def _count_sent(self, batches: list[ProducerBatch]) -> None:
        counters = self._counters
        counters.add("request-total")
        for batch in batches:
            counters.add("batch-total")
            counters.add("record-send-total", batch.count)
            counters.add("byte-total", len(batch.body or b""))
            if batch.attempts > 1:
                counters.add("record-retry-total", batch.count)

    # Responses

    def _handle_response(
        self,
        node_queue: _NodeQueue,
        batches: list[ProducerBatch],
        sent_at: float,
        response: ProduceResponse,
        error: KafkaError | None,
    ) -> None:
        node_queue.in_flight -= 1
        now = self._clock.monotonic()
        if error is not None:
            self._delivery.fail_request(batches, error)
            self.wake()  # not at once: the connection is being torn down
            return
        self._counters.add("request-latency-total-ms", int((now - sent_at) * 1000))
        if response.throttle_time_ms > 0:
            self._counters.add("produce-throttle-total-ms", response.throttle_time_ms)
            node_queue.resume_at = now + response.throttle_time_ms / 1000
        self._delivery.handle_response(batches, response, now)
        self._run_once()

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._task_count += 1
        number = self._task_count
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[number] = task
        task.add_done_callback(lambda done: self._tasks.pop(number, None) and None)
