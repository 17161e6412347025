"""Without a quorum a broker goes on with what it leads, and tells at once what it cannot do.

Requests of one connection get their responses in order. One that waited for a controller would hold back the Fetch
after it: a librdkafka consumer that looks for its group asks on the connection that it reads from.
"""

from __future__ import annotations

import asyncio

from strandline.base.errors import ErrorCode
from strandline.sim.wire_client import WireClient
from strandline.sim.world import World
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.sim import scenarios
from tests.sim.cluster import until
from tests.sim.seeds import seeds

# Several times what a broker waits for a controller that is there, and much less than it goes on asking.
PROMPT_S = 3.0


async def asked_without_a_quorum(world: World) -> None:
    controller, node = world.add_controllers(1, 1, settings={"broker.session.timeout.ms": "600000"})
    await world.start_all()
    client = await world.connect(node)
    controller.kill()
    await asyncio.sleep(1.0)
    began_s = asyncio.get_running_loop().time()
    for _ in range(2):
        assert await _coordinator(client) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await _producer_id(client) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await _topic(client) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await _created(client) in (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)
    assert asyncio.get_running_loop().time() - began_s < 2 * PROMPT_S
    await controller.start()
    await until(lambda: node.broker.quorum.leader_id == controller.node_id)
    while await _coordinator(client) != ErrorCode.NONE:
        await asyncio.sleep(0.1)
    while await _producer_id(client) != ErrorCode.NONE:
        await asyncio.sleep(0.1)
    assert await _topic(client) == ErrorCode.NONE
    assert await _created(client) == ErrorCode.NONE


async def _coordinator(client: WireClient) -> int:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
    response = await client.request(request, FindCoordinatorResponse)
    return int(response.coordinators[0].error_code)


async def _producer_id(client: WireClient) -> int:
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
    )
    response = await client.request(request, InitProducerIdResponse)
    return int(response.error_code)


async def _created(client: WireClient) -> int:
    """Creates a topic by a request with a timeout; returns the error code."""
    topic = CreatableTopic(name="made", num_partitions=1, replication_factor=1, assignments=(), configs=())
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=500)
    response = await client.request(request, CreateTopicsResponse)
    return int(response.topics[0].error_code)


async def _topic(client: WireClient) -> int:
    request = MetadataRequest(topics=(MetadataRequestTopic(name="wanted"),), allow_auto_topic_creation=True)
    response = await client.request(request, MetadataResponse)
    return int(response.topics[0].error_code)


@seeds(2)
def test_nothing_waits_for_a_quorum_that_is_lost(seed: int) -> None:
    scenarios.run(asked_without_a_quorum, seed)
