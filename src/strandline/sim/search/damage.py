"""Bits that flip in logs at rest, and a reading of one node's copies that finds them."""

from __future__ import annotations

import asyncio
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.sim.checks.partition import fetch_one
from strandline.sim.disk import SimulatedDisk
from strandline.sim.random import Generator
from strandline.sim.wire_client import Disconnected
from strandline.sim.world import DATA, SimulatedNode, World
from strandline.storage import names
from strandline.wire.api.k01_fetch import PartitionData
from strandline.wire.record_batch import BatchHeader, headers_in

# The fields of a batch that the leader writes and the CRC does not cover. A wrong base offset breaks the order of
# batches; a wrong epoch cannot be noticed.
BASE_OFFSET: Final = range(8)
LEADER_EPOCH: Final = range(12, 16)
_READ_TURNS: Final = 600


def flip_bit(disk: SimulatedDisk, path: str, position: int, bit: int) -> None:
    byte = disk.read(path)[position]
    file = disk.open(path)
    file.write_at(position, (bytes((byte ^ (1 << bit),)),))
    file.sync()
    file.close()


def flip_some_bit(
    disk: SimulatedDisk, paths: list[str], chance: Generator
) -> tuple[str, int, BatchHeader] | None:
    """Flips a bit of a batch in one of these segments, at a place that a CRC or a length covers; returns path, position
    and header of the batch, or None if there is no batch."""
    path = chance.choice(paths)
    batches = list(headers_in(disk.read(path)))
    if not batches:
        return None
    position, header = chance.choice(batches)
    inside = [at for at in range(header.size) if at not in LEADER_EPOCH and at not in BASE_OFFSET]
    flip_bit(disk, path, position + chance.choice(inside), chance.randrange(8))
    return path, position, header


def partitions_on(node: SimulatedNode) -> list[TopicPartition]:
    return [
        TopicPartition(topic, index)
        for topic, found in sorted(node.broker.image.topics.items())
        for index, state in sorted(found.partitions.items())
        if node.node_id in state.replicas
    ]


def segments_of(
    node: SimulatedNode, partitions: list[TopicPartition], *, closed_only: bool = False
) -> list[str]:
    found = []
    for partition in partitions:
        directory = f"{DATA}/{partition}"
        if node.disk.exists(directory):
            mine = [name for name in sorted(node.disk.names(directory)) if name.endswith(names.LOG)]
            found += [f"{directory}/{name}" for name in (mine[:-1] if closed_only else mine)]
    return found


async def read_copies(world: World, node: SimulatedNode, partitions: list[TopicPartition]) -> bool:
    """Returns True if all records of these partitions that are committed now could be read from this node. A refused
    read is tried again: the node may be fetching those records again."""
    return all([await _read_copy(world, node, each) for each in partitions])


async def _read_copy(world: World, node: SimulatedNode, partition: TopicPartition) -> bool:
    offset, end = 0, _high_watermark(world, partition)
    for _ in range(_READ_TURNS):
        try:
            client = await world.connect(node)
            while offset < end:
                offset = _behind(await fetch_one(client, *partition, offset), offset)
            client.close()
            return True
        except (Disconnected, _Refused):
            await asyncio.sleep(0.1)
    return False


class _Refused(Exception):
    """The node refuses to read more there now."""


def _behind(data: PartitionData, offset: int) -> int:
    """Returns the offset after the records that were read."""
    if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and data.log_start_offset > offset:
        return data.log_start_offset
    batches = list(headers_in(data.records or b""))
    if data.error_code != ErrorCode.NONE or not batches:
        raise _Refused
    return batches[-1][1].next_offset


def _high_watermark(world: World, partition: TopicPartition) -> int:
    replicas = [node.broker.replicas.get(*partition) for node in world.nodes.values() if node.is_running]
    return max((replica.high_watermark for replica in replicas if replica is not None), default=0)
