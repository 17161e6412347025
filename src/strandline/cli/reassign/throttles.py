"""Replication throttles of a reassignment (KIP-73): set for its replicas alone, and taken away at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Admin

_RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_REPLICAS: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


async def set_throttles(
    admin: Admin,
    bytes_per_s: int,
    current: Mapping[TopicPartition, Iterable[int]],
    wanted: Mapping[TopicPartition, Iterable[int]],
) -> None:
    from strandline.client.admin.configs import ConfigChange, ConfigResource

    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    nodes: set[int] = set()
    for each, targets in wanted.items():
        old, new = list(current[each]), [node for node in targets if node not in current[each]]
        if not new:
            continue
        nodes.update(old, new)
        leaders.setdefault(each.topic, []).extend(f"{each.partition}:{node}" for node in old)
        followers.setdefault(each.topic, []).extend(f"{each.partition}:{node}" for node in new)
    changes: dict[ConfigResource, list[ConfigChange]] = {
        ConfigResource.broker(node): [ConfigChange(name=key, value=str(bytes_per_s)) for key in _RATES]
        for node in sorted(nodes)
    }
    for topic in sorted(leaders):
        changes[ConfigResource.topic(topic)] = [
            ConfigChange(name=_REPLICAS[0], value=",".join(leaders[topic])),
            ConfigChange(name=_REPLICAS[1], value=",".join(followers[topic])),
        ]
    if changes:
        await admin.alter_configs(changes)


async def remove_throttles(admin: Admin, topics: Iterable[str]) -> None:
    """Takes the throttles of these topics and of all brokers away."""
    from strandline.client.admin.configs import ConfigChange, ConfigResource, Operation

    changes = {
        ConfigResource.broker(node.node_id): [
            ConfigChange(name=key, operation=Operation.DELETE) for key in _RATES
        ]
        for node in admin.brokers()
    }
    for topic in sorted(topics):
        changes[ConfigResource.topic(topic)] = [
            ConfigChange(name=key, operation=Operation.DELETE) for key in _REPLICAS
        ]
    await admin.alter_configs(changes)
