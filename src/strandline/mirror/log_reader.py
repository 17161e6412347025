"""Reads a part of a partition's log once, from one end to the other."""

from __future__ import annotations

from collections.abc import AsyncIterator

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.consumer.record_decoder import ConsumerRecord


async def records_between(
    consumer: Consumer, where: TopicPartition, start: int, end: int | None = None
) -> AsyncIterator[ConsumerRecord]:
    """Yields the committed records from an offset on, or from the log start if that is later, up to the end or to
    `end`.
    """
    consumer.assign([where])
    first = (await consumer.beginning_offsets([where]))[where]
    last = (await consumer.end_offsets([where]))[where]
    last = last if end is None else min(last, end)
    consumer.seek(where, max(first, min(start, last)))
    while await consumer.position(where) < last:
        for record in await consumer.poll(1.0):
            if record.offset < last:
                yield record
