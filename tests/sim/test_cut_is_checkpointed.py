"""A follower that goes back has its recovery point checkpointed before it fetches again: recovery believes it."""

from __future__ import annotations

from strandline.base.ids import TopicPartition
from strandline.sim.workloads.producer import create_topic, produce_request
from strandline.sim.world import DATA, SimulatedNode, World
from strandline.storage import names
from strandline.storage.checkpoints import parse_offsets
from strandline.wire.api.k00_produce import ProduceResponse
from strandline.wire.record_batch import Record, build_batch
from tests.sim import cluster
from tests.sim.seeds import seeds

SETTINGS = {"log.flush.offset.checkpoint.interval.ms": "2000"}
ALONE = 40


def leader_on(node: SimulatedNode) -> int:
    return node.broker.image.topics["t"].partitions[0].leader


def checkpointed(node: SimulatedNode) -> int:
    path = f"{DATA}/{names.RECOVERY_POINTS}"
    if not node.disk.exists(path):
        return 0
    return parse_offsets(node.disk.read(path)).get(TopicPartition("t", 0), 0)


async def write(world: World, node: SimulatedNode, *, acks: int) -> int:
    client = await world.connect(node)
    request = produce_request("t", 0, build_batch([Record(0, 1, None, b"x" * 100)]), acks=acks)
    response = await client.request(request, ProduceResponse, version=12)
    client.close()
    return response.responses[0].partition_responses[0].error_code


async def scenario(world: World) -> None:
    nodes = world.add_cluster(settings=SETTINGS)
    await world.start_all()
    client = await world.connect_any()
    await create_topic(client, "t", configs={"flush.messages": "1"}, replication_factor=3)
    await cluster.until(lambda: all("t" in node.broker.image.topics for node in nodes))
    old = world.nodes[leader_on(nodes[0])]
    assert await write(world, old, acks=-1) == 0
    others = [node for node in nodes if node is not old]
    world.network.partition([old.host], [node.host for node in others])
    for _ in range(ALONE):  # nobody else will have them
        assert await write(world, old, acks=1) == 0
    await cluster.until(lambda: checkpointed(old) > 1)
    await cluster.until(lambda: leader_on(others[0]) not in (old.node_id, -1))
    new = world.nodes[leader_on(others[0])]
    assert await write(world, new, acks=1) == 0
    # The value of the checkpoint each time that something is appended after the cut.
    replica = old.broker.replicas.get("t", 0)
    assert replica is not None
    said: list[tuple[int, int]] = []
    appended = replica.log.append_replicated

    def noting(*given: object) -> None:
        said.append((checkpointed(old), replica.log.log_end_offset))
        appended(*given)  # type: ignore[arg-type]

    replica.log.append_replicated = noting  # type: ignore[method-assign]
    world.network.heal()
    await cluster.until(lambda: said)
    point, end = said[0]
    assert any("truncated" in line for line in old.said), "it was not committed"
    assert point <= end, f"recovery would believe what is below {point}, and the log was cut at {end}"


@seeds(3)
def test_the_recovery_point_of_a_cut_log_is_checkpointed_before_it_grows_again(seed: int) -> None:
    with World(seed) as world:
        world.run(scenario(world))
