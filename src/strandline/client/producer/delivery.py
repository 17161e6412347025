"""The fate of a batch that was sent: a response, a lost connection or a deadline resolves it, or has it sent again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.errors import DeliveryTimeoutError, KafkaError, ProducerFencedError, error_for
from strandline.client.log_limits import RareLines
from strandline.client.net.backoff import backoff_ms
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.connections import Node
from strandline.client.producer import sequences
from strandline.client.producer.accumulator import Accumulator
from strandline.client.producer.batch import Acknowledged, ProducerBatch
from strandline.client.producer.idempotence import Idempotence
from strandline.client.producer.produce_response import STALE_METADATA, Verdict, leaves_doubt, verdict
from strandline.client.producer.record_encoder import encode_batch
from strandline.telemetry.counters import Counters
from strandline.wire.api.k00_produce import PartitionProduceResponse, ProduceResponse

logger = logging.getLogger("strandline.client.producer")

_CHANCE_STEPS: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """The producer's settings of retries."""

    retries: int
    backoff_ms: int
    backoff_max_ms: int


class Delivery:
    """Applies responses and failures to batches."""

    def __init__(
        self,
        cluster: ClusterClient,
        accumulator: Accumulator,
        settings: RetrySettings,
        idempotence: Idempotence | None,
        counters: Counters,
        on_memory_free: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self._settings = settings
        self._idempotence = idempotence
        self._counters = counters
        self._on_memory_free = on_memory_free
        self._lines = RareLines(cluster.now)

    def handle_response(self, batches: list[ProducerBatch], response: ProduceResponse, now: float) -> None:
        """Resolves the batches of a request by its response, or has them sent again."""
        by_partition: dict[tuple[str, int], PartitionProduceResponse] = {}
        for topic in response.responses:
            name = topic.name or self._cluster.metadata.topic_name(topic.topic_id) or ""
            for partition in topic.partition_responses:
                by_partition[name, partition.index] = partition
        endpoints = {
            each.node_id: Node(each.node_id, each.host, each.port, each.rack)
            for each in response.node_endpoints
        }
        has_new_leader = False
        for batch in batches:
            partition_response = by_partition.get((batch.queue.topic, batch.queue.partition))
            if partition_response is None:
                # A topic that was created again has another id than the one in the request.
                self._handle_error(
                    batch, error_for(ErrorCode.UNKNOWN_TOPIC_ID, "the response does not name it"), now
                )
            elif partition_response.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self.acknowledge(
                    batch, Acknowledged(partition_response.base_offset, partition_response.log_append_time_ms)
                )
            else:
                hint = partition_response.current_leader
                if hint is not None:
                    where = TopicPartition(batch.queue.topic, batch.queue.partition)
                    has_new_leader |= self._cluster.metadata.apply_leader_hint(
                        where, hint.leader_id, hint.leader_epoch, endpoints.get(hint.leader_id)
                    )
                self._handle_error(batch, _error_of(batch, partition_response), now)
        if has_new_leader:
            self._cluster.leaders_changed()

    def acknowledge(self, batch: ProducerBatch, outcome: Acknowledged) -> None:
        """Resolves a batch that was written."""
        if self._idempotence is not None:
            sequences.acknowledged(batch.queue, batch)
        self._accumulator.resolve(batch, outcome)
        self._after_completion(batch)

    def fail_request(self, batches: list[ProducerBatch], error: KafkaError) -> None:
        """Handles the failure of a whole request."""
        self._cluster.request_update()
        now = self._cluster.now()
        for batch in batches:
            self._handle_error(batch, error, now)

    def _handle_error(self, batch: ProducerBatch, error: KafkaError, now: float) -> None:
        queue, idempotence = batch.queue, self._idempotence
        may_go_on = batch.outcome is None and (idempotence is None or idempotence.may_retry)
        decision = verdict(
            error.code,
            count=batch.count,
            retries_left=batch.attempts <= self._settings.retries and may_go_on,
            is_in_doubt=batch.is_in_doubt,
            may_begin_epoch=idempotence is not None and not idempotence.is_transactional,
            comes_too_early=idempotence is not None and sequences.comes_too_early(queue, batch),
            is_transactional=idempotence is not None and idempotence.is_transactional,
        )
        if error.code in STALE_METADATA:
            self._cluster.request_update()
        if leaves_doubt(error.code):
            batch.is_in_doubt = True
        match decision:
            case Verdict.RETRY:
                if error.code in sequences.OUT_OF_SEQUENCE:
                    sequences.refused_as_out_of_order(queue, batch)
                self._accumulator.reenqueue(batch, now + self._retry_seconds(batch))
            case Verdict.SPLIT if may_go_on:
                self._split(batch, now)
            case Verdict.FENCED:
                self._fenced(batch, error)
            case _:
                self._fail(batch, error, was_refused=decision is not Verdict.GIVEN_UP)

    def _retry_seconds(self, batch: ProducerBatch) -> float:
        chance = self._cluster.world.random.below(_CHANCE_STEPS) / _CHANCE_STEPS
        settings = self._settings
        pause = backoff_ms(batch.attempts, settings.backoff_ms, settings.backoff_max_ms, chance)
        return pause / 1000

    def _split(self, batch: ProducerBatch, now: float) -> None:
        if self._idempotence is not None:
            sequences.refused(batch.queue, batch)
        assert batch.body is not None
        payload = encode_batch(
            batch.body,
            count=batch.count,
            attributes=batch.codec,
            base_timestamp=batch.base_timestamp,
            max_timestamp=batch.max_timestamp,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
        )
        self._counters.add("batch-split-total")
        self._accumulator.split(batch, payload, now)

    def _fenced(self, batch: ProducerBatch, error: KafkaError) -> None:
        assert self._idempotence is not None
        fenced = ProducerFencedError(error.code, error.message)
        self._idempotence.fence(fenced)
        self._fail(batch, fenced, was_refused=True)
        self.fail_all(fenced)

    def _fail(self, batch: ProducerBatch, error: KafkaError, *, was_refused: bool) -> None:
        if self._idempotence is not None:
            if was_refused:
                sequences.refused(batch.queue, batch)
            else:
                sequences.abandoned(batch.queue, batch)
            self._idempotence.batch_failed(error)
        if batch.outcome is None:
            self._counters.add("record-error-total", batch.count)
        self._accumulator.resolve(batch, error)
        self._after_completion(batch)

    def _after_completion(self, batch: ProducerBatch) -> None:
        """Wakes the queue and the records that wait for memory: the batch has left a place in flight, and its
        memory."""
        if batch.queue.waiting:
            self._accumulator.schedule(batch.queue, 0.0)
        self._on_memory_free()

    def expired(self, batch: ProducerBatch, now: float) -> None:
        """Fails a batch whose delivery deadline has passed."""
        waited = now - batch.created_at
        error = DeliveryTimeoutError(
            None,
            f"{len(batch.records) or batch.count} records for {batch.queue} were not acknowledged within "
            f"delivery.timeout.ms: {waited:.3f} s and {batch.attempts} attempts",
        )
        if self._lines.is_due(str(batch.queue)):
            logger.warning("%s", error)
        if self._idempotence is not None and not batch.is_in_flight:
            sequences.abandoned(batch.queue, batch)
        if self._idempotence is not None:
            self._idempotence.batch_failed(error)
        self._counters.add("record-error-total", len(batch.records) or batch.count)
        self._accumulator.time_out(batch, error)
        self._after_completion(batch)

    def fail_all(self, error: KafkaError) -> None:
        """Fails every batch, because the producer is closed or cannot go on."""
        for batch in self._accumulator.incomplete():
            self._accumulator.resolve(batch, error)
            self._counters.add("record-error-total", batch.count)
        self._on_memory_free()

    def abort_undrained(self, error: KafkaError) -> None:
        """Fails every batch that is not in flight. One that was sent before may have been written."""
        for batch in self._accumulator.incomplete():
            if not batch.is_in_flight:
                if self._idempotence is not None and batch.has_sequence:
                    sequences.abandoned(batch.queue, batch)
                    self._idempotence.batch_failed(error)
                self._counters.add("record-error-total", len(batch.records) or batch.count)
                self._accumulator.resolve(batch, error)
        self._on_memory_free()


def _error_of(batch: ProducerBatch, response: PartitionProduceResponse) -> KafkaError:
    records = tuple(
        (each.batch_index, each.batch_index_error_message or "") for each in response.record_errors
    )
    message = f"{batch.queue}: {response.error_message}" if response.error_message else str(batch.queue)
    return error_for(response.error_code, message, records)
