"""Batches that an idempotent producer sends again, and batches that it sent after one that was refused (KIP-98).

A repeated batch is acknowledged when it is committed, whatever the leader remembers of it. A batch that leaves a gap
only because the one before it was refused gets the same error, and not OUT_OF_ORDER_SEQUENCE_NUMBER.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.producer_entry import ProducerEntry
from strandline.broker.replication.replica import Replica
from strandline.partition.producers import UNKNOWN_OFFSET, AppendedBatch, Producers
from strandline.partition.refused_batches import RETRY_S, RefusedBatches
from strandline.sim.clock import EPOCH_MS
from strandline.sim.wire_client import WireClient
from strandline.sim.workloads.producer import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    batch_of,
    produce_request,
)
from strandline.sim.world import SimulatedNode, World
from strandline.wire.api.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.wire.record_batch import BatchHeader
from tests.sim import scenarios
from tests.sim.cluster import until
from tests.sim.seeds import seeds

# Clients count both as an acknowledgement.
SUCCESS = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
SETTINGS = {"broker.session.timeout.ms": "600000", "replica.lag.time.max.ms": "600000"}
BY_NAME = 12


class Story:
    """Controller 1 and brokers 2, 3 and 4 with a replica each of `t-0`; two of them have to be in sync."""

    def __init__(self, world: World) -> None:
        self.world = world
        _, self.first, self.restarted, self.paused = world.add_controllers(1, 3, settings=SETTINGS)

    async def begin(self) -> None:
        await self.world.start_all()
        client = await self.world.connect(self.first)
        topic = CreatableTopic(
            name="t",
            num_partitions=-1,
            replication_factor=-1,
            assignments=(CreatableReplicaAssignment(partition_index=0, broker_ids=(2, 3, 4)),),
            configs=(CreatableTopicConfig(name="min.insync.replicas", value="2"),),
        )
        response = await client.request(CreateTopicsRequest(topics=(topic,)), CreateTopicsResponse)
        assert response.topics[0].error_code == ErrorCode.NONE
        await until(lambda: all("t" in node.broker.image.topics for node in self.world.nodes.values()))
        assert (await send(client, 0)) == ErrorCode.NONE

    def replica(self, node: SimulatedNode) -> Replica:
        found = node.broker.replicas.get("t", 0)
        assert found is not None
        return found

    def leads(self, node: SimulatedNode) -> bool:
        found = node.broker.replicas.get("t", 0)
        return found is not None and found.is_leader


async def require_in_sync(client: WireClient, replica: Replica, count: int) -> None:
    setting = AlterableConfig(name="min.insync.replicas", config_operation=0, value=str(count))
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(setting,))
    await client.request(
        IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False),
        IncrementalAlterConfigsResponse,
    )
    await until(lambda: replica.config.min_insync_replicas == count)


def send(client: WireClient, sequence: int) -> asyncio.Task[int]:
    """Sends one batch of the producer; returns a task with the error code of its response."""

    async def code() -> int:
        batch = batch_of([f"r{sequence}".encode()], EPOCH_MS, producer_id=7, epoch=0, sequence=sequence)
        response = await client.send(produce_request("t", 0, batch, timeout_ms=20_000), BY_NAME)
        return int(response.responses[0].partition_responses[0].error_code)

    return asyncio.get_running_loop().create_task(code())


async def repeated_to_a_new_leader(world: World) -> None:
    story = Story(world)
    await story.begin()
    client = await world.connect(story.first)
    assert [await send(client, sequence) for sequence in (1, 2)] == [ErrorCode.NONE] * 2
    story.first.kill()
    await until(lambda: story.leads(story.restarted))
    client = await world.connect(story.restarted)
    assert [await send(client, sequence) for sequence in (1, 2, 3)] == [ErrorCode.NONE] * 3
    assert story.replica(story.restarted).log.log_end_offset == 4, "each record is in the log once"


def test_a_new_leader_recognises_batches_that_the_former_one_appended() -> None:
    scenarios.run(repeated_to_a_new_leader, 0)


async def repeated_to_a_restarted_follower(world: World) -> None:
    story = Story(world)
    await story.begin()
    leader, follower = story.first, story.restarted
    story.paused.pause()
    client = await world.connect(leader)
    for sequence in (1, 2):
        send(client, sequence)
    await until(lambda: story.replica(follower).log.log_end_offset == 3)
    await follower.stop()
    await follower.start()
    await until(lambda: set(story.replica(leader).leader.in_sync) == {2, 3, 4})
    await leader.stop()
    await until(lambda: story.leads(follower))
    client = await world.connect(follower)
    again = [send(client, sequence) for sequence in (1, 2)]
    await asyncio.sleep(5.0)
    acknowledged = [
        sequence for sequence, each in enumerate(again, 1) if each.done() and each.result() in SUCCESS
    ]
    follower.kill()
    story.paused.resume()
    await until(lambda: story.replica(story.paused).log.log_end_offset >= 1)
    lost = [each for each in acknowledged if story.replica(story.paused).log.log_end_offset <= each]
    assert not lost, f"acknowledged, and only on a broker that died: {lost}"
    for each in again:
        each.cancel()


@seeds(2)
def test_a_repeated_batch_is_not_acknowledged_before_it_is_committed(seed: int) -> None:
    scenarios.run(repeated_to_a_restarted_follower, seed)


def duplicates_are_known_by_their_number(patch: pytest.MonkeyPatch) -> None:
    """A snapshot keeps the newest batch alone, and what has a lower sequence is called a duplicate at once."""
    load, check = Producers.load, Producers.check

    def load_newest(self: Producers, entries: Iterable[ProducerEntry]) -> None:
        load(self, {entry.producer_id: entry for entry in entries}.values())

    def check_by_number(self: Producers, header: BatchHeader, guard: Any = None) -> AppendedBatch | None:
        expected = self.expected_sequence(header.producer_id, header.producer_epoch)
        try:
            return check(self, header, guard)
        except KafkaError as error:
            if expected is not None and header.base_sequence < expected:
                return AppendedBatch(header.base_sequence, header.base_sequence, UNKNOWN_OFFSET, -1, -1)
            raise error

    patch.setattr(Producers, "load", load_newest)
    patch.setattr(Producers, "check", check_by_number)


def test_an_acknowledgement_by_sequence_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    duplicates_are_known_by_their_number(monkeypatch)
    with pytest.raises(AssertionError, match="only on a broker that died"):
        scenarios.run(repeated_to_a_restarted_follower, 0)


async def refused_below_the_minimum(world: World) -> None:
    story = Story(world)
    await story.begin()
    await story.paused.stop()
    replica = story.replica(story.first)
    await until(lambda: len(replica.leader.in_sync) == 2)
    client = await world.connect(story.first)
    await require_in_sync(client, replica, 3)
    assert await send(client, 0) == ErrorCode.NONE, "it is committed already"
    assert await send(client, 1) == ErrorCode.NOT_ENOUGH_REPLICAS
    await require_in_sync(client, replica, 2)
    assert await send(client, 2) == ErrorCode.NOT_ENOUGH_REPLICAS, (
        "only because the one before it was refused"
    )
    await asyncio.sleep(RETRY_S + 1)
    assert await send(client, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, (
        "the refused one did not come again"
    )
    assert [await send(client, sequence) for sequence in (1, 2)] == [ErrorCode.NONE] * 2
    assert replica.log.log_end_offset == 3


async def refused_by_a_follower_that_leads_then(world: World) -> None:
    story = Story(world)
    await story.begin()
    client = await world.connect(story.restarted)
    await until(lambda: story.restarted.broker.replicas.get("t", 0) is not None)
    assert await send(client, 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    await story.first.stop()
    await until(lambda: story.leads(story.restarted))
    assert await send(client, 2) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [await send(client, sequence) for sequence in (1, 2)] == [ErrorCode.NONE] * 2


async def refused_first_batch_of_a_producer(world: World) -> None:
    story = Story(world)
    await story.begin()
    await story.paused.stop()
    replica = story.replica(story.first)
    await until(lambda: len(replica.leader.in_sync) == 2)
    replica.producers.expire(EPOCH_MS * 2)
    client = await world.connect(story.first)
    await require_in_sync(client, replica, 3)
    assert await send(client, 5) == ErrorCode.NOT_ENOUGH_REPLICAS
    await require_in_sync(client, replica, 2)
    assert await send(client, 6) == ErrorCode.NOT_ENOUGH_REPLICAS
    await asyncio.sleep(RETRY_S + 1)
    assert await send(client, 6) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, (
        "it took the place of the refused one"
    )
    assert [await send(client, sequence) for sequence in (5, 6)] == [ErrorCode.NONE] * 2


def test_a_batch_after_one_that_was_refused_below_the_minimum_is_refused_likewise() -> None:
    scenarios.run(refused_below_the_minimum, 0)


def test_a_batch_after_one_that_a_follower_refused_is_refused_likewise() -> None:
    scenarios.run(refused_by_a_follower_that_leads_then, 0)


def test_a_batch_after_a_refused_first_one_does_not_take_its_place() -> None:
    scenarios.run(refused_first_batch_of_a_producer, 0)


def refusals_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RefusedBatches, "note", lambda self, header, expected, error, now: None)


@pytest.mark.parametrize(
    "story",
    [
        refused_below_the_minimum,
        refused_by_a_follower_that_leads_then,
        refused_first_batch_of_a_producer,
    ],
)
def test_refusals_that_are_forgotten_are_caught(story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals_are_forgotten(monkeypatch)
    with pytest.raises(AssertionError):
        scenarios.run(story, 0)
