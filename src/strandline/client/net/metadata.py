"""The client's metadata: brokers, topics and leaders. It is a pure cache; `cluster` requests and applies responses.

Rules:
1. A response replaces all that it names. The known leader of a partition is kept if the response has an older leader
   epoch (KIP-320), unless the topic was created again (another topic id).
2. A leader hint (KIP-951, in Produce and Fetch responses) is applied if its epoch is newer than the known one.
3. A topic that a response calls unknown is forgotten, and its error is kept for callers that wait for the topic.
4. A response from another cluster than the first raises WrongClusterError and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, TopicPartition, Uuid
from strandline.base.topics import invalid_topic_name
from strandline.client.errors import InvalidTopicError, KafkaError, WrongClusterError, error_for
from strandline.client.net.connections import Node
from strandline.wire.api.k03_metadata import MetadataResponse, MetadataResponseTopic

NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionInfo:
    """A partition with its leader and replicas."""

    topic: str
    partition: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    """A topic with all of its partitions."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]  # by number, from 0

    @property
    def available(self) -> tuple[int, ...]:
        """The numbers of the partitions that have a leader."""
        return tuple(each.partition for each in self.partitions if each.leader_id != NO_LEADER)


def check_topic_name(name: object) -> None:
    """Raises InvalidTopicError if this cannot be a topic's name."""
    why = invalid_topic_name(name) if isinstance(name, str) else f"a topic's name is text, not {name!r}"
    if why is not None:
        raise InvalidTopicError(None, why)


class Metadata:
    """Brokers and topics by the last responses. `version` counts changes."""

    def __init__(self, expected_cluster_id: str | None = None) -> None:
        self.cluster_id: str | None = expected_cluster_id
        self.controller_id = -1
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, TopicInfo] = {}
        self.topic_errors: dict[str, KafkaError] = {}
        self._names: dict[bytes, str] = {}
        self.version = 0

    def topic(self, name: str) -> TopicInfo | None:
        return self.topics.get(name)

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._names.get(topic_id)

    def partition(self, where: TopicPartition) -> PartitionInfo | None:
        topic = self.topics.get(where.topic)
        if topic is None or not 0 <= where.partition < len(topic.partitions):
            return None
        return topic.partitions[where.partition]

    def leader(self, where: TopicPartition) -> Node | None:
        """Returns the node that leads a partition, if it is known and has a leader."""
        info = self.partition(where)
        return None if info is None else self.nodes.get(info.leader_id)

    def apply(self, response: MetadataResponse, *, is_everything: bool = False) -> None:
        """Applies a response. `is_everything` says that all topics were requested: those that are missing are gone."""
        if self.cluster_id is not None and response.cluster_id not in (None, self.cluster_id):
            raise WrongClusterError(
                None, f"the client belongs to cluster {self.cluster_id}, the broker to {response.cluster_id}"
            )
        self.cluster_id = response.cluster_id or self.cluster_id
        self.controller_id = response.controller_id
        self.nodes = {
            each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers
        }
        if is_everything:
            named = {each.name for each in response.topics}
            for name in [name for name in self.topics if name not in named]:
                self.forget(name)
        for topic in response.topics:
            self._apply_topic(topic)
        self.version += 1

    def forget(self, name: str) -> None:
        known = self.topics.pop(name, None)
        self.topic_errors.pop(name, None)
        if known is not None:
            self._names.pop(known.topic_id, None)

    def apply_leader_hint(
        self, where: TopicPartition, leader_id: int, leader_epoch: int, endpoint: Node | None = None
    ) -> bool:
        """Applies a leader that a refusal named (KIP-951); returns True if it is a new one."""
        topic = self.topics.get(where.topic)
        known = self.partition(where)
        if topic is None or known is None or leader_id < 0 or leader_epoch <= known.leader_epoch:
            return False
        if endpoint is not None:
            self.nodes[leader_id] = endpoint
        if leader_id not in self.nodes:
            return False
        partitions = list(topic.partitions)
        partitions[where.partition] = replace(known, leader_id=leader_id, leader_epoch=leader_epoch)
        self.topics[where.topic] = replace(topic, partitions=tuple(partitions))
        self.version += 1
        return True

    def _apply_topic(self, topic: MetadataResponseTopic) -> None:
        name = topic.name if topic.name is not None else self._names.get(topic.topic_id)
        if name is None:
            return
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            self.forget(name)
            self.topic_errors[name] = error_for(topic.error_code, f"topic {name}")
            return
        if not topic.partitions:
            self.topic_errors[name] = error_for(
                topic.error_code or ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name} is being made"
            )
            return
        known = self.topics.get(name)
        is_same = known is not None and topic.topic_id in (known.topic_id, ZERO_UUID)
        before = known.partitions if known is not None and is_same else ()
        partitions: dict[int, PartitionInfo] = {}
        for each in topic.partitions:
            info = PartitionInfo(
                topic=name,
                partition=each.partition_index,
                leader_id=each.leader_id,
                leader_epoch=each.leader_epoch,
                replicas=tuple(each.replica_nodes),
                in_sync=tuple(each.isr_nodes),
                offline=tuple(each.offline_replicas),
            )
            if each.partition_index < len(before):
                old = before[each.partition_index]
                info = old if -1 < each.leader_epoch < old.leader_epoch else info
            partitions[each.partition_index] = info
        if known is not None and not is_same:
            self._names.pop(known.topic_id, None)
        self.topic_errors.pop(name, None)
        self.topics[name] = TopicInfo(
            name=name,
            topic_id=Uuid(topic.topic_id),
            is_internal=topic.is_internal,
            partitions=tuple(partitions[number] for number in sorted(partitions)),
        )
        if topic.topic_id != ZERO_UUID:
            self._names[topic.topic_id] = name
