"""The last offset of every key among the dirty records, by which records stay or go.

A record stays if its key has no later record, and if it is no tombstone whose time is over. Records without a key can
be in a log that was not compacted before; like Apache Kafka's, this cleaner removes them.

This map is a dict, for installations without numba. Its loop over the bytes of a batch does as little as possible for
each record.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from strandline.wire.record_batch import CorruptBatch, read_varint

# The memory of a key besides its own bytes: its object, the offset's, and a dict's entry at the usual load.
KEY_OVERHEAD_BYTES: Final = 160
# A longer key is represented by its digest, as Kafka represents all keys by their MD5.
KEY_BYTES_MAX: Final = 64
_DIGEST_BYTES: Final = 16


class Judged(NamedTuple):
    """The records of a batch that are retained."""

    records: int
    runs: Sequence[tuple[int, int]]
    """The positions of the runs: each from the first of its records to after the last."""
    has_tombstones: bool
    max_timestamp_delta: int
    """The largest among the records that stay, if only some do."""


class KeyMap(Protocol):
    latest_offset: int
    """The offset up to which every key is in the map."""

    def note(self, body: bytes, count: int, base_offset: int, from_offset: int) -> bool:
        """Notes the keys of a batch from `from_offset` on; returns False if there is no room for more."""
        ...

    def judge(self, body: bytes, count: int, base_offset: int, *, keeps_tombstones: bool) -> Judged: ...

    def __len__(self) -> int: ...


class DictKeyMap:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._offsets: dict[bytes, int] = {}
        self._key_bytes = 0
        self.latest_offset = -1

    def __len__(self) -> int:
        return len(self._offsets)

    def note(self, body: bytes, count: int, base_offset: int, from_offset: int) -> bool:
        if len(self._offsets) * (KEY_OVERHEAD_BYTES + self._key_bytes) >= self._bytes_max:
            return False
        try:
            _, deltas, keys, _ = records_of(body, count)
        except IndexError as error:
            raise CorruptBatch(f"records of the batch at offset {base_offset} are cut off") from error
        noted = {
            key: base_offset + delta
            for key, delta in zip(keys, deltas, strict=True)
            if key is not None and base_offset + delta >= from_offset
        }
        if noted:
            self._key_bytes = max(self._key_bytes, sum(map(len, noted)) // len(noted))
        self._offsets.update(noted)
        return True

    def judge(self, body: bytes, count: int, base_offset: int, *, keeps_tombstones: bool) -> Judged:
        try:
            judged = self._judge(body, count, base_offset, keeps_tombstones)
        except IndexError as error:
            raise CorruptBatch(f"records of the batch at offset {base_offset} are cut off") from error
        if 0 < judged.records < count:
            return judged._replace(max_timestamp_delta=_largest_delta(body, judged.runs))
        return judged

    def _judge(self, data: bytes, count: int, base_offset: int, keeps_tombstones: bool) -> Judged:
        found = records_of(data, count)
        last_of = self._offsets.get
        latest = self.latest_offset - base_offset
        runs: list[tuple[int, int]] = []
        retained = 0
        run_start = -1
        has_tombstones = False
        for start, delta, key, is_tombstone in zip(*found, strict=True):
            if delta <= latest and (
                key is None
                or base_offset + delta < last_of(key, -1)
                or (is_tombstone and not keeps_tombstones)
            ):
                if run_start >= 0:
                    runs.append((run_start, start))
                    run_start = -1
                continue
            retained += 1
            has_tombstones |= is_tombstone
            if run_start < 0:
                run_start = start
        if run_start >= 0:
            runs.append((run_start, len(data)))
        return Judged(retained, runs, has_tombstones, 0)


class Records(NamedTuple):
    """The columns of a body's records that compaction needs; most of its time goes into finding them."""

    starts: list[int]
    deltas: list[int]
    keys: list[bytes | None]
    tombstones: list[bool]


def records_of(data: bytes, count: int) -> Records:
    starts: list[int] = []
    deltas: list[int] = []
    keys: list[bytes | None] = []
    tombstones: list[bool] = []
    p, total = 0, len(data)
    for _ in range(count):
        starts.append(p)
        # Numbers of one and two bytes by hand: a call for each would be most of the loop.
        size, q = data[p], p + 1
        if size >= 0x80:
            byte = data[q]
            if byte >= 0x80:
                size, q = read_varint(data, p)
                size <<= 1
            else:
                size, q = size & 0x7F | byte << 7, q + 1
        p = q + (size >> 1)
        if size & 1 or size <= 0 or p > total:
            raise CorruptBatch(f"the record has {size >> 1} bytes, and {total - q} are left")
        q += 1
        while data[q] >= 0x80:
            q += 1
        q += 1
        delta, at = data[q], q
        q += 1
        if delta & 0x81:
            byte = data[q]
            if delta & 1 or byte >= 0x80:
                delta, q = read_varint(data, at)
            else:
                delta, q = (delta & 0x7F | byte << 7) >> 1, q + 1
        else:
            delta >>= 1
        deltas.append(delta)
        size, at = data[q], q
        q += 1
        if size == 1:
            keys.append(None)
        else:
            if size >= 0x80:
                size, q = read_varint(data, at)
            else:
                size >>= 1
            at, q = q, q + size
            if size < 0 or q >= p:
                raise CorruptBatch(f"a key of {size} bytes in a record with {p - at} left")
            key = data[at:q]
            keys.append(key if size <= KEY_BYTES_MAX else _digest(key))
        tombstones.append(data[q] == 1)
    if p != total:
        raise CorruptBatch(f"{total - p} bytes follow the last record")
    return Records(starts, deltas, keys, tombstones)


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()


def _largest_delta(data: bytes, runs: Sequence[tuple[int, int]]) -> int:
    largest: int | None = None
    for p, end in runs:
        while p < end:
            size, q = read_varint(data, p)
            p = q + size
            delta, _ = read_varint(data, q + 1)
            if largest is None or delta > largest:
                largest = delta
    assert largest is not None
    return largest
