"""Keeps a journal short: writes snapshots into it, and has the entries deleted that they cover.

The process that leads the flow does this. Before a snapshot, ranges of which the target has no record any more are
dropped, and ranges that no group needs are merged: those before the oldest offset that a group has, and before the
last EXACT_RANGES. So the state stays small, and translations are exact where a group is or will be.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.producer.producer import Producer
from strandline.mirror.journal.entries import SNAPSHOT, JournalState
from strandline.mirror.journal.follower import JournalFollower
from strandline.mirror.journal.snapshots import encode_snapshot

# The last ranges of a partition are never merged: a new group may begin there.
EXACT_RANGES: Final = 1_000
# How far back a translation may be where ranges were merged: MirrorMaker 2's offset.lag.max.
GAPS_MAX: Final = 100
# Where more ranges than that are before the groups' offsets, the older half of them is merged further.
RANGES_MAX: Final = 20_000
_READ_BACK_SECONDS: Final = 30.0

logger = logging.getLogger("strandline.mirror")

Offsets = Mapping[TopicPartition, int]


class JournalTrimmer:
    """Writes snapshots of what a follower has read."""

    def __init__(
        self,
        follower: JournalFollower,
        topic: str,
        target: Admin,
        producer: Producer,
        needs: Callable[[], Awaitable[tuple[Offsets, Offsets]]],
        *,
        name: str,
        records: int,
    ) -> None:
        """`needs` returns, by partition of the source, the oldest offset that a group has there, and the first offset
        that the target still has of its copy. A snapshot is written after so many `records`."""
        self._follower = follower
        self._where = TopicPartition(topic, 0)
        self._target = target
        self._producer = producer
        self._needs = needs
        self._name = name
        self._records = records

    async def trim(self) -> None:
        """Writes a snapshot if one is due, and deletes what the newest one covers."""
        follower = self._follower
        if follower.position - max(follower.start, follower.covered) >= self._records:
            await self._write_snapshot()
        if follower.covered > follower.start:
            await self._target.delete_records({self._where: follower.covered})
            follower.start = follower.covered
            logger.info("%s: entries before %d are deleted", self._where.topic, follower.covered)

    async def _write_snapshot(self) -> None:
        follower = self._follower
        groups, starts = await self._needs()
        # From here to the encoding nothing else runs: the state is that of one position.
        reduce_maps(follower.state, groups, starts)
        covers = follower.position
        for part in encode_snapshot(follower.state, covers, f"{self._name}-{covers}"):
            await self._producer.send_and_wait(self._where.topic, part, SNAPSHOT, partition=0)
        try:
            async with asyncio.timeout(_READ_BACK_SECONDS):
                while follower.covered < covers:
                    follower.advanced.clear()
                    await follower.advanced.wait()
        except TimeoutError:
            logger.info("%s: the snapshot at %d was not read back yet", self._where.topic, covers)


def reduce_maps(state: JournalState, groups: Offsets, starts: Offsets) -> None:
    """Drops and merges the ranges that nobody needs. `groups` and `starts` are those of `JournalTrimmer`."""
    for where, offsets in state.maps.items():
        if where in starts:
            offsets.drop_before_target(starts[where])
        count = len(offsets) - EXACT_RANGES
        if count > 0:
            exact_from = groups.get(where, offsets.source_end)
            offsets.coarsen(exact_from, GAPS_MAX, count)
            gaps = GAPS_MAX
            while (count := offsets.count_before(exact_from) - EXACT_RANGES) > RANGES_MAX and gaps < 1 << 40:
                gaps *= 4
                offsets.coarsen(exact_from, gaps, count // 2)
