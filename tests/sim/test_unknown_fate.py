"""An AlterPartition whose response is lost may have been taken: the leader counts both sets until it knows
(KIP-497)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strandline.broker.replication.isr import IsrUpdater
from strandline.broker.replication.replica import Replica
from strandline.sim.checks.partition import read_partition
from strandline.sim.wire_client import Disconnected, WireClient
from strandline.sim.workloads.producer import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    ProduceRefused,
    produce,
)
from strandline.sim.world import SimulatedNode, World
from strandline.wire.api.k19_create_topics import CreatableReplicaAssignment, CreatableTopic
from strandline.wire.api.k56_alter_partition import (
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from tests.sim import scenarios
from tests.sim.cluster import until
from tests.sim.seeds import seeds

# The leader is not given up for silent, so that only its own decision counts.
SETTINGS = {"replica.lag.time.max.ms": "2000", "broker.session.timeout.ms": "600000"}
# Longer than the leader goes on asking the controller before it counts a request as unanswered.
SECONDS = 60.0


class Story:
    """Controller 1 and brokers 2, 3 and 4; broker 2 leads `t-0`, and broker 3 comes next if it goes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.controller, self.leader, self.late, self.steady = world.add_controllers(1, 3, settings=SETTINGS)
        self.client: WireClient

    async def begin(self) -> None:
        await self.world.start_all()
        self.client = await self.world.connect(self.leader)
        assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=(2, 3, 4))
        topic = CreatableTopic(
            name="t", num_partitions=-1, replication_factor=-1, assignments=(assignment,), configs=()
        )
        response = await self.client.request(CreateTopicsRequest(topics=(topic,)), CreateTopicsResponse)
        assert response.topics[0].error_code == 0
        await until(lambda: all("t" in node.broker.image.topics for node in self.world.nodes.values()))
        await produce(self.client, "t", 0, [b"before"])

    @property
    def replica(self) -> Replica:
        found = self.leader.broker.replicas.get("t", 0)
        assert found is not None
        return found

    def decided(self) -> tuple[int, ...]:
        """Returns the in-sync set as the controller has it."""
        return tuple(sorted(self.controller.broker.image.topics["t"].partitions[0].in_sync))

    def silence(self, source: SimulatedNode, target: SimulatedNode) -> None:
        self.world.network.cut(source.host, target.host)

    async def write_for_a_while(self) -> None:
        """A write that is not acknowledged, however long it waits."""
        committed = self.replica.high_watermark
        with pytest.raises((Disconnected, ProduceRefused)):
            await produce(self.client, "t", 0, [b"in doubt"])
        await asyncio.sleep(SECONDS)
        assert self.replica.log.log_end_offset > committed
        assert self.replica.high_watermark == committed, "acknowledged without a member of either set"


async def taken_in(world: World) -> None:
    """The controller has taken the follower in, and may elect it; the leader has not heard of it."""
    story = Story(world)
    await story.begin()
    story.silence(story.late, story.leader)
    await produce(story.client, "t", 0, [b"without the late one"])
    assert story.decided() == (2, 4)
    world.network.heal()
    story.silence(story.controller, story.leader)
    await until(lambda: story.decided() == (2, 3, 4))
    story.silence(story.late, story.leader)
    await story.write_for_a_while()
    world.network.heal()
    await until(lambda: story.replica.high_watermark == story.replica.log.log_end_offset)
    found = await read_partition(await world.connect_leader("t", 0), "t", 0)
    assert [record.value for record in found.records] == [b"before", b"without the late one", b"in doubt"]


async def taken_out(world: World) -> None:
    """The request may not even have arrived: the follower may still be elected."""
    story = Story(world)
    await story.begin()
    world.network.partition([story.leader.host], [story.controller.host])
    story.silence(story.late, story.leader)
    await story.write_for_a_while()
    assert story.replica.leader.is_proposing
    assert story.decided() == (2, 3, 4)
    world.network.heal()
    await until(lambda: story.replica.high_watermark == story.replica.log.log_end_offset)


async def told_by_the_response_only(world: World) -> None:
    """The image, with the minimum by which the controller judged, has not come yet."""
    story = Story(world)
    await story.begin()
    leader = story.replica.leader
    assert set(leader.in_sync) == {2, 3, 4}
    for in_sync in ((2,), (2, 4)):
        leader.propose(in_sync)
        decided = ResponsePartitionData(
            partition_index=0,
            error_code=0,
            leader_id=2,
            leader_epoch=leader.epoch,
            isr=in_sync,
            partition_epoch=leader.partition_epoch + 1,
        )
        topic = ResponseTopicData(topic_id=story.replica.topic_id, partitions=(decided,))
        response = AlterPartitionResponse(throttle_time_ms=0, error_code=0, topics=(topic,))
        assert story.leader.broker.isr._responded([(story.replica, leader)], response) == []
        assert set(leader.maximal_in_sync) == {2, 3, 4}, "a replica that leaves counts until the image tells"
        assert leader.is_proposing
        leader.proposal_failed()


def test_follower_that_a_response_takes_out_counts_until_the_image_tells() -> None:
    scenarios.run(told_by_the_response_only, 0)


@seeds(2)
def test_follower_that_may_have_been_taken_in_counts(seed: int) -> None:
    scenarios.run(taken_in, seed)


@seeds(2)
def test_follower_that_may_not_have_been_taken_out_counts(seed: int) -> None:
    scenarios.run(taken_out, seed)


def test_leader_that_takes_silence_for_a_refusal_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = IsrUpdater._responded

    def responded(self: IsrUpdater, batch: list[Any], response: Any) -> list[Any]:
        if response is None:
            for _, leader in batch:
                leader.proposal_failed()
        return original(self, batch, response)

    monkeypatch.setattr(IsrUpdater, "_responded", responded)
    with pytest.raises((AssertionError, pytest.fail.Exception), match=r"acknowledged without|DID NOT RAISE"):
        scenarios.run(taken_in, 0)
