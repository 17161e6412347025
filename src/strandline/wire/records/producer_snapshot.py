"""The producer-state snapshot beside a segment."""

from __future__ import annotations

from strandline.wire.schema import Message, Struct, array, field, int16, int32, int64, uint32


class ProducerEntry(Struct):
    producer_id: int = field(int64, "1")
    epoch: int = field(int16, "1")
    last_sequence: int = field(int32, "1")
    last_offset: int = field(int64, "1")
    offset_delta: int = field(int32, "1")
    timestamp: int = field(int64, "1")
    coordinator_epoch: int = field(int32, "1")
    current_txn_first_offset: int = field(int64, "1")


class ProducerSnapshot(Message, versions="1"):
    crc: int = field(uint32, "1")
    producer_entries: tuple[ProducerEntry, ...] = field(array(ProducerEntry), "1")
