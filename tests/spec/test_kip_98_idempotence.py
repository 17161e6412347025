"""KIP-98 (idempotent delivery), KIP-360 (a producer without state) and KIP-185: what a client observes."""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.controller.producer_ids import BLOCK_SIZE
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest
from strandline.wire.api.k61_describe_producers import DescribeProducersRequest, TopicRequest
from tests.batches import batch
from tests.unit.broker.requests import (
    append,
    append_error,
    create,
    delete_records,
    fetch,
    fetched,
    records_of,
)
from tests.unit.broker.world import Client, World, in_world


async def new_producer(client: Client) -> int:
    response = await client.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4)
    assert (response.error_code, response.producer_epoch) == (ErrorCode.NONE, 0)
    return int(response.producer_id)


def sent(producer: int, sequence: int, *, epoch: int = 0, count: int = 1) -> bytes:
    return batch(count, producer_id=producer, epoch=epoch, sequence=sequence, first=sequence)


async def stored(client: Client) -> int:
    return len(records_of(fetched(await client.call(fetch((0, 0)), 12))[0]))


@in_world()
async def test_every_producer_gets_an_id_of_its_own(world: World) -> None:
    client = world.connect()
    ids = [await new_producer(client) for _ in range(BLOCK_SIZE + 5)]
    assert len(set(ids)) == len(ids)


@in_world()
async def test_ids_are_never_given_twice_whatever_the_end(world: World) -> None:
    given = []
    for clean in (True, False, True):
        given += [await new_producer(world.connect()) for _ in range(3)]
        await world.restart(clean=clean)
    assert len(set(given)) == len(given)


@in_world()
async def test_a_retry_is_stored_once_and_gets_its_offset(world: World) -> None:
    client = world.connect()
    await create(client)
    producer = await new_producer(client)
    offsets = [await append(client, sent(producer, number)) for number in range(5)]
    assert [await append(client, sent(producer, number)) for number in range(5)] == offsets
    assert await stored(client) == 5


@in_world()
async def test_a_retry_older_than_five_batches_is_a_duplicate(world: World) -> None:
    client = world.connect()
    await create(client)
    producer = await new_producer(client)
    for number in range(7):
        await append(client, sent(producer, number))
    assert await append_error(client, sent(producer, 1)) == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    await world.restart(clean=True)
    client = world.connect()
    assert await append_error(client, sent(producer, 1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert await stored(client) == 7


@in_world()
async def test_a_lost_batch_is_noticed(world: World) -> None:
    client = world.connect()
    await create(client)
    producer = await new_producer(client)
    await append(client, sent(producer, 0))
    assert await append_error(client, sent(producer, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    await append(client, sent(producer, 1))
    await append(client, sent(producer, 2))


@in_world()
async def test_a_raised_epoch_fences_the_old_one_and_begins_with_0(world: World) -> None:
    client = world.connect()
    await create(client)
    producer = await new_producer(client)
    await append(client, sent(producer, 0))
    assert await append_error(client, sent(producer, 1, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    await append(client, sent(producer, 0, epoch=1))
    assert await append_error(client, sent(producer, 1)) == ErrorCode.INVALID_PRODUCER_EPOCH


@in_world()
async def test_sequences_are_counted_by_partition(world: World) -> None:
    client = world.connect()
    await create(client, partitions=2)
    producer = await new_producer(client)
    for partition in range(2):
        for number in range(3):
            assert await append(client, sent(producer, number), partition=partition) == number


@in_world()
async def test_duplicates_are_known_after_a_restart_of_any_kind(world: World) -> None:
    client = world.connect()
    await create(client)
    producer = await new_producer(client)
    for number in range(5):
        await append(client, sent(producer, number))
    for clean in (True, False, True):
        await world.restart(clean=clean)
        client = world.connect()
        assert [await append(client, sent(producer, number)) for number in range(5)] == list(range(5))
        assert await append_error(client, sent(producer, 9)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await stored(client) == 5


@in_world()
async def test_a_producer_whose_records_were_deleted_goes_on(world: World) -> None:
    """KIP-360: UNKNOWN_PRODUCER_ID is no longer what deleted records cost."""
    client = world.connect()
    await create(client)
    producer = await new_producer(client)
    for number in range(3):
        await append(client, sent(producer, number))
    await delete_records(client, -1)
    assert await append(client, sent(producer, 3)) == 3


@in_world(producer_id_expiration_ms="1000")
async def test_a_producer_without_state_may_begin_anywhere(world: World) -> None:
    client = world.connect()
    await create(client)
    producer = await new_producer(client)
    await append(client, sent(producer, 0))
    world.clock.ms += 5000
    await world.broker.maintenance.expire_producers()
    assert await append(client, sent(producer, 41)) == 1
    assert await append_error(client, sent(producer, 43)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@in_world()
async def test_describe_producers_tells_what_the_leader_knows(world: World) -> None:
    """KIP-664."""
    client = world.connect()
    await create(client)
    producer = await new_producer(client)
    await append(client, sent(producer, 0, count=3, epoch=2))
    request = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0, 1)),))
    first, second = (await client.call(request, 0)).topics[0].partitions
    assert [(p.producer_id, p.producer_epoch, p.last_sequence) for p in first.active_producers] == [
        (producer, 2, 2)
    ]
    assert second.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@in_world()
async def test_half_of_an_identity_is_no_request(world: World) -> None:
    client = world.connect()
    for producer_id, epoch in ((5, -1), (-1, 5)):
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=1, producer_id=producer_id, producer_epoch=epoch
        )
        assert (await client.call(request, 4)).error_code == ErrorCode.INVALID_REQUEST
