"""Observers of topics: brokers that follow partitions without being replicas of them, and the bytes that they lack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Admin
    from strandline.client.net.metadata import PartitionInfo

SETTING: Final = "strandline.observers"


def observers_of(value: str | None, racks: Mapping[int, str | None]) -> list[int]:
    """Returns the brokers that the setting names, by their ids or their racks."""
    names = {each.strip() for each in (value or "").split(",") if each.strip()}
    return sorted(node for node, rack in racks.items() if str(node) in names or rack in names)


async def bytes_behind(
    admin: Admin,
    partitions: Mapping[TopicPartition, PartitionInfo],
    observers: Mapping[TopicPartition, list[int]],
) -> dict[TopicPartition, list[tuple[int, int | None]]]:
    """Returns the observers of each partition with the bytes of its log that they lack; None if a broker does not
    respond."""
    from strandline.client.errors import KafkaError

    leaders = {each: partitions[each].leader_id for each in observers}
    nodes = {node for each in observers.values() for node in each} | set(leaders.values())
    sizes: dict[tuple[int, TopicPartition], int] = {}
    for node in sorted(nodes - {-1}):
        try:
            directories = (await admin.describe_log_dirs([node]))[node]
        except KafkaError:
            continue  # a broker that is away: what it has is not known
        for directory in directories:
            sizes |= {(node, where): size for where, size in directory.replicas.items()}
    known = {node for node, _ in sizes}

    def lacking(where: TopicPartition, node: int) -> int | None:
        whole = sizes.get((leaders[where], where))
        return None if whole is None or node not in known else max(whole - sizes.get((node, where), 0), 0)

    return {where: [(node, lacking(where, node)) for node in own] for where, own in observers.items()}
