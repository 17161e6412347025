"""A consumer that returns whole batches as they were fetched, for code that passes them on."""

from __future__ import annotations

from typing import NamedTuple

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import POLL_SECONDS, TABLE_BYTES_MAX, TABLE_ROWS_MAX, Consumer
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.wire.record_batch import BatchHeader


class FetchedBatch(NamedTuple):
    """A batch with its header. Records before `position` were read already: only a seek into a batch has such."""

    topic: str
    partition: int
    position: int
    header: BatchHeader
    data: memoryview


class BatchConsumer(Consumer):
    """A consumer that hands out batches; records are not decoded, nor decompressed."""

    async def __aenter__(self) -> BatchConsumer:
        await self.start()
        return self

    async def poll_batches(
        self, timeout: float | None = POLL_SECONDS, *, max_bytes: int = TABLE_BYTES_MAX
    ) -> list[FetchedBatch]:
        """Returns the batches that are there, or the first that come within `timeout` seconds. Control batches are left
        out and, with isolation.level=read_committed, those of aborted transactions; positions move after them."""
        engine = self._open()
        parts = await engine.poll(timeout, lambda: engine.buffer.take_batches(TABLE_ROWS_MAX, max_bytes))
        self._counters.add("records-consumed-total", sum(part[3].record_count for part in parts))
        return [FetchedBatch(*part) for part in parts]

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the position of each partition that has one, with the leader epoch of the record before it."""
        return self._consumed()

    def topic_id(self, topic: str) -> bytes | None:
        """Returns the id of a topic as of the last metadata, or None if it is not known."""
        info = self._started().cluster.metadata.topic(topic)
        return None if info is None else info.topic_id
