"""Offset syncs as MirrorMaker 2 writes them: the place of the last record of each partition after a transaction.

Our own translation does not use them: it has the journal.
"""

from __future__ import annotations

from collections.abc import Iterable

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.admin.topics import NewTopic
from strandline.client.producer.producer import Producer
from strandline.mirror.checkpoints.mm2_records import OffsetSync
from strandline.mirror.config.settings import FlowSettings
from strandline.mirror.journal.offset_map import CopiedRange
from strandline.mirror.own_topics import COMPACTED, create_topic, replication_factor


class OffsetSyncs:
    """Writes the place of a partition's last record, each time that it has moved by offset.lag.max offsets."""

    def __init__(self, flow: FlowSettings, producer: Producer) -> None:
        self._producer = producer
        self._lag_max = flow.number("offset.lag.max")
        self._written: dict[TopicPartition, CopiedRange] = {}
        self._flow = flow
        other = flow.target if flow.offset_syncs_are_at_source else flow.source
        self._topic = flow.policy.offset_syncs_topic(other.alias)

    async def create_topic(self, admin: Admin) -> None:
        """`admin` is of the cluster that offset-syncs.topic.location names."""
        factor = await replication_factor(self._flow, admin, "offset-syncs.topic.replication.factor")
        topic = NewTopic(name=self._topic, partitions=1, replication_factor=factor, configs=COMPACTED)
        await create_topic(admin, topic)

    async def write(self, copied: Iterable[tuple[TopicPartition, CopiedRange]]) -> None:
        for where, each in dict(copied).items():
            known = self._written.get(where)
            if known is not None and 0 <= each.source_end - known.source_end < self._lag_max:
                continue
            self._written[where] = each
            topic, partition = where
            key, value = OffsetSync(topic, partition, each.source_end - 1, each.target_end - 1).encode()
            await self._producer.send(self._topic, value, key, partition=0)
