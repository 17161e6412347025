"""Responses that need more than one broker: who leads, and whether every replica has heard of a deletion."""

from __future__ import annotations

import asyncio
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.sim.wire_client import WireClient
from strandline.sim.workloads.producer import batch_of, create_topic, produce, produce_request
from strandline.sim.world import SimulatedNode, World, host_name
from strandline.wire.api.k00_produce import ProduceResponse
from strandline.wire.api.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from strandline.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from strandline.wire.record_batch import records_in
from tests.sim import cluster, scenarios

FETCH_WITH_HINTS, PRODUCE_WITH_HINTS = 16, 10


async def nodes_with_topic(world: World) -> tuple[SimulatedNode, list[SimulatedNode]]:
    """Returns the leader of the one partition, and the two that follow; ten records are committed."""
    nodes = world.add_cluster(3)
    await world.start_all()
    await create_topic(await world.connect(nodes[0]), "t", partitions=1, replication_factor=3)
    await cluster.until(lambda: all("t" in node.broker.image.topics for node in nodes))
    leader = world.nodes[nodes[0].broker.image.topics["t"].partitions[0].leader]
    client = await world.connect(leader)
    for _ in range(10):
        await produce(client, "t", 0, [b"x"])
    return leader, [node for node in nodes if node is not leader]


def test_a_client_of_the_wrong_broker_is_told_who_leads() -> None:
    async def scenario(world: World) -> None:
        leader, others = await nodes_with_topic(world)
        topic = leader.broker.image.topics["t"]
        expected = (leader.node_id, topic.partitions[0].leader_epoch)
        client = await world.connect(others[0])
        produced = await client.request(
            produce_request("t", 0, batch_of([b"x"], 0)), ProduceResponse, version=PRODUCE_WITH_HINTS
        )
        fetched = await client.request(
            FetchRequest(
                # Consumers may read from a follower; another follower may not.
                replica_state=ReplicaState(replica_id=others[1].node_id, replica_epoch=-1),
                max_wait_ms=0,
                min_bytes=1,
                topics=(
                    FetchTopic(
                        topic_id=topic.topic_id,
                        partitions=(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100),),
                    ),
                ),
            ),
            FetchResponse,
            version=FETCH_WITH_HINTS,
        )
        for response, refused in (
            (produced, produced.responses[0].partition_responses[0]),
            (fetched, fetched.responses[0].partitions[0]),
        ):
            assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == expected
            (address,) = response.node_endpoints
            assert (address.node_id, address.host) == (leader.node_id, host_name(leader.node_id))
        before = await client.request(
            produce_request("t", 0, batch_of([b"x"], 0)), ProduceResponse, version=PRODUCE_WITH_HINTS - 1
        )
        assert before.node_endpoints == ()

    scenarios.run(scenario, 1)


async def delete(client: WireClient, offset: int, timeout_ms: int) -> Any:
    asked = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name="t", partitions=(asked,)),), timeout_ms=timeout_ms
    )
    response = await client.request(request, DeleteRecordsResponse)
    return response.topics[0].partitions[0]


def log_start(node: SimulatedNode) -> int:
    replica = node.broker.replicas.get("t", 0)
    assert replica is not None
    return replica.log.log_start_offset


def held(node: SimulatedNode) -> dict[int, bytes | None]:
    """Returns the records in a replica's log, by offset."""
    replica = node.broker.replicas.get("t", 0)
    assert replica is not None
    log = replica.log
    batches = [segment.read_batch(place) for segment, place in log.places(log.log_start_offset)]
    records = [record for batch in batches for record in records_in(batch)]
    return {record.offset: record.value for record in records if record.offset >= log.log_start_offset}


def test_records_are_deleted_when_every_replica_has_heard_of_it() -> None:
    async def scenario(world: World) -> None:
        leader, others = await nodes_with_topic(world)
        client = await world.connect(leader)
        response = await delete(client, 4, 10_000)
        assert (response.error_code, response.low_watermark) == (ErrorCode.NONE, 4)
        assert [log_start(node) for node in others] == [4, 4]
        others[0].pause()
        response = await delete(client, 6, 200)
        assert (response.error_code, response.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 4)
        deleting = world.start_task(delete(client, 6, 100_000))
        await asyncio.sleep(0.5)
        assert not deleting.done()
        others[0].resume()
        response = await deleting
        assert (response.error_code, response.low_watermark) == (ErrorCode.NONE, 6)
        assert [log_start(node) for node in others] == [6, 6]

    scenarios.run(scenario, 1)


def test_a_replica_that_begins_inside_a_batch_has_all_of_it_that_counts() -> None:
    """The leader's log begins in the middle of a batch: a follower that comes later begins there too, with the rest."""

    async def scenario(world: World) -> None:
        leader, others = await nodes_with_topic(world)
        client = await world.connect(leader)
        late = others[0]
        late.kill()
        assert await produce(client, "t", 0, [b"%d" % number for number in range(10)]) == 10
        assert (await delete(client, 15, 100_000)).error_code == ErrorCode.NONE
        await late.start()
        await cluster.until(lambda: late.node_id in leader.broker.image.topics["t"].partitions[0].in_sync)
        expected = {15 + number: b"%d" % (5 + number) for number in range(5)}
        assert (log_start(late), held(late)) == (15, expected)
        late.kill()
        await late.start()
        await cluster.until(lambda: late.broker.replicas.get("t", 0) is not None)
        # That is not on its device yet: the leader tells it again.
        await cluster.until(lambda: log_start(late) == 15)
        assert held(late) == expected

    scenarios.run(scenario, 1)


def test_a_deletion_does_not_wait_for_a_broker_that_is_gone() -> None:
    async def scenario(world: World) -> None:
        leader, others = await nodes_with_topic(world)
        client = await world.connect(leader)
        others[0].kill()
        response = await delete(client, 5, 100_000)
        assert (response.error_code, response.low_watermark) == (ErrorCode.NONE, 5)

    scenarios.run(scenario, 1)
