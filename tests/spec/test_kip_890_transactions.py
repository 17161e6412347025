"""KIP-98 (transactions), KIP-360 and KIP-890 (transaction version 2): what a client observes of one broker."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.broker.coordinator.txn_service import TRANSACTIONS_TOPIC
from strandline.transactions.transaction import EPOCH_MAX
from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest
from strandline.wire.api.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from strandline.wire.api.k26_end_txn import EndTxnRequest
from strandline.wire.api.k65_describe_transactions import DescribeTransactionsRequest
from strandline.wire.record_batch import TRANSACTIONAL_FLAG, headers_in, records_in
from tests.batches import batch, resealed
from tests.unit.broker.requests import create
from tests.unit.broker.standing import a_while, high_watermark_stands
from tests.unit.broker.world import Client, World, in_world

NAME = "x"


class Producer:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.producer_id = self.epoch = -1
        self.sequence = 0

    async def begin(self, version: int = 5, timeout_ms: int = 60_000) -> int:
        """Until it is no longer told to wait; the error code."""
        await self.client.call(FindCoordinatorRequest(key_type=1, coordinator_keys=(NAME,)), 4)
        request = InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=timeout_ms)
        response: Any = await self.client.call(request, version)
        while response.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
            await asyncio.sleep(0)
            response = await self.client.call(request, version)
        self.producer_id, self.epoch, self.sequence = response.producer_id, response.producer_epoch, 0
        return int(response.error_code)

    async def add(self, partition: int = 0) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=NAME,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name="t", partitions=(partition,)),),
        )
        response: Any = await self.client.call(request, 3)
        return int(response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    def request(self, number: int) -> ProduceRequest:
        data = batch(producer_id=self.producer_id, epoch=self.epoch, sequence=self.sequence, first=number)
        return ProduceRequest(
            transactional_id=NAME,
            acks=-1,
            timeout_ms=1000,
            topic_data=(
                TopicProduceData(
                    name="t",
                    partition_data=(
                        PartitionProduceData(index=0, records=resealed(data, attributes=TRANSACTIONAL_FLAG)),
                    ),
                ),
            ),
        )

    async def send(self, number: int, version: int = 12) -> int:
        code = await sent(self.client, self.request(number), version)
        self.sequence += code == ErrorCode.NONE
        return code

    def ending(self, committed: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=NAME,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )

    async def end(self, committed: bool, version: int = 5) -> int:
        response: Any = await self.client.call(self.ending(committed), version)
        if response.error_code == ErrorCode.NONE and version >= 5:
            self.producer_id, self.epoch, self.sequence = response.producer_id, response.producer_epoch, 0
        return int(response.error_code)


async def sent(client: Client, request: ProduceRequest, version: int = 12) -> int:
    response: Any = await client.call(request, version)
    return int(response.responses[0].partition_responses[0].error_code)


async def read(client: Client) -> list[int]:
    """Returns the numbers of the records that a read_committed reader gets."""
    where = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        isolation_level=1,
        session_epoch=-1,
        topics=(FetchTopic(topic="t", partitions=(where,)),),
    )
    response: Any = await client.call(request, 12)
    partition = response.responses[0].partitions[0]
    left = [(each.first_offset, each.producer_id) for each in partition.aborted_transactions]
    data = bytes(partition.records or b"")
    numbers, aborting = [], set()
    for position, header in headers_in(data):
        aborting |= {producer for first, producer in left if first <= header.base_offset}
        left = [each for each in left if each[0] > header.base_offset]
        if header.is_control:
            aborting.discard(header.producer_id)
        elif header.producer_id not in aborting:
            records = records_in(data[position : position + header.size])
            numbers += [int((record.value or b"").split(b".")[0]) for record in records]
    return numbers


async def state(client: Client) -> str:
    response: Any = await client.call(DescribeTransactionsRequest(transactional_ids=(NAME,)), 0)
    return str(response.transaction_states[0].transaction_state)


async def begun(world: World) -> Producer:
    client = world.connect()
    await create(client)
    producer = Producer(client)
    assert await producer.begin() == ErrorCode.NONE
    return producer


@in_world()
async def test_committed_is_read_and_aborted_is_not_and_open_is_not_yet(world: World) -> None:
    producer = await begun(world)
    for number in range(4):
        assert await producer.send(number) == ErrorCode.NONE
        assert await read(producer.client) == [n for n in range(number) if n % 2 == 0]
        assert await producer.end(number % 2 == 0) == ErrorCode.NONE
        await asyncio.sleep(0)
    assert await read(producer.client) == [0, 2]


@in_world()
async def test_a_late_end_or_record_of_the_last_transaction_cannot_enter_the_next(world: World) -> None:
    producer = await begun(world)
    assert await producer.send(0) == ErrorCode.NONE
    late_record, late_commit, late_abort = producer.request(9), producer.ending(True), producer.ending(False)
    assert await producer.end(True) == ErrorCode.NONE
    assert await producer.send(1) == ErrorCode.NONE
    for late in (late_commit, late_abort):
        response: Any = await producer.client.call(late, 5)
        assert response.error_code == ErrorCode.PRODUCER_FENCED
    assert await sent(producer.client, late_record) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await producer.end(False) == ErrorCode.NONE
    assert await read(producer.client) == [0]


@in_world()
async def test_an_end_whose_response_was_lost_gets_the_same_epoch_again(world: World) -> None:
    producer = await begun(world)
    assert await producer.send(0) == ErrorCode.NONE
    retry = producer.ending(True)
    assert await producer.end(True) == ErrorCode.NONE
    await asyncio.sleep(0)
    response: Any = await producer.client.call(retry, 5)
    assert (response.error_code, response.producer_epoch) == (ErrorCode.NONE, producer.epoch)
    assert await producer.send(1) == ErrorCode.NONE


@in_world()
async def test_a_producer_that_begins_fences_the_one_before_and_aborts_its_transaction(world: World) -> None:
    old = await begun(world)
    assert await old.send(0) == ErrorCode.NONE
    new = Producer(world.connect())
    assert await new.begin() == ErrorCode.NONE
    assert new.producer_id == old.producer_id
    assert await old.send(1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await old.end(True) == ErrorCode.PRODUCER_FENCED
    assert await new.send(2) == ErrorCode.NONE
    assert await new.end(True) == ErrorCode.NONE
    assert await read(new.client) == [2]


@in_world()
async def test_a_producer_that_begins_fences_the_one_before_also_where_no_transaction_is_open(
    world: World,
) -> None:
    old = await begun(world)
    new = Producer(world.connect())
    assert await new.begin() == ErrorCode.NONE
    assert await old.send(0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await new.send(1) == ErrorCode.NONE
    assert await new.end(True) == ErrorCode.NONE
    assert await read(new.client) == [1]


@in_world(transaction_state_log_num_partitions="1")
async def test_markers_and_the_response_wait_until_the_decision_is_committed(world: World) -> None:
    """Otherwise a failover of the coordinator could take back what partitions, or the producer, were told."""
    producer = await begun(world)
    assert await producer.send(0) == ErrorCode.NONE
    data = world.broker.replicas.get("t", 0)
    assert data is not None
    with high_watermark_stands(world, TRANSACTIONS_TOPIC):
        ending = asyncio.ensure_future(producer.end(True))
        await a_while()
        assert not ending.done()
        assert data.log.log_end_offset == 1, "no marker"
    assert await ending == ErrorCode.NONE
    while data.log.log_end_offset == 1:
        await asyncio.sleep(0)
    assert await read(producer.client) == [0]


@in_world()
async def test_used_up_epochs_give_another_producer_id(world: World) -> None:
    producer = await begun(world)
    runtime = world.broker.transactions.shard_of(NAME)
    runtime.shard.apply(replace(runtime.shard.transactions[NAME], epoch=EPOCH_MAX - 2), runtime.now())
    first = producer.producer_id
    producer.epoch = EPOCH_MAX - 2
    assert await producer.send(0) == ErrorCode.NONE
    assert await producer.end(True) == ErrorCode.NONE
    assert (producer.producer_id, producer.epoch) == (first, EPOCH_MAX - 1)
    assert await producer.send(1) == ErrorCode.NONE
    retry = producer.ending(True)
    assert await producer.end(True) == ErrorCode.NONE
    assert producer.producer_id != first
    assert producer.epoch == 0
    await asyncio.sleep(0)
    response: Any = await producer.client.call(retry, 5)
    assert (response.error_code, response.producer_id) == (ErrorCode.NONE, producer.producer_id)
    assert await producer.send(2) == ErrorCode.NONE
    assert await producer.end(True) == ErrorCode.NONE
    assert await read(producer.client) == [0, 1, 2]


@in_world()
async def test_a_beginner_during_a_transaction_of_the_last_epoch_gets_another_producer_id(
    world: World,
) -> None:
    producer = await begun(world)
    runtime = world.broker.transactions.shard_of(NAME)
    runtime.shard.apply(replace(runtime.shard.transactions[NAME], epoch=EPOCH_MAX - 1), runtime.now())
    producer.epoch = EPOCH_MAX - 1
    assert await producer.send(0) == ErrorCode.NONE
    new = Producer(world.connect())
    assert await new.begin() == ErrorCode.NONE
    assert new.producer_id != producer.producer_id
    assert 0 <= new.epoch < 2
    assert await new.send(1) == ErrorCode.NONE
    assert await new.end(True) == ErrorCode.NONE
    assert await read(new.client) == [1]


@in_world()
async def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(world: World) -> None:
    client = world.connect()
    await create(client)
    producer = Producer(client)
    assert await producer.begin(timeout_ms=5000) == ErrorCode.NONE
    assert await producer.send(0) == ErrorCode.NONE
    world.clock.ms += 4000
    await world.broker.transactions.abort_timed_out()
    assert await state(client) == "Ongoing"
    world.clock.ms += 2000
    await world.broker.transactions.abort_timed_out()
    await asyncio.sleep(0)
    assert await state(client) == "CompleteAbort"
    assert await producer.send(1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await producer.end(True) != ErrorCode.NONE
    assert await read(client) == []


@in_world()
async def test_ids_that_nobody_uses_are_forgotten(world: World) -> None:
    producer = await begun(world)
    world.clock.ms += 604_800_001
    await world.broker.transactions.forget_expired()
    assert await state(producer.client) == ""
    assert await producer.end(True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@in_world()
async def test_an_open_transaction_survives_a_restart_and_can_be_committed(world: World) -> None:
    producer = await begun(world)
    for number, clean in enumerate((True, False)):
        assert await producer.send(number) == ErrorCode.NONE
        await world.restart(clean=clean)
        producer.client = world.connect()
        while await state(producer.client) != "Ongoing":
            await asyncio.sleep(0.01)
        assert await read(producer.client) == list(range(number))
        assert await producer.end(True) == ErrorCode.NONE
        await asyncio.sleep(0)
    assert await read(producer.client) == [0, 1]


@in_world(add_partitions_to_txn_retry_backoff_max_ms="0")
async def test_a_prepared_transaction_is_completed_after_a_restart(world: World) -> None:
    producer = await begun(world)
    assert await producer.send(0) == ErrorCode.NONE
    runtime = world.broker.transactions.shard_of(NAME)
    runtime.complete = lambda transaction: None  # type: ignore[method-assign]
    assert await producer.end(True) == ErrorCode.NONE
    assert await state(producer.client) == "PrepareCommit"
    assert await producer.send(1) == ErrorCode.CONCURRENT_TRANSACTIONS
    await world.restart(clean=False)
    client = world.connect()
    while await state(client) != "CompleteCommit":
        await asyncio.sleep(0.01)
    assert await read(client) == [0]


@in_world()
async def test_version_one_needs_the_partition_to_be_added(world: World) -> None:
    producer = await begun(world)
    assert await producer.send(0, version=10) == ErrorCode.INVALID_TXN_STATE
    assert await producer.send(0, version=11) == ErrorCode.TRANSACTION_ABORTABLE
    assert await producer.add() == ErrorCode.NONE
    assert await producer.send(0, version=10) == ErrorCode.NONE
    assert await producer.end(True, version=4) == ErrorCode.NONE
    await asyncio.sleep(0)
    assert await producer.end(True, version=4) == ErrorCode.NONE
    assert await read(producer.client) == [0]
