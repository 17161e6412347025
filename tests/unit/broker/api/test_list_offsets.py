"""ListOffsets of a leader that does not know yet how much is committed (KIP-207)."""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.wire.api.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.batches import NOW_MS, batch
from tests.unit.broker.requests import append, create
from tests.unit.broker.world import Client, World, in_world

LATEST, EARLIEST = -1, -2
WITH_THE_ERROR, BEFORE_IT = 5, 4


async def asked(client: Client, timestamp: int, version: int = 9, replica_id: int = -1) -> tuple[int, int]:
    place = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = (ListOffsetsTopic(name="t", partitions=(place,)),)
    response = await client.call(ListOffsetsRequest(replica_id=replica_id, topics=topics), version)
    found = response.topics[0].partitions[0]
    return found.error_code, found.offset


@in_world()
async def test_the_end_does_not_seem_to_go_back_after_an_election(world: World) -> None:
    client = world.connect()
    await create(client)
    for _ in range(3):
        await append(client, batch(1))
    replica = world.broker.replicas.get("t", 0)
    assert replica is not None
    # As after an election: what the leader before has committed is not known to be so here.
    replica.leader.high_watermark, replica.leader.epoch_start = 1, 3
    assert await asked(client, NOW_MS + 1_000_000) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert await asked(client, LATEST, WITH_THE_ERROR) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert await asked(client, LATEST, BEFORE_IT) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert await asked(client, EARLIEST) == (ErrorCode.NONE, 0)
    assert await asked(client, LATEST, replica_id=2) == (ErrorCode.NONE, 3), (
        "a replica asks for the log's end"
    )
    replica.leader.high_watermark = 3
    assert await asked(client, LATEST) == (ErrorCode.NONE, 3)
    assert await asked(client, NOW_MS + 1_000_000) == (ErrorCode.NONE, -1)
