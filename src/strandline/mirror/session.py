"""A session of a flow: its clients, what runs beside the copying, and which partitions are copied from where."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition, uuid_text
from strandline.client.admin.groups import CommittedOffset
from strandline.client.admin.topics import NewTopic
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.errors import KafkaError
from strandline.client.producer.producer import Producer
from strandline.client.world import ClientWorld
from strandline.mirror.background import BackgroundTasks, repeat
from strandline.mirror.checkpoints.group_offsets import MirroredGroups
from strandline.mirror.checkpoints.heartbeats import Heartbeats, create_heartbeats_topic
from strandline.mirror.checkpoints.offset_syncs import OffsetSyncs
from strandline.mirror.clients import FlowClients
from strandline.mirror.config.settings import FlowSettings, MirrorConfigError
from strandline.mirror.copying.copier import POLL_SECONDS, CopiedPartition, Copier
from strandline.mirror.copying.membership import Membership
from strandline.mirror.copying.progress import decode_progress, stable_offsets
from strandline.mirror.copying.topics import MirroredTopics
from strandline.mirror.journal.entries import journal_topic
from strandline.mirror.journal.follower import JournalFollower
from strandline.mirror.journal.offset_map import OffsetMap
from strandline.mirror.journal.trimmer import JournalTrimmer
from strandline.mirror.log_reader import records_between
from strandline.mirror.metrics import FlowMetrics
from strandline.mirror.own_topics import create_topic, replication_factor
from strandline.mirror.reports import Reports

EARLIEST: Final = -2
LATEST: Final = -1
# How long offsets of a transaction that another process left open are waited for, before that is ended.
_UNSTABLE_SECONDS: Final = 1.0

# How often the journal's length is looked at.
_TRIM_SECONDS: Final = 5.0
# How often the source's group, which shows the lag, follows.
_LAG_SECONDS: Final = 5.0

logger = logging.getLogger("strandline.mirror")


class FlowSession:
    """The clients of a flow from a start to the next failure."""

    def __init__(
        self,
        settings: FlowSettings,
        instance: str,
        world: ClientWorld,
        reports: Reports,
        metrics: FlowMetrics,
        bytes_per_second: int,
    ) -> None:
        self._settings = settings
        self._world = world
        self._reports = reports
        self._metrics = metrics
        self._bytes_per_second = bytes_per_second
        self._clients = FlowClients(settings, instance, world)
        self._journal_topic = journal_topic(settings.source.alias, settings.target.alias)
        self._background = BackgroundTasks()
        self._at_source: dict[TopicPartition, int] = {}  # the offsets that the group at the source has

    async def start(self, stack: AsyncExitStack) -> None:
        """Connects to both clusters, and joins the group. `stack` closes everything."""
        settings, clients = self._settings, self._clients
        self._source = await stack.enter_async_context(clients.admin(settings.source))
        self._target = await stack.enter_async_context(clients.admin(settings.target))
        await self._check_clusters()
        self._topics = MirroredTopics(settings, self._source, self._target, self._reports)
        await self._create_journal()
        self._follower = JournalFollower(
            await stack.enter_async_context(clients.journal_reader()), self._journal_topic
        )
        emitter = await stack.enter_async_context(clients.emitter(settings.target))
        source_emitter = await stack.enter_async_context(clients.emitter(settings.source))
        self._groups = MirroredGroups(
            settings,
            self._source,
            self._target,
            self._follower.state,
            emitter,
            self._reports,
            self._metrics,
            self._world.clock.wall_ms,
        )
        self._trimmer = JournalTrimmer(
            self._follower,
            self._journal_topic,
            self._target,
            emitter,
            self._journal_needs,
            name=clients.transactional_id,
            records=settings.number("strandline.journal.records"),
        )
        syncs_at_source = settings.offset_syncs_are_at_source
        syncs = OffsetSyncs(settings, source_emitter if syncs_at_source else emitter)
        if settings.flag("emit.offset-syncs.enabled"):
            await syncs.create_topic(self._source if syncs_at_source else self._target)
        writer = await stack.enter_async_context(clients.writer())
        reader = await stack.enter_async_context(clients.reader())
        await writer.init_transactions()
        member = await stack.enter_async_context(clients.member())
        self._member = Membership(member, self._journal_topic, self._revoked)
        self._copier = Copier(
            reader=reader,
            writer=writer,
            member=self._member,
            journal_topic=self._journal_topic,
            reports=self._reports,
            metrics=self._metrics,
            clock=self._world.clock,
            offset_syncs=syncs if settings.flag("emit.offset-syncs.enabled") else None,
            transaction_bytes=settings.number("strandline.transaction.bytes"),
            bytes_per_second=self._bytes_per_second,
        )
        stack.push_async_callback(self._background.close)
        if settings.flag("emit.heartbeats.enabled"):  # first, so that it is among the topics that are found
            await create_heartbeats_topic(settings, self._source)
            await create_heartbeats_topic(settings, self._target)
        await self._refresh_topics()
        await self._start_background(emitter, source_emitter)

    async def _start_background(self, emitter: Producer, source_emitter: Producer) -> None:
        settings, start = self._settings, self._background.start
        start(self._member.run())
        start(self._follower.run())
        if settings.flag("refresh.topics.enabled"):
            seconds = settings.seconds("refresh.topics.interval.seconds")
            start(repeat(seconds, lambda: True, self._refresh_topics, f"{settings.name}: looking for topics"))
        beats = Heartbeats(settings, emitter, source_emitter, self._world.clock.wall_ms)
        self._lead("emit.heartbeats", beats.emit, "heartbeats")
        if settings.flag("emit.checkpoints.enabled"):
            await self._groups.create_topic()
            await self._groups.refresh()
            self._lead("refresh.groups", self._groups.refresh, "looking for groups")
            self._lead("emit.checkpoints", self._groups.emit_checkpoints, "checkpoints")
        start(
            repeat(
                _LAG_SECONDS, self._has_moved, self._commit_at_source, f"{settings.name}: lag at the source"
            )
        )
        start(
            repeat(_TRIM_SECONDS, self._leads, self._trimmer.trim, f"{settings.name}: shortening the journal")
        )
        self._lead("sync.group.offsets", self._groups.sync_offsets, "syncing groups")
        self._lead("sync.topic.configs", self._topics.sync_configs, "syncing settings of topics")
        self._lead("sync.topic.acls", self._topics.sync_acls, "syncing ACLs")

    def _lead(self, key: str, work: Callable[[], Awaitable[None]], what: str) -> None:
        """Has the process that leads the flow do this work, if it is enabled."""
        if self._settings.flag(f"{key}.enabled"):
            seconds = self._settings.seconds(f"{key}.interval.seconds")
            self._background.start(repeat(seconds, self._leads, work, f"{self._settings.name}: {what}"))

    def _leads(self) -> bool:
        is_ready = self._member.is_leader and self._follower.caught_up.is_set()
        return is_ready and not self._follower.state.is_paused

    async def run(self, stopping: asyncio.Event) -> None:
        """Copies until `stopping` is set, or something fails."""
        while not stopping.is_set():
            self._background.raise_failure()
            if not self._follower.caught_up.is_set() or self._follower.state.is_paused:
                await asyncio.sleep(POLL_SECONDS)
                continue
            await self._adopt()
            await self._copier.copy_once()

    # The group at the source, for lag tools

    def _has_moved(self) -> bool:
        return {each.source: each.committed.offset for each in self._copied()} != self._at_source

    async def _commit_at_source(self) -> None:
        """Commits what is copied to the group at the source. Nobody begins there: it shows the lag to other tools."""
        offsets = {each.source: each.committed.offset for each in self._copied()}
        if offsets:
            await self._source.alter_group_offsets(self._settings.group_id, offsets)
        self._at_source = offsets

    # Clusters and topics

    async def _check_clusters(self) -> None:
        """Raises if both aliases lead to one cluster: records would be copied for ever."""
        source = (await self._source.describe_cluster()).cluster_id
        target = (await self._target.describe_cluster()).cluster_id
        if source == target:
            raise MirrorConfigError(
                f"{self._settings.source.alias} and {self._settings.target.alias} are the same cluster ({source}): "
                "check bootstrap.servers"
            )

    async def _create_journal(self) -> None:
        factor = await replication_factor(
            self._settings, self._target, "offset-syncs.topic.replication.factor"
        )
        # The trimmer deletes entries that are not needed: a limit of time could delete ranges that are.
        configs = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
        topic = NewTopic(name=self._journal_topic, partitions=1, replication_factor=factor, configs=configs)
        await create_topic(self._target, topic)

    async def _journal_needs(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Returns the oldest offsets of groups, and the first offsets of the copies, by partition of the source."""
        groups = await self._groups.oldest_offsets()
        copies = {
            TopicPartition(name, partition): TopicPartition(topic.name, partition)
            for name, topic in self._topics.by_target.items()
            for partition in range(len(topic.partitions))
        }
        starts = await self._target.list_offsets(dict.fromkeys(copies, EARLIEST))
        return groups, {source: starts[target].offset for target, source in copies.items()}

    async def _refresh_topics(self) -> None:
        await self._topics.refresh()
        self._member.subscribe(self._topics.by_target)

    # Partitions

    async def _revoked(self, targets: list[TopicPartition]) -> None:
        """Gives partitions back, after the transaction that is under way."""
        async with self._copier.lock:
            gone = set(targets)
            self._copier.remove([each.source for each in self._copied() if each.target in gone])

    def _copied(self) -> list[CopiedPartition]:
        return list(self._copier.partitions.values())

    async def _adopt(self) -> None:
        """Begins to copy partitions that were assigned, and stops copying those whose topic is gone."""
        topics = self._topics.by_target
        assigned = [
            where
            for where in self._member.assigned
            if where.topic in topics and where.partition < len(topics[where.topic].partitions)
        ]
        copied = {each.target: each.source for each in self._copied()}
        if gone := [source for target, source in copied.items() if target not in assigned]:
            self._copier.remove(gone)
        missing = [where for where in assigned if where not in copied]
        if not missing:
            return
        found = await self._stable_offsets(missing)
        starts = await self._starts([where for where in missing if where not in found])
        for target in missing:
            if target not in self._member.assigned:
                continue  # It was revoked meanwhile.
            self._copier.add(self._partition(target, found.get(target), starts.get(target)))

    def _partition(
        self, target: TopicPartition, committed: CommittedOffset | None, start: OffsetAndMetadata | None
    ) -> CopiedPartition:
        topic = self._topics.by_target[target.topic]
        source = TopicPartition(topic.name, target.partition)
        if committed is None:
            assert start is not None, "the start of a partition without progress was looked up"
            return CopiedPartition(source, target, topic.topic_id, start, is_saved=False)
        position, topic_id = decode_progress(committed)
        if topic_id and topic_id != uuid_text(topic.topic_id):
            self._reports.recreated(source, committed.offset)
            begin = OffsetAndMetadata(0)
            return CopiedPartition(source, target, topic.topic_id, begin, is_saved=False, is_recreated=True)
        return CopiedPartition(source, target, topic.topic_id, position)

    async def _stable_offsets(self, targets: list[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """Returns the committed offsets; a transaction that a dead process left open over them is ended first."""
        group_id = self._settings.group_id
        try:
            return await stable_offsets(self._target, group_id, targets, seconds=_UNSTABLE_SECONDS)
        except KafkaError as error:
            if error.code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
                raise
            await self._end_orphans()
            seconds = self._settings.number("strandline.transaction.timeout.ms") / 1000
            return await stable_offsets(self._target, group_id, targets, seconds=seconds + _UNSTABLE_SECONDS)

    async def _end_orphans(self) -> None:
        """Ends open transactions of this flow whose processes are not members any more."""
        group_id = self._settings.group_id
        members = (await self._target.describe_groups([group_id]))[group_id].members
        living = {f"{group_id}-{each.instance_id}" for each in members}
        for each in await self._target.list_transactions(states=["Ongoing"]):
            if each.transactional_id.startswith(f"{group_id}-") and each.transactional_id not in living:
                logger.info("%s: ending the transaction of %s", self._settings.name, each.transactional_id)
                await self._target.fence_producers([each.transactional_id])

    async def _starts(self, targets: list[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns where to begin with partitions for which the group has no offset: after what the journal knows, and
        otherwise where the source's auto.offset.reset says.
        """
        if not targets:
            return {}
        policy = str(self._settings.source.of("consumer").get("auto.offset.reset", "earliest")).lower()
        sources = {
            where: TopicPartition(self._topics.by_target[where.topic].name, where.partition)
            for where in targets
        }
        wanted = dict.fromkeys(sources.values(), LATEST if policy == "latest" else EARLIEST)
        offsets = await self._source.list_offsets(wanted)
        others = await self._with_records([target for target in targets if sources[target] not in self._maps])
        starts = {}
        for target, source in sources.items():
            known = self._maps.get(source)
            if known is not None:  # The group's offsets have expired, the journal has not.
                starts[target] = OffsetAndMetadata(known.source_end)
                continue
            if target in others:
                self._reports.target_not_empty(target, others[target])
            starts[target] = OffsetAndMetadata(offsets[source].offset)
        return starts

    @property
    def _maps(self) -> Mapping[TopicPartition, OffsetMap]:
        return self._follower.state.maps

    async def _with_records(self, targets: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns the ends of those partitions of the target that have committed records: a log with
        nothing but markers of aborted transactions is not among them.
        """
        ends = await self._target.list_offsets(dict.fromkeys(targets, LATEST))
        found = {}
        async with self._clients.target_reader() as consumer:
            for target, end in ends.items():
                if end.offset > 0 and await anext(records_between(consumer, target, 0), None) is not None:
                    found[target] = end.offset
        return found
