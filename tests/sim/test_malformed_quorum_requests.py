"""Requests of the quorum that are well-formed and make no sense: they are refused, and nobody ends for them."""

from __future__ import annotations

from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from strandline.sim.wire_client import WireClient
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import CONTROLLER_PORT, World
from strandline.wire.api import k01_fetch as fetch
from strandline.wire.api import k52_vote as vote
from strandline.wire.api import k53_begin_quorum_epoch as begin
from strandline.wire.api import k54_end_quorum_epoch as end
from tests.sim import scenarios
from tests.sim.seeds import seeds


def _begin_topics(leader_id: int, epoch: int, topic: str = METADATA_TOPIC, index: int = 0) -> Any:
    partition = begin.PartitionData(partition_index=index, leader_id=leader_id, leader_epoch=epoch)
    return (begin.TopicData(topic_name=topic, partitions=(partition,)),)


async def refused(world: World) -> None:
    nodes = world.add_cluster(3)
    await world.start_all()
    epoch = nodes[0].broker.quorum.core.epoch
    without_partitions = fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=())
    for node in nodes:
        client = await WireClient.connect(world.clients, node.host, CONTROLLER_PORT, "x")
        for topics in ((), (vote.TopicData(topic_name=METADATA_TOPIC, partitions=()),)):
            votes = await client.request(vote.VoteRequest(topics=topics), vote.VoteResponse, version=2)
            assert votes.error_code == ErrorCode.INVALID_REQUEST
        for begun in (
            (),
            _begin_topics(1, epoch, "another"),
            _begin_topics(1, epoch, index=1),
            _begin_topics(1, epoch) * 2,
        ):
            begins = await client.request(
                begin.BeginQuorumEpochRequest(topics=begun), begin.BeginQuorumEpochResponse, version=1
            )
            assert begins.error_code == ErrorCode.INVALID_REQUEST
        ends = await client.request(
            end.EndQuorumEpochRequest(topics=()), end.EndQuorumEpochResponse, version=1
        )
        assert ends.error_code == ErrorCode.INVALID_REQUEST
        fetched = await client.request(
            fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=(without_partitions,)),
            fetch.FetchResponse,
            version=17,
        )
        assert fetched.error_code == ErrorCode.INVALID_REQUEST
        usurped = await client.request(
            begin.BeginQuorumEpochRequest(topics=_begin_topics(7, epoch)),
            begin.BeginQuorumEpochResponse,
            version=1,
        )
        assert usurped.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    assert all(node.is_running and node.broker.quorum.core.epoch == epoch for node in nodes)
    await create_topic(await world.connect(nodes[0]), "t", replication_factor=3)


@seeds(1)
def test_requests_that_make_no_sense_are_refused(seed: int) -> None:
    scenarios.run(refused, seed)
