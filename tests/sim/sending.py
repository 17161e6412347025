"""Producers of the client in the simulated world, and the log that they leave."""

from __future__ import annotations

import asyncio
from typing import Any

from strandline.client.errors import KafkaError
from strandline.client.producer.batch import RecordMetadata, RecordPromise
from strandline.client.producer.producer import Producer
from strandline.sim.checks.partition import check_offsets, read_partition
from strandline.sim.client_world import client_world
from strandline.sim.world import PORT, SimulatedNode, World

PARTITIONS = 2


def producer_for(world: World, node: SimulatedNode, **settings: Any) -> Producer:
    given = {
        "bootstrap.servers": f"{node.host}:{PORT}",
        "linger.ms": 2,
        "batch.size": 600,
        "max.block.ms": 300_000,
    }
    return Producer({**given, **settings}, world=client_world(world))


async def send_many(
    world: World, producer: Producer, count: int, size: int = 50
) -> list[tuple[bytes, int, RecordPromise]]:
    """Sends numbered records to both partitions, with pauses; returns each with its value and partition."""
    chance = world.generator("sends")
    sent = []
    for number in range(count):
        partition = number % PARTITIONS
        value = b"%06d|" % number + b"x" * chance.randrange(size)
        sent.append((value, partition, await producer.send("t", value, partition=partition)))
        if chance.random() < 0.2:
            await asyncio.sleep(chance.random() * 0.05)
    return sent


async def outcomes(sent: list[tuple[bytes, int, RecordPromise]]) -> list[RecordMetadata | KafkaError]:
    found: list[RecordMetadata | KafkaError] = []
    for _, _, promise in sent:
        try:
            found.append(await promise)
        except KafkaError as error:
            found.append(error)
    return found


async def check_log(
    world: World,
    node: SimulatedNode,
    sent: list[tuple[bytes, int, RecordPromise]],
    ended: list[RecordMetadata | KafkaError],
) -> None:
    """Checks that acknowledged records are at their offsets, that none is there twice, and that each partition is in
    order."""
    client = await world.connect(node)
    for partition in range(PARTITIONS):
        read = await read_partition(client, "t", partition)
        check_offsets(read)
        values = [record.value for record in read.records]
        assert len(set(values)) == len(values), "a record is in the log twice"
        assert values == sorted(values, key=lambda value: value or b""), (
            "records are not in the order of their sends"
        )
        place = {record.value: record.offset for record in read.records}
        for (value, where, _), outcome in zip(sent, ended, strict=True):
            if where == partition and isinstance(outcome, RecordMetadata):
                assert value in place, "an acknowledged record is not there"
                assert outcome.offset in (-1, place[value])
