"""The node's image of the cluster: applies the committed records, and publishes the changes to the broker.

The changes of one batch of records are published together, so that no part sees half of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from strandline.config import DynamicConfigs
from strandline.controller.image import ClusterImage
from strandline.controller.observers import OBSERVERS
from strandline.controller.state import apply_to
from strandline.wire.records.metadata import (
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
)
from strandline.wire.schema import Message

if TYPE_CHECKING:
    from strandline.broker.metadata.controller_runtime import ControllerRuntime


@dataclass(slots=True)
class MetadataDelta:
    """The changes of one publication."""

    removed_topics: list[str] = field(default_factory=list)
    partitions: dict[tuple[str, int], None] = field(default_factory=dict)
    fenced: list[int] = field(default_factory=list)
    has_configs: bool = False
    has_quotas: bool = False

    def __bool__(self) -> bool:
        has_settings = self.has_configs or self.has_quotas
        return bool(self.removed_topics or self.partitions or self.fenced or has_settings)


class MetadataPublisher:
    def __init__(
        self,
        image: ClusterImage,
        configs: DynamicConfigs,
        runtime: ControllerRuntime | None,
        on_delta: Callable[[MetadataDelta], None],
        on_leader: Callable[[], None],
    ) -> None:
        self._image = image
        self._configs = configs
        self._runtime = runtime
        self._on_delta = on_delta
        self._on_leader = on_leader
        self._delta = MetadataDelta()
        self._end_offset = 0

    def committed(self, message: Message, end_offset: int) -> None:
        self._note(message)
        apply_to(self._image, self._configs, message)
        if self._runtime is not None:
            self._runtime.committed(message, end_offset)

    def _note(self, message: Message) -> None:
        match message:
            case RemoveTopicRecord():
                name = self._image.topics_by_id[message.topic_id].name
                self._delta.removed_topics.append(name)
                self._delta.partitions = {key: None for key in self._delta.partitions if key[0] != name}
            case PartitionRecord() | PartitionChangeRecord():
                name = self._image.topics_by_id[message.topic_id].name
                self._delta.partitions[name, message.partition_id] = None
            case BrokerRegistrationChangeRecord(fenced=1):
                self._delta.fenced.append(message.broker_id)
            case ConfigRecord():
                self._delta.has_configs = True
                topic = self._image.topics.get(message.resource_name)
                if message.name == OBSERVERS and topic is not None:
                    self._delta.partitions |= {(topic.name, index): None for index in topic.partitions}
            case ClientQuotaRecord():
                self._delta.has_quotas = True
            case _:
                pass

    def published(self, end_offset: int) -> None:
        self._end_offset = max(self._end_offset, end_offset)
        if self._runtime is not None:
            self._runtime.published(end_offset)
        if self._delta:
            delta, self._delta = self._delta, MetadataDelta()
            self._on_delta(delta)

    def snapshot_loaded(self, records: list[Message], end_offset: int) -> None:
        """Rebuilds the image from a snapshot, with which everything may have changed."""
        # Otherwise later topics would count as removed, and their logs would be deleted.
        assert end_offset >= self._end_offset, "an image never goes back"
        old_topics = list(self._image.topics.values())
        old_configs = list(self._image.configs)
        self._image.clear()
        for record in records:
            self._note_of_snapshot(record)
            apply_to(self._image, self._configs, record)
        # A topic that was created again under its name is another topic.
        self._delta.removed_topics += [
            topic.name for topic in old_topics if topic.topic_id not in self._image.topics_by_id
        ]
        for resource in old_configs:
            if resource not in self._image.configs:
                self._configs.set_overrides(*resource, {})
        self._delta.has_configs = self._delta.has_quotas = True
        if self._runtime is not None:
            self._runtime.snapshot_loaded(records, end_offset)
        self.published(end_offset)

    def _note_of_snapshot(self, record: Message) -> None:
        if isinstance(record, PartitionRecord):
            self._note(record)

    def leads(self, epoch: int) -> None:
        pass  # the controller becomes active when the first record of the epoch is committed

    def resigned(self) -> None:
        if self._runtime is not None:
            self._runtime.resigned()

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        self._on_leader()
