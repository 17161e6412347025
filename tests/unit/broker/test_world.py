"""The world of these tests itself."""

from __future__ import annotations

from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from tests.batches import batch
from tests.unit.broker.requests import append, create, fetch, fetched, records_of
from tests.unit.broker.world import World, in_world


@in_world()
async def test_a_broker_responds_takes_and_gives_records(world: World) -> None:
    client = world.connect()
    assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
    await create(client)
    assert await append(client, batch(3)) == 0
    partition = fetched(await client.call(fetch((0, 0)), 12))[0]
    assert [record.offset for record in records_of(partition)] == [0, 1, 2]


@in_world()
async def test_written_records_are_there_after_any_end(world: World) -> None:
    await create(world.connect())
    for number, clean in enumerate((True, False, True)):
        assert await append(world.connect(), batch(1)) == number
        await world.restart(clean=clean)
    partition = fetched(await world.connect().call(fetch((0, 0)), 12))[0]
    assert len(records_of(partition)) == 3
