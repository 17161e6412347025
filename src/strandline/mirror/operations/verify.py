"""Compares both ends of a flow record by record: which records of the source have not arrived, and whether those that
have are the same.

After a failover the proof says what had arrived; readers at the target miss the records of the source after that.
Without one it is what the flow has copied so far.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.mirror.journal.offset_map import OffsetMap
from strandline.mirror.log_reader import records_between
from strandline.mirror.operations.control import MirrorControl, topic_names
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
    is_gone: bool = False  # the source does not have the topic any more: nothing was compared
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
    """Returns the findings for each partition. With `with_contents` every copy is compared, otherwise only the records
    of the source that have not arrived are read.
    """
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
    async with control.clients.admin(control.flow.source) as admin:
        present = await topic_names(admin)
    async with control.clients.reader() as at_source, control.clients.target_reader() as at_target:
        for target, offset in sorted(copied_to.items()):
            if control.flow.policy.is_heartbeats_topic(sources[target].topic):
                continue  # One is always under way.
            found = PartitionFindings(sources[target], target, offset)
            findings.append(found)
            if found.source.topic not in present:
                found.is_gone = True
                continue
            if with_contents:
                await _compare(at_source, at_target, found, journal.maps.get(found.source) or OffsetMap())
            async for record in records_between(at_source, found.source, offset):
                found.add_missing(record)
    return findings


async def _compare(
    at_source: Consumer, at_target: Consumer, found: PartitionFindings, offsets: OffsetMap
) -> None:
    copies = _Copies(at_target, found.target)
    async for record in records_between(at_source, found.source, 0, found.copied_to):
        expected = offsets.to_target(record.offset)
        slack = offsets.slack_at(record.offset)
        found.compared += 1
        if expected is None:
            found.add_missing(record)
        elif slack:
            # Of merged ranges only the order is known: the next copies are its, or were written by others.
            if not await copies.take_like(record, expected, slack):
                found.add_missing(record)
        elif (copy := await copies.at(expected)) is None:
            found.add_missing(record)
        elif _content(copy) != _content(record):
            found.add_different(record)


class _Copies:
    """The records of a partition of the target, in order except where an offset before them is asked for."""

    def __init__(self, consumer: Consumer, where: TopicPartition) -> None:
        self._consumer = consumer
        self._where = where
        self._records = records_between(consumer, where, 0)
        self._next: deque[ConsumerRecord] = deque()

    async def at(self, offset: int) -> ConsumerRecord | None:
        """Returns the record at this offset."""
        await self._advance(offset, 1)
        if not self._next or self._next[0].offset > offset:
            # Records that came back in a failback stand before others at the target.
            self._records = records_between(self._consumer, self._where, offset)
            self._next.clear()
            await self._advance(offset, 1)
        return self._next[0] if self._next and self._next[0].offset == offset else None

    async def take_like(self, record: ConsumerRecord, offset: int, count: int) -> bool:
        """Takes the first of the next `count` records and one that has this content; False if none has it."""
        await self._advance(offset, count + 1)
        for number, copy in enumerate(self._next):
            if _content(copy) == _content(record):
                for _ in range(number + 1):
                    self._next.popleft()
                return True
        return False

    async def _advance(self, offset: int, count: int) -> None:
        """Has the next `count` records from this offset on ready."""
        while self._next and self._next[0].offset < offset:
            self._next.popleft()
        while len(self._next) < count and (copy := await anext(self._records, None)) is not None:
            if copy.offset >= offset:
                self._next.append(copy)


def _content(record: ConsumerRecord) -> tuple[object, ...]:
    return record.key, record.value, record.headers, record.timestamp
