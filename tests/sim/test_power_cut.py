"""A power cut takes only records that were not synced (Kafka's contract; KIP-320 for clients).

Most scenarios are in `scenarios.py`, because `test_mutants.py` and `search_mutants.py` run them too.
"""

from __future__ import annotations

import asyncio

from strandline.sim.checks.partition import read_partition
from strandline.sim.clock import EPOCH_MS
from strandline.sim.workloads.producer import (
    batch_of,
    create_topic,
    new_producer_id,
    produce,
    produce_request,
)
from strandline.sim.world import World
from strandline.wire.api.k00_produce import ProduceResponse
from tests.sim import scenarios
from tests.sim.seeds import seeds


@seeds(20)
def test_with_flush_messages_1_every_acknowledged_record_survives(seed: int) -> None:
    scenarios.run(scenarios.power_cuts_with_flushes, seed)


@seeds(15)
def test_without_flushes_a_prefix_survives_in_a_new_leader_epoch(seed: int) -> None:
    scenarios.run(scenarios.power_cuts_without_flushes, seed)


@seeds(15)
def test_topics_that_were_acknowledged_survive(seed: int) -> None:
    scenarios.run(scenarios.power_cuts_while_topics_are_created, seed)


@seeds(10)
def test_records_survive_a_power_cut_after_a_clean_stop(seed: int) -> None:
    scenarios.run(scenarios.power_cut_after_clean_stop, seed)


@seeds(8)
def test_a_repeated_batch_is_not_acknowledged_before_the_sync_that_the_first_one_waits_for(seed: int) -> None:
    async def scenario(world: World) -> None:
        node = world.add_node()
        await node.start()
        client, other = await world.connect(node), await world.connect(node)
        await create_topic(client, "t", configs={"flush.messages": "1"})
        await produce(client, "t", 0, [b"before"])
        producer_id = await new_producer_id(client)
        request = produce_request(
            "t", 0, batch_of([b"repeated"], EPOCH_MS, producer_id=producer_id, epoch=0, sequence=0)
        )
        node.workers.slowness = 100.0
        client.send(request, 12)
        await asyncio.sleep(0.02)
        client.abort()
        response = await other.request(request, ProduceResponse, version=12)
        assert response.responses[0].partition_responses[0].base_offset == 1
        node.cut_power()
        await node.start()
        read = await read_partition(await world.connect(node), "t", 0)
        assert [record.value for record in read.records] == [b"before", b"repeated"]

    with World(seed) as world:
        world.run(scenario(world))
