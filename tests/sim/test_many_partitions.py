"""Many partitions at once: a node goes on with everything else while it takes them, and spreads them evenly."""

from __future__ import annotations

from strandline.base.ids import TopicPartition
from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import World
from strandline.storage.directory import LogDirectory
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from tests.sim import scenarios
from tests.sim.cluster import until
from tests.sim.seeds import seeds

_PARTITIONS = 60


async def followed(world: World) -> None:
    _, leader, follower = world.add_controllers(1, 2)
    await world.start_all()
    replicas = follower.broker.replicas
    under_way: list[int] = []
    placed = replicas.on_placed

    def on_placed(partition: TopicPartition, directory: LogDirectory) -> None:
        under_way.append(len(replicas._opening))
        placed(partition, directory)

    replicas.on_placed = on_placed
    client = await world.connect(leader)
    await create_topic(client, "large", partitions=_PARTITIONS, replication_factor=2)
    topics = follower.broker.image.topics
    await until(lambda: "large" in topics)
    wanted = [i for i, p in topics["large"].partitions.items() if p.leader == leader.node_id]
    assert len(wanted) > 10
    await until(lambda: all(replicas.get("large", index) is not None for index in wanted))
    # Those that it leads are opened when the other node asks for them.
    assert max(under_way) < 10, "all at once would hold up heartbeats and clients"


async def spread(world: World) -> None:
    settings = {"log.dirs": "/data,/one", "metadata.log.dir": "/data"}
    (node,) = world.add_cluster(1, settings=settings)
    await node.start()
    client = await world.connect(node)
    replicas = node.broker.replicas

    def counts() -> list[int]:
        return [len(replicas.partitions_in(directory)) for directory in replicas.directories]

    async def make(name: str) -> None:
        await create_topic(client, name, replication_factor=1)
        await produce(client, name, 0, [b"a record"])

    for number in range(6):
        await make(f"t{number}")
    assert counts() == [3, 3]
    doomed = {partition.topic for partition in replicas.partitions_in(replicas.directories[1])}
    for topic in sorted(doomed):
        request = DeleteTopicsRequest(
            topics=(DeleteTopicState(name=topic, topic_id=bytes(16)),), timeout_ms=1000
        )
        await client.request(request, DeleteTopicsResponse)
    await until(lambda: counts() == [3, 0])
    for number in range(6, 11):
        await make(f"t{number}")
    assert counts() == [4, 4]


@seeds(1)
def test_logs_of_followers_are_opened_a_few_at_a_time(seed: int) -> None:
    scenarios.run(followed, seed)


@seeds(1)
def test_new_partition_is_where_the_fewest_are(seed: int) -> None:
    scenarios.run(spread, seed)
