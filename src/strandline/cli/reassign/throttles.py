"""Replication throttles of a reassignment (KIP-73). They are set only for its replicas, and removed at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Admin

_RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
# Stands for every replica of a topic.
_ALL: Final = "*"
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
    before = await _throttled(admin, leaders)
    changes: dict[ConfigResource, list[ConfigChange]] = {
        ConfigResource.broker(node): [ConfigChange(name=key, value=str(bytes_per_s)) for key in _RATES]
        for node in sorted(nodes)
    }
    for topic in sorted(leaders):
        # Throttled replicas of another reassignment of the topic stay throttled.
        both = [
            [*kept, *(each for each in own if each not in kept)]
            for kept, own in zip(before[topic], (leaders[topic], followers[topic]), strict=True)
        ]
        changes[ConfigResource.topic(topic)] = [
            ConfigChange(name=key, value=",".join(entries))
            for key, entries in zip(_REPLICAS, both, strict=True)
        ]
    if changes:
        await admin.alter_configs(changes)


async def remove_throttles(admin: Admin, partitions: Iterable[TopicPartition]) -> None:
    """Removes the throttles of these partitions. Throttles of other partitions stay, and so do the rates of brokers
    that have such partitions, because another reassignment may be in progress."""
    from strandline.client.admin.configs import ConfigChange, ConfigResource, Operation

    own: dict[str, set[str]] = {}
    for each in partitions:
        own.setdefault(each.topic, set()).add(str(each.partition))
    throttled = await _throttled(admin, await admin.list_topics(include_internal=True))
    freed: set[str] = set()
    used: set[str] = set()
    kept_of: dict[str, list[list[str]]] = {}
    for topic, lists in throttled.items():
        kept = [[each for each in entries if not _is_of(each, own.get(topic, set()))] for entries in lists]
        freed |= {_node(each) for entries in lists for each in entries if _is_of(each, own.get(topic, set()))}
        used |= {_node(each) for entries in kept for each in entries}
        if kept != lists:
            kept_of[topic] = kept
    nodes = [] if _ALL in used else sorted(freed - used)
    rates = {
        ConfigResource.broker(int(node)): [
            ConfigChange(name=key, operation=Operation.DELETE) for key in _RATES
        ]
        for node in nodes
    }
    if rates:
        await admin.alter_configs(rates)
    # The lists are removed last: if removing the rates fails, another `verify` finds them by the lists.
    lists_of_topics = {
        ConfigResource.topic(topic): [
            ConfigChange(name=key, value=",".join(entries))
            if entries
            else ConfigChange(name=key, operation=Operation.DELETE)
            for key, entries in zip(_REPLICAS, kept, strict=True)
        ]
        for topic, kept in sorted(kept_of.items())
    }
    if lists_of_topics:
        await admin.alter_configs(lists_of_topics)


async def _throttled(admin: Admin, topics: Iterable[str]) -> dict[str, list[list[str]]]:
    """Returns the throttled replicas of topics as PARTITION:BROKER, first those of leaders, then those of followers."""
    from strandline.client.admin.configs import ConfigResource

    names = sorted(topics)
    if not names:
        return {}
    found = await admin.describe_configs(
        [ConfigResource.topic(each) for each in names], names=list(_REPLICAS)
    )
    return {
        resource.name: [
            [each for each in (entries[key].value or "").split(",") if each] if key in entries else []
            for key in _REPLICAS
        ]
        for resource, entries in found.items()
    }


def _is_of(entry: str, numbers: set[str]) -> bool:
    """True for a replica of one of these partitions; False for `*`, which was set by hand."""
    return entry.partition(":")[0] in numbers


def _node(entry: str) -> str:
    return entry.partition(":")[2] or _ALL
