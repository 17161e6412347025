"""Compares both ends of a flow record by record: which records of the source have not arrived, and whether those that
have are the same.

After a failover the proof says what had arrived; readers at the target miss the records of the source after that.
Without one it is what the flow has copied so far.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.mirror.journal.offset_map import OffsetMap
from strandline.mirror.operations.control import MirrorControl
from strandline.mirror.operations.failover import FailoverProof

# How many single records are listed for a partition; the counts are of all.
LISTED_MAX = 1000


@dataclass(slots=True)
class PartitionFindings:
    """The findings for a partition of the source. `missing` and `different` have the first records of each kind."""

    source: TopicPartition
    target: TopicPartition
    copied_to: int
    compared: int = 0
    missing_count: int = 0
    different_count: int = 0
    missing: tuple[ConsumerRecord, ...] = ()
    different: tuple[ConsumerRecord, ...] = ()

    def add_missing(self, record: ConsumerRecord) -> None:
        self.missing_count += 1
        if len(self.missing) < LISTED_MAX:
            self.missing += (record,)

    def add_different(self, record: ConsumerRecord) -> None:
        self.different_count += 1
        if len(self.different) < LISTED_MAX:
            self.different += (record,)


async def verify(control: MirrorControl, *, with_contents: bool) -> list[PartitionFindings]:
    """The findings for each partition. With `with_contents` every copy is compared, otherwise only the records of the
    source that have not arrived are read."""
    journal = await control.journal()
    proof = None if journal.failover is None else FailoverProof.decode(journal.failover)
    progress = await control.progress()
    sources = control.sources_of(progress, journal)
    copied_to = {target: each.offset for target, each in progress.items()}
    if proof is not None:
        copied_to |= {
            TopicPartition(each.target_topic, each.partition): each.copied_to for each in proof.partitions
        }
    findings = []
    async with control.clients.reader() as at_source, control.clients.journal_reader() as at_target:
        for target, offset in sorted(copied_to.items()):
            if control.flow.policy.is_heartbeats_topic(sources[target].topic):
                continue  # One is always under way.
            found = PartitionFindings(sources[target], target, offset)
            if with_contents:
                await _compare(at_source, at_target, found, journal.maps.get(found.source) or OffsetMap())
            async for record in records_between(at_source, found.source, offset):
                found.add_missing(record)
            findings.append(found)
    return findings


async def _compare(
    at_source: Consumer, at_target: Consumer, found: PartitionFindings, offsets: OffsetMap
) -> None:
    copies = records_between(at_target, found.target, 0)
    copy = await anext(copies, None)
    async for record in records_between(at_source, found.source, 0, found.copied_to):
        expected = offsets.to_target(record.offset)
        if expected is not None and (copy is None or copy.offset > expected):
            # Records that came back in a failback stand before others at the target.
            copies = records_between(at_target, found.target, expected)
            copy = await anext(copies, None)
        while copy is not None and expected is not None and copy.offset < expected:
            copy = await anext(copies, None)
        found.compared += 1
        if copy is None or copy.offset != expected:
            found.add_missing(record)
        elif _content(copy) != _content(record):
            found.add_different(record)


def _content(record: ConsumerRecord) -> tuple[object, ...]:
    return record.key, record.value, record.headers, record.timestamp


async def records_between(
    consumer: Consumer, where: TopicPartition, start: int, end: int | None = None
) -> AsyncIterator[ConsumerRecord]:
    """The committed records from an offset on, or from the log start if that is later, up to the end or to `end`."""
    consumer.assign([where])
    first = (await consumer.beginning_offsets([where]))[where]
    last = (await consumer.end_offsets([where]))[where]
    last = last if end is None else min(last, end)
    consumer.seek(where, max(first, min(start, last)))
    while await consumer.position(where) < last:
        for record in await consumer.poll(1.0):
            if record.offset < last:
                yield record
