"""The loops of `keys` and `verifying`, in the part of Python that numba compiles; they only run compiled.

A table is one array of 64-bit integers, three for a slot: two halves of the key's hash, and its last offset plus one,
where 0 says that the slot is free. Collisions go on to the next slot. Like Apache Kafka's, the map knows keys by 128
bits of hash; the hash has another seed for every cleaning, so that no client can choose keys that collide.

Compiled integers wrap and compiled code checks no bounds, so every read of foreign bytes is checked here. A negative
result is an error.
"""

from __future__ import annotations

from typing import Any

from strandline.base.kernels import INT64_MAX, read_varint

CUT_OFF = -1
SLOT = 3

# Positions in the `totals` of judge_records: records that stay, whether a tombstone is among them, their largest
# timestamp delta.
RETAINED = 0
TOMBSTONES = 1
MAX_DELTA = 2
TOTALS_SIZE = 3

# Odd numbers with well-spread bits; some are negative because a literal must fit into 64 bits with a sign.
_FIRST = -7046029288634856825
_SECOND = -4417276706812531889
_THIRD = 1609587929392839161


def mixed(value: Any) -> Any:
    value ^= (value >> 33) & 0x7FFFFFFF
    value *= _FIRST
    value ^= (value >> 29) & 0x7FFFFFFFF
    value *= _SECOND
    return value ^ ((value >> 32) & 0xFFFFFFFF)


def hashes(data: Any, start: Any, size: Any, seed: Any) -> Any:
    """Returns two hashes of 64 bits."""
    first = seed ^ (size * _FIRST)
    second = (seed * _THIRD) ^ size
    p = start
    end = start + size
    while p < end:
        word = 0
        shift = 0
        while p < end and shift < 64:
            word |= (data[p] & 0xFF) << shift
            p += 1
            shift += 8
        first = mixed(first ^ word)
        second = mixed((second * _THIRD) ^ (word * _FIRST))
    return mixed(first), mixed(second ^ _THIRD)


def slot_of(table: Any, mask: Any, first: Any, second: Any) -> Any:
    """Returns the slot of the key, or the free slot where it would go."""
    slot = first & mask
    while True:
        at = slot * SLOT
        if table[at + 2] == 0 or (table[at] == first and table[at + 1] == second):
            return at
        slot = (slot + 1) & mask


def move_keys(table: Any, larger: Any) -> Any:
    """Fills a larger table with the keys of this one."""
    mask = len(larger) // SLOT - 1
    for at in range(0, len(table), SLOT):
        if table[at + 2] != 0:
            to = slot_of(larger, mask, table[at], table[at + 1])
            larger[to] = table[at]
            larger[to + 1] = table[at + 1]
            larger[to + 2] = table[at + 2]
    return 0


def read_record(data: Any, p: Any, total: Any) -> Any:
    """Returns end, timestamp delta, offset delta and key size of the record at `p`, and the position of its key; -1 if
    it is cut off."""
    size, p = read_varint(data, p, total)
    if p < 0 or size <= 0 or size > total - p:
        return 0, 0, 0, 0, -1
    end = p + size
    timestamp, p = read_varint(data, p + 1, end)
    if p < 0:
        return 0, 0, 0, 0, -1
    delta, p = read_varint(data, p, end)
    if p < 0:
        return 0, 0, 0, 0, -1
    key_size, p = read_varint(data, p, end)
    if p < 0 or key_size > end - p:
        return 0, 0, 0, 0, -1
    return end, timestamp, delta, key_size, p


def note_keys(data: Any, count: Any, base_offset: Any, from_offset: Any, table: Any, seed: Any) -> Any:
    """Notes the keys of one batch's body; returns how many of them are new, or an error."""
    mask = len(table) // SLOT - 1
    total = len(data)
    new = 0
    p = 0
    for _ in range(count):
        end, _timestamp, delta, key_size, p = read_record(data, p, total)
        if p < 0:
            return CUT_OFF
        if key_size >= 0 and base_offset + delta >= from_offset:
            first, second = hashes(data, p, key_size, seed)
            at = slot_of(table, mask, first, second)
            if table[at + 2] == 0:
                table[at] = first
                table[at + 1] = second
                new += 1
            table[at + 2] = base_offset + delta + 1
        p = end
    return new if p == total else CUT_OFF


def judge_records(
    data: Any,
    count: Any,
    base_offset: Any,
    latest: Any,
    keeps: Any,
    table: Any,
    seed: Any,
    runs: Any,
    totals: Any,
) -> Any:
    """Writes begin and end of each run of records that stay into `runs`; returns how many runs, or an error."""
    mask = len(table) // SLOT - 1
    total = len(data)
    retained = 0
    tombstones = 0
    max_delta = -INT64_MAX
    run_count = 0
    run_end = -1
    p = 0
    for _ in range(count):
        start = p
        end, timestamp, delta, key_size, p = read_record(data, p, total)
        if p < 0:
            return CUT_OFF
        value_at = p + max(key_size, 0)
        if value_at >= end:
            return CUT_OFF
        is_tombstone = data[value_at] == 1
        offset = base_offset + delta
        stays = True
        if offset <= latest:
            if key_size < 0 or (is_tombstone and keeps == 0):
                stays = False
            else:
                first, second = hashes(data, p, key_size, seed)
                stays = offset + 1 >= table[slot_of(table, mask, first, second) + 2]
        if stays:
            retained += 1
            if is_tombstone:
                tombstones = 1
            if timestamp > max_delta:
                max_delta = timestamp
            if start != run_end:
                runs[2 * run_count] = start
                run_count += 1
            run_end = end
            runs[2 * run_count - 1] = end
        p = end
    totals[RETAINED] = retained
    totals[TOMBSTONES] = tombstones
    totals[MAX_DELTA] = max_delta
    return run_count if p == total else CUT_OFF


def skip_field(data: Any, p: Any, end: Any) -> Any:
    """Returns the position after a key or value, -1 if it is cut off."""
    size, p = read_varint(data, p, end)
    if p < 0 or size < -1 or size > end - p:
        return -1
    return p + max(size, 0)
