"""A look at a flow from outside of its processes, and orders to them: everything goes through the target's topics."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.admin.groups import CommittedOffset, MemberDescription
from strandline.client.errors import KafkaError, UnknownTopicError
from strandline.client.producer.producer import Producer
from strandline.client.world import ClientWorld, real_world
from strandline.mirror.clients import FlowClients
from strandline.mirror.config.settings import FlowSettings, MirrorConfigError
from strandline.mirror.copying.progress import stable_offsets
from strandline.mirror.journal.entries import CONTROL, JournalState, encode_control, journal_topic
from strandline.mirror.journal.follower import JournalFollower

LATEST: Final = -1
# A person waits; and often enough the source is gone.
_API_TIMEOUT_MS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """How far a partition is copied. `source_end` and `lag` are None while the source cannot be reached, and where it
    does not have the topic any more."""

    source: TopicPartition
    target: TopicPartition
    copied_to: int  # the offset of the source that is copied next
    source_end: int | None
    target_end: int

    @property
    def lag(self) -> int | None:
        return None if self.source_end is None else max(0, self.source_end - self.copied_to)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """A flow as its target shows it. `source_error` says why the source was not asked."""

    flow: str
    journal: JournalState
    members: tuple[MemberDescription, ...]
    partitions: tuple[PartitionStatus, ...]
    source_error: str | None


async def topic_names(admin: Admin) -> frozenset[str]:
    """Returns the topics of a cluster."""
    return frozenset(each.name for each in await admin.describe_all_topics())


class MirrorControl:
    """The clients for looking at one flow, whether its processes run or not."""

    def __init__(self, flow: FlowSettings, world: ClientWorld | None = None) -> None:
        self.flow = flow
        self.world = world or real_world()
        self.clients = FlowClients(flow, "control", self.world, api_timeout_ms=_API_TIMEOUT_MS)
        self._owns_world = world is None
        self._stack = AsyncExitStack()
        self.journal_topic = journal_topic(flow.source.alias, flow.target.alias)

    async def __aenter__(self) -> Self:
        self.target: Admin = await self._stack.enter_async_context(self.clients.admin(self.flow.target))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()
        if self._owns_world:
            self.world.close()

    async def journal(self) -> JournalState:
        """Returns the state of the flow's journal now."""
        try:
            await self.target.describe_topics([self.journal_topic])
        except UnknownTopicError as error:
            raise MirrorConfigError(
                f"{self.flow.name} has never run: {self.flow.target.alias} has no topic {self.journal_topic}"
            ) from error
        async with self.clients.journal_reader() as consumer:
            follower = JournalFollower(consumer, self.journal_topic)
            await follower.read_to_end()
            return follower.state

    async def write(self, key: bytes, value: bytes) -> None:
        """Writes an entry of the journal."""
        producer: Producer
        async with self.clients.emitter(self.flow.target) as producer:
            await producer.send_and_wait(self.journal_topic, value, key, partition=0)

    async def set_paused(self, paused: bool, reason: str) -> None:
        entry = encode_control(paused=paused, reason=reason, time_ms=self.world.clock.wall_ms())
        await self.write(CONTROL, entry)

    async def progress(self) -> dict[TopicPartition, CommittedOffset]:
        """Returns the committed offsets of the flow, by partition of the target."""
        return await stable_offsets(self.target, self.flow.group_id, seconds=_API_TIMEOUT_MS / 1000)

    async def status(self) -> FlowStatus:
        """Returns the flow's state, with the ends of both logs."""
        journal = await self.journal()
        progress = await self.progress()
        groups = await self.target.describe_groups([self.flow.group_id])
        target_ends = await self.target.list_offsets(dict.fromkeys(progress, LATEST))
        sources = self.sources_of(progress, journal)
        source_ends, source_error = await self._source_ends(list(sources.values()))
        partitions = tuple(
            PartitionStatus(
                source=sources[target],
                target=target,
                copied_to=committed.offset,
                source_end=source_ends.get(sources[target]),
                target_end=target_ends[target].offset,
            )
            for target, committed in sorted(progress.items())
            if target in sources
        )
        return FlowStatus(
            flow=self.flow.name,
            journal=journal,
            members=groups[self.flow.group_id].members,
            partitions=partitions,
            source_error=source_error,
        )

    def sources_of(
        self, progress: dict[TopicPartition, CommittedOffset], journal: JournalState
    ) -> dict[TopicPartition, TopicPartition]:
        """Returns the partitions of the source by those of the target."""
        known = {
            TopicPartition(self.flow.target_topic(source.topic), source.partition): source
            for source in journal.maps
        }
        for target in progress:
            if target not in known:
                topic = self.flow.policy.upstream_topic(target.topic) or target.topic
                known[target] = TopicPartition(topic, target.partition)
        return known

    async def _source_ends(
        self, sources: list[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], str | None]:
        try:
            async with self.clients.admin(self.flow.source) as admin:
                present = await topic_names(admin)
                wanted = dict.fromkeys((each for each in sources if each.topic in present), LATEST)
                found = await admin.list_offsets(wanted, is_read_committed=True)
        except KafkaError as error:
            return {}, str(error)
        return {where: each.offset for where, each in found.items()}, None
