"""Replication policies: the name of a topic at the target, and where a topic came from.

They are MirrorMaker 2's: DefaultReplicationPolicy puts the source's alias before the name (`east.orders`),
IdentityReplicationPolicy keeps the name. Internal topics have the names of MirrorMaker 2 in both.
"""

from __future__ import annotations

from typing import Final

HEARTBEATS: Final = "heartbeats"
_CHECKPOINTS_SUFFIX: Final = ".checkpoints.internal"
_OFFSET_SYNCS_PREFIX: Final = "mm2-offset-syncs."


class ReplicationPolicy:
    """DefaultReplicationPolicy: `orders` of the cluster `east` is called `east.orders` elsewhere."""

    # True if the name of a topic says from which cluster it came, so that loops are seen.
    can_track_source = True

    def __init__(self, separator: str = ".") -> None:
        self.separator = separator

    def remote_topic(self, source: str, topic: str) -> str:
        """Returns the name at the target of a topic of the cluster `source`."""
        return f"{source}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Returns the alias of the cluster that a remote topic came from; None if it is no remote topic."""
        source, separator, rest = topic.partition(self.separator)
        return source if separator and source and rest else None

    def upstream_topic(self, topic: str) -> str | None:
        """Returns the name of a remote topic on the cluster that it came from; None if it is no remote topic."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        """Returns the name that a topic has on its first cluster, however many clusters it went through."""
        while (upstream := self.upstream_topic(topic)) is not None:
            topic = upstream
        return topic

    def is_heartbeats_topic(self, topic: str) -> bool:
        return self.original_topic(topic) == HEARTBEATS

    def is_internal_topic(self, topic: str) -> bool:
        """True for topics that are never mirrored."""
        return topic.startswith(("__", ".")) or topic.endswith((".internal", "-internal"))

    def is_cycle(self, topic: str, target: str) -> bool:
        """True if the topic has been on the cluster `target` before."""
        name: str | None = topic
        while name is not None:
            source = self.topic_source(name)
            if source == target:
                return True
            name = self.upstream_topic(name)
        return False

    def checkpoints_topic(self, source: str) -> str:
        return source + _CHECKPOINTS_SUFFIX

    def offset_syncs_topic(self, other: str) -> str:
        """Returns the topic of offset syncs; `other` is the alias of the cluster at the other end of the flow."""
        return f"{_OFFSET_SYNCS_PREFIX}{other}.internal"


class IdentityReplicationPolicy(ReplicationPolicy):
    """IdentityReplicationPolicy: topics keep their names, except heartbeats. It cannot see loops."""

    can_track_source = False

    def remote_topic(self, source: str, topic: str) -> str:
        return super().remote_topic(source, topic) if self.is_heartbeats_topic(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        is_heartbeats = topic.endswith(f"{self.separator}{HEARTBEATS}")
        return super().topic_source(topic) if is_heartbeats else None


POLICIES: Final[dict[str, type[ReplicationPolicy]]] = {
    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy": ReplicationPolicy,
    "org.apache.kafka.connect.mirror.IdentityReplicationPolicy": IdentityReplicationPolicy,
    "default": ReplicationPolicy,
    "identity": IdentityReplicationPolicy,
}
