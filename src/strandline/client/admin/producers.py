"""Admin calls about producers and transactions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.admin.calls import AdminBase, check, error_from, results_or_raise
from strandline.client.arguments import listed
from strandline.client.errors import KafkaError, error_for
from strandline.client.net.coordinators import TRANSACTION
from strandline.client.net.partitions import by_topic
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from strandline.wire.api.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from strandline.wire.api.k61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from strandline.wire.api.k65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from strandline.wire.api.k66_list_transactions import ListTransactionsRequest, ListTransactionsResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveProducer:
    """A producer that a partition's leader remembers."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int  # -1 without an open transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    """A transaction as the list of transactions has it."""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """A transaction with its partitions."""

    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]


class ProducerAdmin(AdminBase):
    """The calls about producers and transactions."""

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, tuple[ActiveProducer, ...]]:
        """Returns the producers that the leaders of these partitions remember."""
        deadline = self._deadline(timeout)
        requested = tuple(partitions)

        async def once() -> dict[TopicPartition, tuple[ActiveProducer, ...]]:
            results: dict[TopicPartition, tuple[ActiveProducer, ...] | KafkaError] = {}
            for node_id, led in (await self._leaders(requested, deadline)).items():
                request = DescribeProducersRequest(
                    topics=tuple(
                        TopicRequest(name=name, partition_indexes=numbers)
                        for name, numbers in by_topic(led).items()
                    )
                )
                response = await self._call_broker(node_id, request, DescribeProducersResponse, deadline)
                for topic in response.topics:
                    for each in topic.partitions:
                        where = TopicPartition(topic.name, each.partition_index)
                        error = error_from(each.error_code, each.error_message, str(where))
                        results[where] = error or tuple(
                            ActiveProducer(
                                producer_id=producer.producer_id,
                                epoch=producer.producer_epoch,
                                last_sequence=producer.last_sequence,
                                last_timestamp_ms=producer.last_timestamp,
                                coordinator_epoch=producer.coordinator_epoch,
                                transaction_start_offset=producer.current_txn_start_offset,
                            )
                            for producer in each.active_producers
                        )
            return results_or_raise(results)

        return await self._retry(once, deadline)

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        timeout: float | None = None,
    ) -> list[TransactionListing]:
        """Returns the transactions of all brokers: each broker lists those that it coordinates."""
        deadline = self._deadline(timeout)
        request = ListTransactionsRequest(
            state_filters=tuple(states), producer_id_filters=tuple(producer_ids)
        )
        results: list[TransactionListing] = []

        async def once(node_id: int) -> ListTransactionsResponse:
            response = await self._call_broker(node_id, request, ListTransactionsResponse, deadline)
            check(response.error_code, None, f"transactions of broker {node_id}")
            return response

        for node_id in self._nodes():
            response = await self._retry_while_known(node_id, partial(once, node_id), deadline)
            results += [
                TransactionListing(
                    transactional_id=each.transactional_id,
                    producer_id=each.producer_id,
                    state=each.transaction_state,
                )
                for each in (() if response is None else response.transaction_states)
            ]
        return sorted(results, key=lambda each: each.transactional_id)

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout: float | None = None
    ) -> dict[str, TransactionDescription]:
        """Returns the transactions of these transactional ids."""
        transactional_ids = listed(transactional_ids, "transactional_ids")
        deadline = self._deadline(timeout)
        results: dict[str, TransactionDescription | KafkaError] = {}

        async def once(name: str) -> TransactionDescription:
            response = await self._call_coordinator(
                name,
                DescribeTransactionsRequest(transactional_ids=(name,)),
                DescribeTransactionsResponse,
                deadline,
                kind=TRANSACTION,
            )
            state = response.transaction_states[0]
            check(state.error_code, None, f"transactional.id {name}")
            return TransactionDescription(
                transactional_id=name,
                state=state.transaction_state,
                producer_id=state.producer_id,
                epoch=state.producer_epoch,
                timeout_ms=state.transaction_timeout_ms,
                start_ms=state.transaction_start_time_ms,
                partitions=tuple(
                    TopicPartition(topic.topic, number)
                    for topic in state.topics
                    for number in topic.partitions
                ),
            )

        for name in transactional_ids:
            try:
                results[name] = await self._retry_with_coordinator(
                    name,
                    partial(once, name),
                    deadline,
                    kind=TRANSACTION,
                )
            except KafkaError as error:
                results[name] = error
        return results_or_raise(results)

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout: float | None = None
    ) -> None:
        """Fences the producers of these transactional ids, and aborts their open transactions."""
        transactional_ids = listed(transactional_ids, "transactional_ids")
        deadline = self._deadline(timeout)
        results: dict[str, bool | KafkaError] = {}

        async def once(name: str) -> bool:
            request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1)
            response = await self._call_coordinator(
                name, request, InitProducerIdResponse, deadline, kind=TRANSACTION
            )
            if response.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
                # An open transaction is being aborted first; the same request succeeds a little later.
                raise error_for(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"transactional.id {name} is being aborted"
                )
            check(response.error_code, None, f"transactional.id {name}")
            return True

        for name in transactional_ids:
            try:
                results[name] = await self._retry_with_coordinator(
                    name,
                    partial(once, name),
                    deadline,
                    kind=TRANSACTION,
                )
            except KafkaError as error:
                results[name] = error
        results_or_raise(results)

    async def abort_transaction(
        self,
        partition: TopicPartition,
        *,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        timeout: float | None = None,
    ) -> None:
        """Ends a transaction that hangs in one partition because its coordinator has forgotten it (KIP-664)."""
        deadline = self._deadline(timeout)
        topic = WritableTxnMarkerTopic(name=partition.topic, partition_indexes=(partition.partition,))
        request = WriteTxnMarkersRequest(
            markers=(
                WritableTxnMarker(
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    transaction_result=False,
                    topics=(topic,),
                    coordinator_epoch=coordinator_epoch,
                ),
            )
        )

        async def once() -> None:
            ((node_id, _),) = (await self._leaders([partition], deadline)).items()
            response = await self._call_broker(node_id, request, WriteTxnMarkersResponse, deadline)
            for marker in response.markers:
                for results in marker.topics:
                    for each in results.partitions:
                        check(each.error_code, None, str(partition))

        await self._retry(once, deadline)
