"""The coordinator of transactions: the partitions of `__transaction_state` that this broker leads, and the requests by
which partition leaders verify that a batch belongs to a transaction (KIP-890).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch, TopicPartition
from strandline.base.moment import Moment
from strandline.broker.coordinator.auto_topic_creation import AutoTopicCreation
from strandline.broker.coordinator.producer_ids import ProducerIds
from strandline.broker.coordinator.shards import CoordinatorShards
from strandline.broker.coordinator.txn_markers import TxnMarkers
from strandline.broker.coordinator.txn_runtime import TxnRuntime
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.corrupt_replicas import CorruptReplicas
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.rpc.channel import ChannelClosed
from strandline.transactions.shard import TransactionSettings, TransactionShard
from strandline.wire.api.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from strandline.wire.record_batch import read_header, records_in
from strandline.wire.records.transaction_log import decode_entry

TRANSACTIONS_TOPIC: Final = "__transaction_state"
# Versions of AddPartitionsToTxn between brokers: 4 verifies, 5 adds for producers of transaction version 2.
VERIFY_ONLY: Final = 4
ADD: Final = 5
_BATCHES_PER_ITERATION: Final = 200
_VERIFY_S: Final = 30.0


class TransactionCoordinator(CoordinatorShards[TxnRuntime]):
    ABSENT = ErrorCode.NOT_COORDINATOR

    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        corrupt_replicas: CorruptReplicas,
        topic_creation: AutoTopicCreation,
        producer_ids: ProducerIds,
        markers: TxnMarkers,
    ) -> None:
        super().__init__(node, replicas, corrupt_replicas, topic_creation, TRANSACTIONS_TOPIC)
        self._producer_ids = producer_ids
        self.markers = markers
        self.settings = TransactionSettings(
            timeout_max_ms=node.config.int("transaction.max.timeout.ms"),
            expiration_ms=node.config.int("transactional.id.expiration.ms"),
        )

    async def _load_runtime(self, replica: Replica) -> TxnRuntime:
        shard = TransactionShard(self.settings)
        clock = self._node.clock
        for count, (segment, place) in enumerate(replica.log.places(replica.log.log_start_offset)):
            batch = segment.read_batch(place)
            if not read_header(batch).is_control:
                for record in records_in(batch):
                    entry = decode_entry(record.key or b"\xff\xff", record.value)
                    if entry is not None:
                        shard.replay(*entry, Moment(clock.monotonic(), clock.wall_ms()))
            if count % _BATCHES_PER_ITERATION == 0:
                await asyncio.sleep(0)
        return TxnRuntime(self._node, self._replicas, self._producer_ids, self.markers, replica, shard)

    def _started(self, runtime: TxnRuntime) -> None:
        for transaction in runtime.shard.prepared():
            runtime.complete(transaction)

    def _topic_settings(self) -> tuple[int, int, Mapping[str, str]]:
        config = self._node.config
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
            "min.insync.replicas": str(config.int("transaction.state.log.min.isr")),
            "segment.bytes": str(config.int("transaction.state.log.segment.bytes")),
        }
        return (
            config.int("transaction.state.log.num.partitions"),
            config.int("transaction.state.log.replication.factor"),
            settings,
        )

    # Verification, for the leaders of partitions

    async def verify(
        self,
        transactional_id: str,
        identity: ProducerIdAndEpoch,
        partitions: list[TopicPartition],
        version: int,
    ) -> list[int]:
        """Returns an error code for each partition: NONE if it is in the transaction, or has been added now."""
        try:
            leader = self.leader_of(transactional_id)
            if leader == self._node.node_id:
                return await self.verify_here(transactional_id, identity, partitions, version)
            if leader < 0:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return await self._verify_at(leader, transactional_id, identity, partitions, version)
        except KafkaError as error:
            return [error.code] * len(partitions)

    async def verify_here(
        self,
        transactional_id: str,
        identity: ProducerIdAndEpoch,
        partitions: list[TopicPartition],
        version: int,
    ) -> list[int]:
        """Returns the same on the coordinator, which has to be this broker; raises KafkaError."""
        runtime = self.shard_of(transactional_id)
        shard = runtime.shard
        if version == ADD:
            await runtime.run(
                lambda _: shard.plan_add(transactional_id, identity, partitions, 2, runtime.now())
            )
            return [ErrorCode.NONE] * len(partitions)
        await runtime.committed()  # the response must not depend on records that a failover could take back
        missing = set(shard.missing(transactional_id, identity, partitions))
        return [ErrorCode.TRANSACTION_ABORTABLE if p in missing else ErrorCode.NONE for p in partitions]

    async def _verify_at(
        self,
        leader: int,
        transactional_id: str,
        identity: ProducerIdAndEpoch,
        partitions: list[TopicPartition],
        version: int,
    ) -> list[int]:
        by_topic: dict[str, list[int]] = {}
        for topic, index in partitions:
            by_topic.setdefault(topic, []).append(index)
        request = AddPartitionsToTxnRequest(
            transactions=(
                AddPartitionsToTxnTransaction(
                    transactional_id=transactional_id,
                    producer_id=identity.producer_id,
                    producer_epoch=identity.epoch,
                    verify_only=version == VERIFY_ONLY,
                    topics=tuple(
                        AddPartitionsToTxnTopic(name=topic, partitions=tuple(indexes))
                        for topic, indexes in by_topic.items()
                    ),
                ),
            )
        )
        try:
            response = await self.markers.clients.call(leader, request, version, _VERIFY_S)
        except (OSError, TimeoutError, ChannelClosed) as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
        if response.error_code != ErrorCode.NONE:
            raise KafkaError(response.error_code)
        codes = {
            TopicPartition(topic.name, result.partition_index): result.partition_error_code
            for transaction in response.results_by_transaction
            for topic in transaction.topic_results
            for result in topic.results_by_partition
        }
        return [codes.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR) for partition in partitions]

    # Time

    async def abort_timed_out(self) -> None:
        for runtime in self.shards():
            await runtime.abort_timed_out()

    async def forget_expired(self) -> None:
        for runtime in self.shards():
            try:
                runtime.forget_expired()
            except KafkaError as error:
                self._node.events.warn("transactional ids not forgotten", error=error)

    def stop(self) -> None:
        super().stop()
        self.markers.stop()
