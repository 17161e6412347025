"""Failover: groups go on at the target, and a proof says per partition what had arrived.

Steps:
1. The flow is paused, and its processes are fenced: nothing arrives any more, also when the source comes back.
2. What has arrived is read: the committed offsets of the source, and the end of each copy.
3. The groups' offsets are read: from the source if it responds, otherwise from the last checkpoints.
4. Translated offsets are committed for groups that have no members at the target, and never backward.
5. The proof is written into the journal. `verify` compares it with the source when that is back. A second failover
   before a failback moves groups again, and keeps what had arrived at the first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from strandline.base.ids import TopicPartition
from strandline.client.admin.groups import CommittedOffset
from strandline.client.errors import KafkaError
from strandline.mirror.checkpoints.group_offsets import IDLE_STATES, checkpoints_of
from strandline.mirror.checkpoints.mm2_records import Checkpoint
from strandline.mirror.copying.progress import decode_progress
from strandline.mirror.journal.entries import FAILOVER, JournalState
from strandline.mirror.operations.control import LATEST, MirrorControl, topic_names


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivedPartition:
    """All records of a partition before `copied_to` have arrived, and none after it."""

    source_topic: str
    target_topic: str
    partition: int
    topic_id: str  # of the source
    copied_to: int
    target_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedOffset:
    """An offset of a group at both ends. `note` is empty if it is committed at the target, and else says why not."""

    group: str
    target_topic: str
    partition: int
    source_offset: int
    target_offset: int
    note: str
    source_ms: int = -1  # the source offset has every commit before this time; what came later is read again


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverProof:
    """The proof of a failover. `offsets_ms` is the newest time of a group's offset."""

    flow: str
    time_ms: int
    offsets_are_from: str  # "source" or "checkpoints"
    offsets_ms: int
    partitions: tuple[ArrivedPartition, ...]
    groups: tuple[MovedOffset, ...]

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, document: Mapping[str, Any]) -> FailoverProof:
        return cls(
            **{
                **document,
                "partitions": tuple(ArrivedPartition(**each) for each in document["partitions"]),
                "groups": tuple(MovedOffset(**each) for each in document["groups"]),
            }
        )


async def fail_over(control: MirrorControl, *, dry_run: bool) -> FailoverProof:
    """Moves the groups of a flow to the target; with `dry_run` it only says what it would do."""
    if not dry_run:
        await control.set_paused(True, "failover")
        await _fence(control)
    journal = await control.journal()
    partitions = _as_before(await _arrived(control, journal), journal)
    source, checkpoints = await _checkpoints(control, journal)
    groups: list[MovedOffset] = []
    states = {each.group_id: each.state for each in await control.target.list_groups()}
    for group, found in checkpoints.items():
        is_idle = states.get(group, "Dead") in IDLE_STATES
        groups += await _move(control, group, found, is_idle=is_idle, dry_run=dry_run)
    proof = FailoverProof(
        flow=control.flow.name,
        time_ms=control.world.clock.wall_ms(),
        offsets_are_from=source,
        offsets_ms=max((each.source_ms for each in groups), default=0),
        partitions=partitions,
        groups=tuple(groups),
    )
    if not dry_run:
        await control.write(FAILOVER, proof.encode())
    return proof


async def _fence(control: MirrorControl) -> None:
    """Ends what processes of the flow have under way; whatever they do later is refused."""
    prefix = f"{control.flow.group_id}-"
    listed = await control.target.list_transactions()
    if names := [each.transactional_id for each in listed if each.transactional_id.startswith(prefix)]:
        await control.target.fence_producers(names)


async def _arrived(control: MirrorControl, journal: JournalState) -> tuple[ArrivedPartition, ...]:
    progress = await control.progress()
    sources = control.sources_of(progress, journal)
    ends = await control.target.list_offsets(dict.fromkeys(progress, LATEST))
    return tuple(
        ArrivedPartition(
            source_topic=sources[target].topic,
            target_topic=target.topic,
            partition=target.partition,
            topic_id=decode_progress(committed)[1],
            copied_to=committed.offset,
            target_end=ends[target].offset,
        )
        for target, committed in sorted(progress.items())
    )


def _as_before(
    partitions: tuple[ArrivedPartition, ...], journal: JournalState
) -> tuple[ArrivedPartition, ...]:
    """Returns the partitions as an earlier failover has them, if no failback has ended it: records that the target took
    since then are on no source, and a failback has to bring them.
    """
    if journal.failover is None:
        return partitions
    earlier = FailoverProof.decode(journal.failover).partitions
    known = {(each.target_topic, each.partition): each for each in earlier}
    return tuple(known.get((each.target_topic, each.partition), each) for each in partitions)


class TimedCheckpoint(NamedTuple):
    """A checkpoint that has every commit of its group before `time_ms`."""

    checkpoint: Checkpoint
    time_ms: int


Checkpoints = dict[str, dict[TopicPartition, TimedCheckpoint]]


async def _checkpoints(control: MirrorControl, journal: JournalState) -> tuple[str, Checkpoints]:
    """Returns where the groups' offsets are from, and the translated offsets by group."""
    flow = control.flow
    try:
        time_ms = control.world.clock.wall_ms()
        async with control.clients.admin(flow.source) as admin:
            names = [each.group_id for each in await admin.list_groups()]
            found = {
                name: checkpoints_of(flow, journal, name, await admin.list_group_offsets(name))
                for name in names
                if flow.is_mirrored_group(name)
            }
    except KafkaError:
        return await _last_checkpoints(control, journal)
    timed = {
        name: {target: TimedCheckpoint(each, time_ms) for target, each in checkpoints.items()}
        for name, checkpoints in found.items()
        if checkpoints
    }
    return "source", timed


async def _last_checkpoints(control: MirrorControl, journal: JournalState) -> tuple[str, Checkpoints]:
    """Returns the last checkpoint of each group and partition, translated again, since more may be copied now."""
    sources = {
        TopicPartition(control.flow.target_topic(where.topic), where.partition): where
        for where in journal.maps
    }
    where = TopicPartition(control.flow.policy.checkpoints_topic(control.flow.source.alias), 0)
    found: Checkpoints = {}
    if where.topic not in await topic_names(control.target):
        return "checkpoints", found  # emit.checkpoints.enabled=false
    async with control.clients.target_reader() as consumer:
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        end = (await consumer.end_offsets([where]))[where]
        while await consumer.position(where) < end:
            for record in await consumer.poll(1.0):
                checkpoint = Checkpoint.decode(record.key, record.value)
                target = TopicPartition(checkpoint.topic, checkpoint.partition)
                if target in sources:
                    again = journal.to_target(sources[target], checkpoint.source_offset)
                    assert again is not None, "the partition has a map"
                    checkpoint = checkpoint._replace(target_offset=again)
                    timed = TimedCheckpoint(checkpoint, record.timestamp)
                    found.setdefault(checkpoint.group, {})[target] = timed
    return "checkpoints", found


async def _move(
    control: MirrorControl,
    group: str,
    checkpoints: Mapping[TopicPartition, TimedCheckpoint],
    *,
    is_idle: bool,
    dry_run: bool,
) -> list[MovedOffset]:
    committed = await control.target.list_group_offsets(group)
    moved, to_commit = [], {}
    for target, (each, time_ms) in checkpoints.items():
        note = "" if is_idle else "the group has members at the target: its offsets are its own"
        if is_idle and target in committed and committed[target].offset > each.target_offset:
            note = f"the group is at {committed[target].offset} already"
        if not note:
            to_commit[target] = CommittedOffset(offset=each.target_offset, metadata=each.metadata)
        moved.append(
            MovedOffset(
                group=group,
                target_topic=target.topic,
                partition=target.partition,
                source_offset=each.source_offset,
                target_offset=each.target_offset,
                note=note,
                source_ms=time_ms,
            )
        )
    if to_commit and not dry_run:
        await control.target.alter_group_offsets(group, to_commit)
    return moved
