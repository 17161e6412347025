"""The transactions that the cleaner meets in a log: Apache Kafka's CleanedTransactionMetadata.

1. Data of an aborted transaction is removed.
2. A marker stays for as long as the cleaner has seen a batch of its transaction; after that it is kept for
   delete.retention.ms more, like a tombstone, so that consumers that are reading the log still learn how it ended.
3. The row of an aborted transaction stays in the transaction index for as long as a batch of it was there.
"""

from __future__ import annotations

from collections.abc import Iterable

from strandline.base.aborted_transaction import AbortedTransaction
from strandline.wire.record_batch import BatchHeader
from strandline.wire.records.markers import read_marker


class PassedTransactions:
    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda row: row.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}
        self._seen_aborted: set[int] = set()
        self._seen_committed: set[int] = set()

    def _reach(self, offset: int) -> None:
        while self._coming and self._coming[-1].first_offset <= offset:
            row = self._coming.pop()
            self._aborted[row.producer_id] = row
            self._seen_aborted.discard(row.producer_id)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Returns True if the data batch that the cleaner has reached belongs to an aborted transaction."""
        if not header.is_transactional:
            return False
        self._reach(header.last_offset)
        row = self._aborted.get(header.producer_id)
        if row is not None and header.last_offset <= row.last_offset:
            self._seen_aborted.add(header.producer_id)
            return True
        self._seen_committed.add(header.producer_id)
        return False

    def marker(self, header: BatchHeader, batch: bytes) -> tuple[bool, AbortedTransaction | None]:
        """Returns whether the transaction of a marker has no batch left, and the marker's row for the index if it needs
        one."""
        self._reach(header.last_offset)
        parsed = read_marker(batch)
        if parsed is None:
            return header.record_count == 0, None
        producer_id = header.producer_id
        if parsed.is_commit:
            is_needed = producer_id in self._seen_committed
            self._seen_committed.discard(producer_id)
            return not is_needed, None
        row = self._aborted.pop(producer_id, None)
        is_needed = producer_id in self._seen_aborted
        self._seen_aborted.discard(producer_id)
        return not is_needed, row if is_needed else None
