"""What becomes of a batch: an answer, a lost connection or a deadline gives it its outcome, or puts it back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.errors import DeliveryTimeoutError, KafkaError, ProducerFencedError, error_for
from strandline.client.net.backoff import backoff_ms
from strandline.client.net.cluster import Cluster
from strandline.client.net.connections import Node
from strandline.client.producer import sequences
from strandline.client.producer.accumulator import Accumulator
from strandline.client.producer.batch import Acknowledged, Batch
from strandline.client.producer.idempotence import Identity
from strandline.client.producer.produce_response import STALE_METADATA, Verdict, leaves_doubt, verdict
from strandline.client.producer.record_encoder import seal
from strandline.telemetry.counters import Counters
from strandline.wire.api.k00_produce import PartitionProduceResponse, ProduceResponse

_CHANCE_STEPS: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    retries: int
    backoff_ms: int
    backoff_max_ms: int


class Delivery:
    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        settings: RetrySettings,
        identity: Identity | None,
        counters: Counters,
        on_memory_free: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self._settings = settings
        self._identity = identity
        self._counters = counters
        self._on_memory_free = on_memory_free

    def take_in(self, batches: list[Batch], answer: ProduceResponse, now: float) -> None:
        found: dict[tuple[str, int], PartitionProduceResponse] = {}
        for topic in answer.responses:
            name = topic.name or self._cluster.metadata.topic_name(topic.topic_id) or ""
            for partition in topic.partition_responses:
                found[name, partition.index] = partition
        endpoints = {
            each.node_id: Node(each.node_id, each.host, each.port, each.rack)
            for each in answer.node_endpoints
        }
        has_news = False
        for batch in batches:
            response = found.get((batch.queue.topic, batch.queue.partition))
            if response is None:
                # A topic made anew has another id than the one asked about.
                self._failed(
                    batch, error_for(ErrorCode.UNKNOWN_TOPIC_ID, "the answer does not speak of it"), now
                )
            elif response.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self.acknowledge(batch, Acknowledged(response.base_offset, response.log_append_time_ms))
            else:
                hint = response.current_leader
                if hint is not None:
                    where = TopicPartition(batch.queue.topic, batch.queue.partition)
                    has_news |= self._cluster.metadata.apply_leader_hint(
                        where, hint.leader_id, hint.leader_epoch, endpoints.get(hint.leader_id)
                    )
                records = tuple(
                    (each.batch_index, each.batch_index_error_message or "")
                    for each in response.record_errors
                )
                where_text = (
                    f"{batch.queue}: {response.error_message}" if response.error_message else str(batch.queue)
                )
                self._failed(batch, error_for(response.error_code, where_text, records), now)
        if has_news:
            self._cluster.leaders_changed()

    def acknowledge(self, batch: Batch, outcome: Acknowledged) -> None:
        if self._identity is not None:
            sequences.acknowledged(batch.queue, batch)
        self._accumulator.resolve(batch, outcome)
        self._settled(batch)

    def all_failed(self, batches: list[Batch], error: KafkaError) -> None:
        self._cluster.request_update()
        now = self._cluster.now()
        for batch in batches:
            self._failed(batch, error, now)

    def _failed(self, batch: Batch, error: KafkaError, now: float) -> None:
        queue, identity = batch.queue, self._identity
        may_go_on = batch.outcome is None and (identity is None or identity.may_retry)
        decision = verdict(
            error.code,
            count=batch.count,
            retries_left=batch.attempts <= self._settings.retries and may_go_on,
            is_in_doubt=batch.is_in_doubt,
            may_begin_epoch=identity is not None and not identity.is_transactional,
            comes_too_early=identity is not None and sequences.comes_too_early(queue, batch),
            is_transactional=identity is not None and identity.is_transactional,
        )
        if error.code in STALE_METADATA:
            self._cluster.request_update()
        if leaves_doubt(error.code):
            batch.is_in_doubt = True
        match decision:
            case Verdict.RETRY:
                if error.code in sequences.OUT_OF_SEQUENCE:
                    sequences.refused_as_out_of_order(queue, batch)
                self._accumulator.give_back(batch, now + self._retry_seconds(batch))
            case Verdict.SPLIT if may_go_on:
                self._split(batch, now)
            case Verdict.FENCED:
                self._fenced(batch, error)
            case _:
                self._give_up(batch, error, was_refused=decision is not Verdict.GIVEN_UP)

    def _retry_seconds(self, batch: Batch) -> float:
        chance = self._cluster.world.random.below(_CHANCE_STEPS) / _CHANCE_STEPS
        settings = self._settings
        pause = backoff_ms(batch.attempts, settings.backoff_ms, settings.backoff_max_ms, chance)
        return pause / 1000

    def _split(self, batch: Batch, now: float) -> None:
        if self._identity is not None:
            sequences.refused(batch.queue, batch)
        assert batch.body is not None
        payload = seal(
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

    def _fenced(self, batch: Batch, error: KafkaError) -> None:
        assert self._identity is not None
        fenced = ProducerFencedError(error.code, error.message)
        self._identity.fence(fenced)
        self._give_up(batch, fenced, was_refused=True)
        self.fail_all(fenced)

    def _give_up(self, batch: Batch, error: KafkaError, *, was_refused: bool) -> None:
        if self._identity is not None:
            if was_refused:
                sequences.refused(batch.queue, batch)
            else:
                sequences.given_up(batch.queue, batch)
            self._identity.batch_failed(error)
        if batch.outcome is None:
            self._counters.add("record-error-total", batch.count)
        self._accumulator.resolve(batch, error)
        self._settled(batch)

    def _settled(self, batch: Batch) -> None:
        """A place in flight and memory are free: the queue may go on, and so may those who wait for memory."""
        if batch.queue.waiting:
            self._accumulator.look_at(batch.queue, 0.0)
        self._on_memory_free()

    def expired(self, batch: Batch, now: float) -> None:
        waited = now - batch.created_at
        error = DeliveryTimeoutError(
            None,
            f"{len(batch.records) or batch.count} records for {batch.queue} were not acknowledged within "
            f"delivery.timeout.ms: {waited:.3f} s and {batch.attempts} attempts",
        )
        if self._identity is not None and not batch.is_in_flight:
            sequences.given_up(batch.queue, batch)
        if self._identity is not None:
            self._identity.batch_failed(error)
        self._counters.add("record-error-total", len(batch.records) or batch.count)
        self._accumulator.time_out(batch, error)
        self._settled(batch)

    def fail_all(self, error: KafkaError) -> None:
        """Gives up every batch: the producer is closed or cannot go on."""
        for batch in self._accumulator.unfinished():
            self._accumulator.resolve(batch, error)
            self._counters.add("record-error-total", batch.count)
        self._on_memory_free()

    def abandon_waiting(self, error: KafkaError) -> None:
        """Gives up every batch that is not in flight. One that was sent before may have been written."""
        for batch in self._accumulator.unfinished():
            if not batch.is_in_flight:
                if self._identity is not None and batch.has_sequence:
                    sequences.given_up(batch.queue, batch)
                    self._identity.batch_failed(error)
                self._counters.add("record-error-total", len(batch.records) or batch.count)
                self._accumulator.resolve(batch, error)
        self._on_memory_free()
