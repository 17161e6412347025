"""The settings of a topic and its cluster as a live cluster tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from strandline.client.admin.configs import ConfigEntry, ConfigResource, ResourceType
from strandline.config.presets import REPLICATION_FACTOR
from strandline.lab.check.settings import CheckedSettings

if TYPE_CHECKING:
    from strandline.client import Admin


async def read_live(
    admin: Admin, topic: str, producer: Mapping[str, str], consumer: Mapping[str, str]
) -> CheckedSettings:
    """Asks the cluster about the topic and its first broker; the settings of clients are those that were given.

    Raises KafkaError if there is no such topic, or if the cluster does not tell.
    """
    described = (await admin.describe_topics([topic]))[topic]
    nodes = (await admin.describe_cluster()).nodes
    broker = ConfigResource(ResourceType.BROKER, str(min(node.node_id for node in nodes)))
    configs = await admin.describe_configs([ConfigResource.topic(topic), broker])
    factors = {len(partition.replicas) for partition in described.partitions}
    notes = [f"topic {topic} of a cluster with {len(nodes)} brokers, by their own word"]
    if len(factors) > 1:
        notes.append(f"its partitions have {min(factors)} to {max(factors)} replicas: the fewest are played")
    racks = tuple(node.rack or "" for node in sorted(nodes, key=lambda node: node.node_id))
    settings = CheckedSettings(
        producer=producer,
        consumer=consumer,
        topic={**_set(configs[ConfigResource.topic(topic)]), REPLICATION_FACTOR: str(min(factors))},
        cluster=_set(configs[broker]),
        brokers=len(nodes),
        racks=racks if all(racks) else (),
        notes=tuple(notes),
    )
    return settings.of_cluster_only_what_is_played()


def _set(entries: Mapping[str, ConfigEntry]) -> dict[str, str]:
    """Returns the settings that somebody has set."""
    return {
        entry.name: entry.value
        for entry in entries.values()
        if not entry.is_default and entry.value is not None
    }
