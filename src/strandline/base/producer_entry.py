"""The state of one producer of a partition: the row of a snapshot, which storage keeps and `partition` fills."""

from __future__ import annotations

from typing import NamedTuple


class ProducerEntry(NamedTuple):
    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int = -1
    current_txn_first_offset: int = -1
