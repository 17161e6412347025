"""The last offset of every key among dirty records, and what that says of a record.

A record stays if its key has no later record, and is not a tombstone that has had its time. Records without a key can
be in a log that was not compacted before; like Apache Kafka's, this cleaner removes them.

This map is a dict, which any Python has, and loops over the bytes of a batch's body with as little as possible for a
record.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from strandline.wire.record_batch import CorruptBatch, read_varint

# What a key costs beside its own bytes: its object, the offset's, and a dict's entry at the usual load.
KEY_OVERHEAD_BYTES: Final = 160
# A longer key is known by its digest, as Kafka knows all of them by their MD5.
KEY_BYTES_MAX: Final = 64
_DIGEST_BYTES: Final = 16


class Judged(NamedTuple):
    """What stays of a batch's records."""

    records: int
    runs: Sequence[tuple[int, int]]
    """Where they are, each run from the first of its records to behind the last."""
    has_tombstones: bool
    max_timestamp_delta: int
    """The largest of those that stay, if only some do."""


class KeyMap(Protocol):
    latest_offset: int
    """Up to here every key is in the map."""

    def note(self, body: bytes, count: int, base_offset: int, from_offset: int) -> bool:
        """Notes the keys of a batch at or behind `from_offset`; False if there is no room for more."""
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
        keys, deltas = keys_of(body, count)
        if keys:
            self._key_bytes = max(self._key_bytes, sum(map(len, keys)) // len(keys))
        if base_offset >= from_offset:
            self._offsets.update(zip(keys, [base_offset + delta for delta in deltas], strict=True))
        else:
            for key, delta in zip(keys, deltas, strict=True):
                if base_offset + delta >= from_offset:
                    self._offsets[key] = base_offset + delta
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
        latest_offset, last_of = self.latest_offset, self._offsets.get
        runs: list[tuple[int, int]] = []
        kept = 0
        run_start = run_end = -1
        has_tombstones = False
        p = 0
        for _ in range(count):
            start = p
            size, q = read_varint(data, p)
            p = q + size
            if size <= 0 or p > len(data):
                raise CorruptBatch(f"a record of {size} bytes in the batch at offset {base_offset}")
            _, q = read_varint(data, q + 1)
            delta, q = read_varint(data, q)
            key_size, q = read_varint(data, q)
            value_at = q + max(key_size, 0)
            is_tombstone = data[value_at] == 1
            offset = base_offset + delta
            if offset <= latest_offset:
                if key_size < 0:
                    continue
                key = data[q:value_at]
                if offset < last_of(key if key_size <= KEY_BYTES_MAX else _digest(key), -1):
                    continue
                if is_tombstone and not keeps_tombstones:
                    continue
            kept += 1
            has_tombstones |= is_tombstone
            if start != run_end:
                if run_end >= 0:
                    runs.append((run_start, run_end))
                run_start = start
            run_end = p
        if run_end >= 0:
            runs.append((run_start, run_end))
        if p != len(data):
            raise CorruptBatch(
                f"{len(data) - p} bytes behind the records of the batch at offset {base_offset}"
            )
        return Judged(kept, runs, has_tombstones, 0)


def keys_of(data: bytes, count: int) -> tuple[list[bytes], list[int]]:
    """The keys of a batch's body and the offset deltas of their records, without those that have none."""
    keys: list[bytes] = []
    deltas: list[int] = []
    longest = 0
    p = 0
    try:
        for _ in range(count):
            # The usual sizes by hand: this loop is most of what building a map costs.
            byte = data[p]
            if byte < 0x80:
                q = p + 2
                p += 1 + (byte >> 1)
            else:
                size, q = read_varint(data, p)
                p = q + size
                q += 1
            while data[q] >= 0x80:
                q += 1
            delta, q = read_varint(data, q + 1)
            size = data[q]
            if size < 0x80:
                q += 1
                if size == 1:
                    continue
                size >>= 1
            else:
                size, q = read_varint(data, q)
            if size > longest:
                longest = size
            keys.append(data[q : q + size])
            deltas.append(delta)
    except IndexError as error:
        raise CorruptBatch("records that are cut off") from error
    if p != len(data):
        raise CorruptBatch(f"{len(data) - p} bytes behind the last record")
    if longest > KEY_BYTES_MAX:
        keys = [key if len(key) <= KEY_BYTES_MAX else _digest(key) for key in keys]
    return keys, deltas


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
