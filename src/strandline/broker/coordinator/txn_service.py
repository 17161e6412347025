"""The coordinator of transactions: which partitions of `__transaction_state` this broker leads, and how partitions'
leaders ask a coordinator whether a batch belongs to a transaction (KIP-890).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.base.moment import Moment
from strandline.broker.broker_nodes import BrokerPeers
from strandline.broker.coordinator.shards import CoordinatorShards
from strandline.broker.coordinator.txn_runtime import TransactionRuntime
from strandline.broker.replication.replica import Replica
from strandline.rpc.channel import ChannelClosed
from strandline.transactions.planned import Identity
from strandline.transactions.shard import TransactionSettings, TransactionShard
from strandline.wire.api.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from strandline.wire.record_batch import read_header, records_in
from strandline.wire.records.transaction_log import decode_entry

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

TRANSACTIONS_TOPIC: Final = "__transaction_state"
# Versions of AddPartitionsToTxn between brokers: 4 asks, 5 adds for producers of transaction version 2.
ASKS: Final = 4
ADDS: Final = 5
_LOAD_BATCHES_PER_TURN: Final = 200
_ASK_S: Final = 30.0


class TransactionCoordinator(CoordinatorShards[TransactionRuntime]):
    ABSENT = ErrorCode.NOT_COORDINATOR

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, TRANSACTIONS_TOPIC)
        self.settings = TransactionSettings(
            timeout_max_ms=broker.config.int("transaction.max.timeout.ms"),
            expiration_ms=broker.config.int("transactional.id.expiration.ms"),
        )
        self.peers = BrokerPeers(broker, "transactions")

    async def _load_runtime(self, replica: Replica) -> TransactionRuntime:
        shard = TransactionShard(self.settings)
        clock = self._broker.clock
        for count, (segment, place) in enumerate(replica.log.places(replica.log.log_start_offset)):
            batch = segment.read_batch(place)
            if not read_header(batch).is_control:
                for record in records_in(batch):
                    entry = decode_entry(record.key or b"\xff\xff", record.value)
                    if entry is not None:
                        shard.replay(*entry, Moment(clock.monotonic(), clock.wall_ms()))
            if count % _LOAD_BATCHES_PER_TURN == 0:
                await asyncio.sleep(0)
        return TransactionRuntime(self._broker, replica, shard)

    def _started(self, runtime: TransactionRuntime) -> None:
        for transaction in runtime.shard.prepared():
            runtime.carry_out(transaction)

    def _topic_settings(self) -> tuple[int, int, Mapping[str, str]]:
        config = self._broker.config
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

    # Asking, for the leaders of partitions

    async def ask(
        self,
        transactional_id: str,
        identity: Identity,
        partitions: list[TopicPartition],
        version: int,
    ) -> list[int]:
        """An error code for each partition: NONE if it is in the transaction, now or since before."""
        try:
            leader = self.leader_of(transactional_id)
            if leader == self._broker.node_id:
                return await self.answer(transactional_id, identity, partitions, version)
            if leader < 0:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return await self._ask_peer(leader, transactional_id, identity, partitions, version)
        except KafkaError as error:
            return [error.code] * len(partitions)

    async def answer(
        self, transactional_id: str, identity: Identity, partitions: list[TopicPartition], version: int
    ) -> list[int]:
        """What the coordinator says to `ask`, if that is this broker; raises KafkaError."""
        runtime = self.shard_of(transactional_id)
        shard = runtime.shard
        if version == ADDS:
            await runtime.run(
                lambda _: shard.plan_add(transactional_id, identity, partitions, 2, runtime.now())
            )
            return [ErrorCode.NONE] * len(partitions)
        await runtime.settled()  # what is said must not rest on what a failover could take back
        missing = set(shard.missing(transactional_id, identity, partitions))
        return [ErrorCode.TRANSACTION_ABORTABLE if p in missing else ErrorCode.NONE for p in partitions]

    async def _ask_peer(
        self,
        leader: int,
        transactional_id: str,
        identity: Identity,
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
                    verify_only=version == ASKS,
                    topics=tuple(
                        AddPartitionsToTxnTopic(name=topic, partitions=tuple(indexes))
                        for topic, indexes in by_topic.items()
                    ),
                ),
            )
        )
        try:
            response = await self.peers.call(leader, request, version, _ASK_S)
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
                self._broker.events.warn("transactional ids not forgotten", error=error)

    def stop(self) -> None:
        super().stop()
        self.peers.stop()
