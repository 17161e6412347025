"""The markers of one transaction go to several leaders."""

from __future__ import annotations

import asyncio
from typing import NoReturn

from strandline.base.ids import TopicPartition
from strandline.base.planned import Planned
from strandline.broker.coordinator.txn_markers import Ending, MarkerSending
from strandline.ports.network import Peer
from strandline.wire.records.markers import Marker
from strandline.wire.records.metadata import BrokerEndpoint, PartitionChangeRecord, RegisterBrokerRecord
from strandline.wire.schema import Message
from tests.unit.broker.requests import create
from tests.unit.broker.world import World, in_world


def led_by(topic_id: bytes, partition: int, leader: int) -> list[Message]:
    """Returns a new broker that leads the partition; its port is its number."""
    endpoint = BrokerEndpoint(name="PLAINTEXT", host="elsewhere", port=leader, security_protocol=0)
    return [
        RegisterBrokerRecord(
            broker_id=leader,
            incarnation_id=bytes((leader,)) * 16,
            broker_epoch=leader,
            end_points=(endpoint,),
            features=(),
            rack=None,
            fenced=False,
        ),
        PartitionChangeRecord(
            topic_id=topic_id, partition_id=partition, replicas=(leader,), isr=(leader,), leader=leader
        ),
    ]


@in_world()
async def test_a_leader_that_hangs_does_not_hold_up_the_others(world: World) -> None:
    topic_id = await create(world.connect(), "t", partitions=2)
    asked: list[int] = []
    given_up: list[int] = []
    refused = asyncio.Event()

    async def hang(host: str, port: int, peer: Peer, tls: object = None) -> NoReturn:
        asked.append(port)
        try:
            await refused.wait()
        except asyncio.CancelledError:
            given_up.append(port)
            raise
        raise ConnectionRefusedError

    world.network.connect = hang  # type: ignore[method-assign]
    runtime = world.broker.controller_runtime
    assert runtime is not None
    moved = (*led_by(topic_id, 0, 2), *led_by(topic_id, 1, 3))
    await runtime.commit(lambda: Planned(records=moved, response=None))
    ending = Ending(producer_id=7, epoch=0, marker=Marker(True, 0), transaction_version=2)
    sending = MarkerSending(
        world.broker.transactions.markers, ending, [TopicPartition("t", 0), TopicPartition("t", 1)]
    )
    sent = asyncio.ensure_future(sending.run_once())
    async with asyncio.timeout(60):
        while len(asked) < 2:
            await asyncio.sleep(0)
    assert (asked, given_up) == ([2, 3], []), "both at once, not one after the other's timeout"
    refused.set()
    assert not await sent, "neither has it"
