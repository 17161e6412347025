"""Failback: the old source gets what the target took since the failover, and the flow goes on.

Steps:
1. Both ends are compared with the proof of the failover: the records that the old source took on its own, which never
   arrived, and those that the target took since then.
2. If one partition has both, nothing is done unless that is accepted: the order of two logs cannot be told afterwards.
3. Accepted records of the old source are copied forward first, so that both ends have them.
4. The records that the target took are copied back, and nothing else: copies that came from the source stay there.
5. Groups go back with translated offsets, if they have no members at the source.
6. The flow's progress moves after the records that came back, and it is resumed.

Every copy is exactly once and goes on where it stopped, if failback is called again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.admin.groups import CommittedOffset
from strandline.client.admin.topics import NewTopic
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.mirror.checkpoints.group_offsets import IDLE_STATES
from strandline.mirror.clients import FlowClients
from strandline.mirror.config.settings import FlowSettings, MirrorConfigError
from strandline.mirror.copying.copier import CopiedPartition, Copier, GroupName
from strandline.mirror.copying.progress import decode_progress, encode_progress, stable_offsets
from strandline.mirror.journal.entries import FAILED_BACK, RANGES, JournalState, encode_ranges
from strandline.mirror.journal.follower import JournalFollower
from strandline.mirror.journal.offset_map import CopiedRange
from strandline.mirror.log_reader import records_between
from strandline.mirror.metrics import FlowMetrics
from strandline.mirror.operations.control import LATEST, MirrorControl, topic_names
from strandline.mirror.operations.failover import FailoverProof
from strandline.mirror.own_topics import create_topic, replication_factor
from strandline.mirror.reports import Reports

_INSTANCE = "failback"
# How much longer than its session timeout a process that has ended may be a member.
_SESSION_MARGIN_SECONDS: Final = 2.0
_MEMBERS_PAUSE_SECONDS: Final = 0.5


@dataclass(slots=True, kw_only=True)
class FailbackPartition:
    """A partition with the records that each end took on its own since the failover."""

    source: TopicPartition
    target: TopicPartition
    copied_to: int  # of the source, at the failover
    target_end: int  # at the failover
    source_own: tuple[ConsumerRecord, ...] = ()
    target_own: tuple[ConsumerRecord, ...] = ()

    @property
    def is_divergent(self) -> bool:
        return bool(self.source_own and self.target_own)


async def plan_failback(control: MirrorControl) -> list[FailbackPartition]:
    """Returns the partitions of the failover, with the records that each end took since then. Changes nothing."""
    journal = await control.journal()
    if journal.failover is None:
        raise MirrorConfigError(f"{control.flow.name} has not failed over: there is nothing to take back")
    proof = FailoverProof.decode(journal.failover)
    partitions = [
        FailbackPartition(
            source=TopicPartition(each.source_topic, each.partition),
            target=TopicPartition(each.target_topic, each.partition),
            copied_to=each.copied_to,
            target_end=each.target_end,
        )
        for each in proof.partitions
        if not control.flow.policy.is_heartbeats_topic(each.source_topic)
    ]
    await _check_topics(control, partitions)
    async with control.clients.reader() as at_source, control.clients.target_reader() as at_target:
        for each in partitions:
            own = [record async for record in records_between(at_source, each.source, each.copied_to)]
            each.source_own = tuple(own)
            own = [record async for record in records_between(at_target, each.target, each.target_end)]
            each.target_own = tuple(own)
    return partitions


async def _check_topics(control: MirrorControl, partitions: list[FailbackPartition]) -> None:
    """Raises if the old source does not have a topic any more: then there is nothing that it could get the rest of."""
    source, target = control.flow.source.alias, control.flow.target.alias
    async with control.clients.admin(control.flow.source) as admin:
        present = await topic_names(admin)
    if gone := sorted({each.source.topic for each in partitions} - present):
        raise MirrorConfigError(
            f"{source} has no topic {', '.join(gone)}: failback completes the old source's own data. To fill an empty "
            f"cluster, mirror {target}->{source}"
        )


async def fail_back(control: MirrorControl, partitions: list[FailbackPartition]) -> dict[str, int]:
    """Copies what is missing at each end and resumes the flow; returns the number of groups that went back, and of
    records copied each way."""
    await _check_stopped(control)
    forward = await _copy_forward(control, [each for each in partitions if each.source_own])
    back, journal = await _copy_back(control, partitions)
    async with control.clients.admin(control.flow.source) as source:
        groups = await _move_groups_back(control, source, journal)
        await _skip_returned(control, source, partitions)
    await control.write(RANGES, encode_ranges(_inverted(partitions, journal)))
    await control.write(FAILED_BACK, b"{}")
    await control.set_paused(False, "failback")
    return {"forward": forward, "back": back, "groups": groups}


async def _check_stopped(control: MirrorControl) -> None:
    """Raises if a process of the flow still runs: it would not see that its progress moves. One that has ended is a
    member until its session times out, and is waited for."""
    group_id, clock = control.flow.group_id, control.world.clock
    deadline = clock.monotonic() + control.clients.session_timeout_seconds + _SESSION_MARGIN_SECONDS
    while members := (await control.target.describe_groups([group_id]))[group_id].members:
        if clock.monotonic() > deadline:
            names = ", ".join(f"{each.instance_id} at {each.host}" for each in members)
            raise MirrorConfigError(f"stop the processes of {control.flow.name} first: {names}")
        await asyncio.sleep(_MEMBERS_PAUSE_SECONDS)


def _inverted(
    partitions: list[FailbackPartition], returned: JournalState
) -> list[tuple[TopicPartition, CopiedRange]]:
    """Returns the places of records that came back, as the flow would have copied them."""
    return [
        (each.source, CopiedRange(found.target, found.source, found.length))
        for each in partitions
        if each.target in returned.maps
        for found in returned.maps[each.target].ranges
        if found.source >= each.target_end
    ]


async def _copy_forward(control: MirrorControl, partitions: list[FailbackPartition]) -> int:
    """Copies the old source's own records to the target, as the flow itself would."""
    if not partitions:
        return 0
    flow = control.flow
    progress = await control.progress()
    starts = {each.source: decode_progress(progress[each.target])[0] for each in partitions}
    ends = {each.source: each.source_own[-1].offset + 1 for each in partitions}
    targets = {each.source: each.target for each in partitions}
    return await _copy(control, flow, control.journal_topic, targets, starts, ends)


async def _copy_back(control: MirrorControl, partitions: list[FailbackPartition]) -> tuple[int, JournalState]:
    """Copies the target's own records to the source; returns their number and where they went."""
    flow = control.flow
    reverse = replace(flow, source=flow.target, target=flow.source, suffix=".failback")
    topic = f"strandline-mirror.{reverse.source.alias}.{reverse.target.alias}.failback.internal"
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(control.clients.admin(flow.source))
        factor = await replication_factor(reverse, source, "offset-syncs.topic.replication.factor")
        configs = {"retention.ms": "-1", "retention.bytes": "-1"}
        await create_topic(
            source, NewTopic(name=topic, partitions=1, replication_factor=factor, configs=configs)
        )
        copied = await stable_offsets(source, reverse.group_id, seconds=20.0)
        own = [each for each in partitions if each.target_own]
        starts = {}
        for each in own:
            before = copied[each.source].offset if each.source in copied else 0
            starts[each.target] = OffsetAndMetadata(max(before, each.target_end))
        ends = {each.target: each.target_own[-1].offset + 1 for each in own}
        count = 0
        if own:
            targets = {each.target: each.source for each in own}
            count = await _copy(control, reverse, topic, targets, starts, ends)
        clients = FlowClients(reverse, _INSTANCE, control.world)
        follower = JournalFollower(await stack.enter_async_context(clients.journal_reader()), topic)
        await follower.read_to_end()
        return count, follower.state


async def _copy(
    control: MirrorControl,
    flow: FlowSettings,
    journal_topic: str,
    targets: Mapping[TopicPartition, TopicPartition],
    starts: Mapping[TopicPartition, OffsetAndMetadata],
    ends: Mapping[TopicPartition, int],
) -> int:
    """Copies ranges of partitions once, in transactions; returns the number of records."""
    clients = FlowClients(flow, _INSTANCE, control.world)
    clock = control.world.clock
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(clients.admin(flow.source))
        described = await admin.describe_topics(sorted({each.topic for each in targets}))
        writer = await stack.enter_async_context(clients.writer())
        reader = await stack.enter_async_context(clients.reader())
        await writer.init_transactions()
        copier = Copier(
            reader=reader,
            writer=writer,
            member=GroupName(flow.group_id),
            journal_topic=journal_topic,
            reports=Reports(flow.name, clock.wall_ms),
            metrics=FlowMetrics(flow.source.alias, flow.target.alias, clock.monotonic),
            clock=clock,
            offset_syncs=None,
            transaction_bytes=flow.number("strandline.transaction.bytes"),
            bytes_per_second=0,
        )
        left = {where for where, end in ends.items() if starts[where].offset < end}
        for where in sorted(left):
            topic_id = described[where.topic].topic_id
            copier.add(
                CopiedPartition(
                    where, targets[where], topic_id, starts[where], is_saved=False, end=ends[where]
                )
            )
        count = 0
        while left:
            count += await copier.copy_once()
            left = {where for where in left if copier.partitions[where].committed.offset < ends[where]}
        return count


async def _move_groups_back(control: MirrorControl, source: Admin, returned: JournalState) -> int:
    """Commits the offsets of the target's groups at the source, translated; returns the number of groups."""
    flow, journal = control.flow, await control.journal()
    sources = {
        TopicPartition(flow.target_topic(where.topic), where.partition): where for where in journal.maps
    }
    states = {each.group_id: each.state for each in await source.list_groups()}
    moved = 0
    for listed in await control.target.list_groups():
        group = listed.group_id
        if not flow.is_mirrored_group(group) or states.get(group, "Dead") not in IDLE_STATES:
            continue
        offsets = {}
        for target, committed in (await control.target.list_group_offsets(group)).items():
            if target not in sources:
                continue
            back = returned.maps.get(target)
            is_returned = back is not None and committed.offset >= back.ranges[0].source
            translated = (
                returned.to_target(target, committed.offset)
                if is_returned
                else journal.maps[sources[target]].to_source(committed.offset)
            )
            if translated is not None:
                offsets[sources[target]] = CommittedOffset(offset=translated, metadata=committed.metadata)
        if offsets:
            await source.alter_group_offsets(group, offsets)
            moved += 1
    return moved


async def _skip_returned(control: MirrorControl, source: Admin, partitions: list[FailbackPartition]) -> None:
    """Moves the flow's progress after the records that came back: the target has them."""
    ends = await source.list_offsets(dict.fromkeys((each.source for each in partitions), LATEST))
    topics = await source.describe_topics(sorted({each.source.topic for each in partitions}))
    await control.target.alter_group_offsets(
        control.flow.group_id,
        {
            each.target: CommittedOffset(
                offset=ends[each.source].offset,
                metadata=encode_progress(topics[each.source.topic].topic_id, ends[each.source].leader_epoch),
            )
            for each in partitions
        },
    )
