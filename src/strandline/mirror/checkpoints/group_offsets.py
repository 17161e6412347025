"""Consumer groups of a flow: checkpoints, and the groups' offsets at the target.

Rules:
1. A checkpoint has the group's committed offset at the source and its exact translation (`offset_map`). It is written
   when it has changed, and only by a process that has read the journal to its end: so no restart makes a translation
   worse. Its timestamp is from before the offset was looked up: a failover says which commits are not in it.
2. Groups that are deleted at the source keep their last checkpoint; those that come are found by the next `refresh`.
3. The offsets of a group at the target follow its checkpoints while the group has no members there, and only forward:
   a group that reads at the target knows better. That it has members is told once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.admin.groups import CommittedOffset
from strandline.client.admin.topics import NewTopic
from strandline.client.errors import KafkaError
from strandline.client.producer.producer import Producer
from strandline.mirror import reports
from strandline.mirror.checkpoints.mm2_records import Checkpoint
from strandline.mirror.config.settings import FlowSettings
from strandline.mirror.journal.entries import JournalState
from strandline.mirror.metrics import FlowMetrics
from strandline.mirror.own_topics import COMPACTED, create_topic, replication_factor
from strandline.mirror.reports import Reports

IDLE_STATES: Final = ("Empty", "Dead")
_CONSUMER: Final = "consumer"
_PROTOCOLS: Final = (_CONSUMER, "")

logger = logging.getLogger("strandline.mirror")


def checkpoints_of(
    flow: FlowSettings,
    journal: JournalState,
    group: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
) -> dict[TopicPartition, Checkpoint]:
    """Returns the checkpoints of a group's offsets at the source, by partition of the target. Offsets of topics that
    are not mirrored, or of which nothing is copied yet, have none.
    """
    found = {}
    for source, committed in sorted(offsets.items()):
        translated = journal.to_target(source, committed.offset) if flow.is_mirrored(source.topic) else None
        if translated is None:
            continue
        target = TopicPartition(flow.target_topic(source.topic), source.partition)
        found[target] = Checkpoint(group, *target, committed.offset, translated, committed.metadata)
    return found


class MirroredGroups:
    """Writes checkpoints of the source's groups, and has groups at the target follow."""

    def __init__(
        self,
        flow: FlowSettings,
        source: Admin,
        target: Admin,
        journal: JournalState,
        emitter: Producer,
        reports: Reports,
        metrics: FlowMetrics,
        wall_ms: Callable[[], int],
    ) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._journal = journal
        self._emitter = emitter
        self._reports = reports
        self._metrics = metrics
        self._wall_ms = wall_ms
        self._topic = flow.policy.checkpoints_topic(flow.source.alias)
        self._known: list[str] = []
        self._written: dict[tuple[str, TopicPartition], Checkpoint] = {}

    async def create_topic(self) -> None:
        factor = await replication_factor(self._flow, self._target, "checkpoints.topic.replication.factor")
        topic = NewTopic(name=self._topic, partitions=1, replication_factor=factor, configs=COMPACTED)
        await create_topic(self._target, topic)

    async def refresh(self) -> None:
        """Looks for groups at the source; checkpoints are of those that were found last."""
        self._known = await self._groups(self._source)

    async def emit_checkpoints(self) -> None:
        """Writes a checkpoint for each offset that has moved, with the time before which every commit is in it."""
        for group in self._known:
            time_ms = self._wall_ms()
            offsets = await self._source.list_group_offsets(group)
            for where, checkpoint in checkpoints_of(self._flow, self._journal, group, offsets).items():
                if self._written.get((group, where)) == checkpoint:
                    continue
                key, value = checkpoint.encode()
                await self._emitter.send_and_wait(self._topic, value, key, partition=0, timestamp_ms=time_ms)
                self._written[group, where] = checkpoint
                self._metrics.checkpoint_count += 1

    async def sync_offsets(self) -> None:
        """Commits translated offsets for groups that have no members at the target."""
        by_group: dict[str, dict[TopicPartition, Checkpoint]] = {}
        for (group, where), checkpoint in self._written.items():
            by_group.setdefault(group, {})[where] = checkpoint
        states = {each.group_id: each.state for each in await self._target.list_groups()}
        for group, checkpoints in by_group.items():
            if states.get(group, "Dead") not in IDLE_STATES:
                text = (
                    "the group has members at the target: its offsets there are its own and are not changed"
                )
                self._reports.add_once(reports.GROUP_ACTIVE, group, text)
                continue
            self._reports.clear(reports.GROUP_ACTIVE, group)
            await self._sync_group(group, checkpoints)

    async def _sync_group(self, group: str, checkpoints: Mapping[TopicPartition, Checkpoint]) -> None:
        committed = await self._target.list_group_offsets(group)
        behind = {
            where: CommittedOffset(offset=each.target_offset, metadata=each.metadata)
            for where, each in checkpoints.items()
            if where not in committed or committed[where].offset < each.target_offset
        }
        if not behind:
            return
        try:
            await self._target.alter_group_offsets(group, behind)
        except KafkaError as error:
            # A member may have come between the two requests; the next round sees it.
            logger.warning("%s: offsets of group %s were not committed: %s", self._flow.name, group, error)

    async def oldest_offsets(self) -> dict[TopicPartition, int]:
        """Returns the oldest source offset that any group has, by partition; offsets at the target are translated."""
        oldest: dict[TopicPartition, int] = {}

        def note(where: TopicPartition, offset: int) -> None:
            oldest[where] = min(offset, oldest.get(where, offset))

        for group in await self._groups(self._source):
            for where, committed in (await self._source.list_group_offsets(group)).items():
                note(where, committed.offset)
        sources = {
            TopicPartition(self._flow.target_topic(where.topic), where.partition): where
            for where in self._journal.maps
        }
        for group in await self._groups(self._target):
            for target, committed in (await self._target.list_group_offsets(group)).items():
                source = sources.get(target)
                offset = None if source is None else self._journal.maps[source].to_source(committed.offset)
                if source is not None and offset is not None:
                    note(source, offset)
        return oldest

    async def _groups(self, admin: Admin) -> list[str]:
        return [
            each.group_id
            for each in await admin.list_groups()
            if each.protocol_type in _PROTOCOLS and self._flow.is_mirrored_group(each.group_id)
        ]
