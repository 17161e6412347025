"""The records that an iteration has polled and not given yet. They count as unread: no commit covers them."""

from __future__ import annotations

from collections.abc import Callable

from strandline.base.ids import TopicPartition
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.consumer.subscription import OffsetAndMetadata


class UnreadRecords:
    """Records of one poll, from which some have been given."""

    def __init__(self) -> None:
        self._records: list[ConsumerRecord] = []
        self._start = 0

    def __bool__(self) -> bool:
        return self._start < len(self._records)

    def put(self, records: list[ConsumerRecord]) -> None:
        """Replaces the records, once all are given."""
        self._records, self._start = records, 0

    def take_one(self) -> ConsumerRecord:
        """Returns the next record; there must be one."""
        self._start += 1
        return self._records[self._start - 1]

    def take(self, count: int) -> list[ConsumerRecord]:
        """Returns the next records, at most so many."""
        start = self._start
        self._start = min(len(self._records), start + count)
        return self._records[start : self._start]

    def keep_only(self, keep: Callable[[TopicPartition], bool]) -> None:
        """Keeps the records of partitions for which `keep` is true. The positions of the others have changed."""
        left = self._records[self._start :]
        self.put([record for record in left if keep(TopicPartition(record.topic, record.partition))])

    def position(self, where: TopicPartition) -> int | None:
        """Returns the offset of a partition's first unread record, or None if it has none."""
        for record in self._records[self._start :]:
            if (record.topic, record.partition) == where:
                return record.offset
        return None

    def subtract_from(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Moves positions back to the first record that was not given."""
        for record in reversed(self._records[self._start :]):
            where = TopicPartition(record.topic, record.partition)
            if where in offsets:
                offsets[where] = OffsetAndMetadata(record.offset, "", record.leader_epoch)
