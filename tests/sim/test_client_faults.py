"""Responses that lie or never come: whatever a broker says of a batch, no record is doubled, moved or forgotten.

Requests to produce are intercepted on their way out. Some are never sent and get a refusal; some are carried
out and get an error all the same (kfake calls that `afterApply`), the hardest case for sequence numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.client.errors import KafkaError, UnsupportedVersionError
from strandline.client.net.connections import NodeConnection
from strandline.client.producer.batch import RecordMetadata
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import CLIENT_HOST, SimulatedNode, World
from strandline.wire.api.k00_produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from strandline.wire.schema import Request
from tests.sim.seeds import seeds
from tests.sim.sending import PARTITIONS, check_log, outcomes, producer_for, send_many

Act = Callable[[Any, KafkaError | None], None]

REFUSALS = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.INVALID_RECORD,
    ErrorCode.MESSAGE_TOO_LARGE,
)
LIES = (
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


def response_with(request: ProduceRequest, code: int) -> ProduceResponse:
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    PartitionProduceResponse(index=each.index, error_code=code, base_offset=-1)
                    for each in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


@pytest.fixture
def lying(monkeypatch: pytest.MonkeyPatch) -> Callable[[World, float], dict[str, int]]:
    """Makes responses to Produce lie with a probability, and counts them."""

    def begin(world: World, probability: float) -> dict[str, int]:
        chance = world.generator("lies")
        counts = {"refused": 0, "lied": 0, "out of order": 0}
        real = NodeConnection.send_with_callback

        def send_with_callback(self: NodeConnection, request: Any, act: Act, **more: Any) -> None:
            def watched(response: Any, error: KafkaError | None) -> None:
                if response is not None and any(
                    each.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                    for topic in response.responses
                    for each in topic.partition_responses
                ):
                    counts["out of order"] += 1
                act(response, error)

            if not isinstance(request, ProduceRequest):
                real(self, request, act, **more)
            elif chance.random() < probability:
                counts["refused"] += 1
                code = REFUSALS[chance.randrange(len(REFUSALS))]
                world.loop.call_later(chance.random() * 0.02, act, response_with(request, code), None)
            elif chance.random() < probability:
                counts["lied"] += 1
                code = LIES[chance.randrange(len(LIES))]
                real(
                    self,
                    request,
                    lambda _, error: act(error is None and response_with(request, code), error),
                    **more,
                )
            else:
                real(self, request, watched, **more)

        monkeypatch.setattr(NodeConnection, "send_with_callback", send_with_callback)
        return counts

    return begin


@seeds(15)
def test_no_record_is_doubled_or_out_of_order_whatever_responses_say(
    seed: int, lying: Callable[[World, float], dict[str, int]]
) -> None:
    async def scenario(world: World, node: SimulatedNode) -> dict[str, int]:
        await node.start()
        await create_topic(await world.connect(node), "t", partitions=PARTITIONS)
        settings = {
            "delivery.timeout.ms": 20_000,
            "request.timeout.ms": 3000,
            "retry.backoff.ms": 5,
            "linger.ms": 0,
        }
        producer = producer_for(world, node, **settings)
        await producer.start()
        counts = lying(world, 0.15)
        sent = await send_many(world, producer, 400, size=200)
        ended = await outcomes(sent)
        await producer.close()
        await check_log(world, node, sent, ended)
        assert sum(isinstance(outcome, RecordMetadata) for outcome in ended) > 100
        return counts

    with World(seed) as world:
        counts = world.run(scenario(world, world.add_node()))
    assert counts["refused"] > 5
    assert counts["lied"] > 5


def test_a_broker_that_speaks_no_version_of_a_request_fails_its_records_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        await create_topic(await world.connect(node), "t", partitions=PARTITIONS)
        producer = producer_for(world, node)
        await producer.start()
        real = NodeConnection.version
        is_old = True

        def version(self: NodeConnection, request: type[Request], *, at_most: int | None = None) -> int:
            return real(self, request, at_most=-1 if is_old and request is ProduceRequest else at_most)

        monkeypatch.setattr(NodeConnection, "version", version)
        begun_at = world.loop.time()
        for _ in range(10):  # more than may be in flight: none of these was
            with pytest.raises(UnsupportedVersionError):
                await (await producer.send("t", b"v", partition=0))
        assert world.loop.time() - begun_at < 10
        is_old = False
        await (await producer.send("t", b"v", partition=0))
        await producer.close()

    with World(0) as world:
        world.run(scenario(world, world.add_node()))


def test_a_broker_whose_connection_is_closed_while_it_opens_is_connected_to_again() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        await create_topic(await world.connect(node), "t", partitions=PARTITIONS)
        producer = producer_for(world, node, **{"delivery.timeout.ms": 60_000})
        await producer.start()
        await (await producer.send("t", b"v", partition=0))
        close_all = producer._cluster.connections.keep_only
        close_all(set())
        world.network.cut(CLIENT_HOST, node.host)
        promise = await producer.send("t", b"v", partition=0)
        await asyncio.sleep(1)
        close_all(set())
        world.network.heal()
        await promise
        await producer.close()

    with World(0) as world:
        world.run(scenario(world, world.add_node()))
