"""Records of committed offsets, written by hand: busy groups commit thousands of times a second.

The bytes are those of `OffsetCommitKey` and of `OffsetCommitValue` in version 3, which tests compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from struct import Struct
from typing import Final

from strandline.wire.record_batch import varint
from strandline.wire.records.offsets_topic import OffsetCommitKey

_TYPE: Final = OffsetCommitKey.API_KEY.to_bytes(2, "big")
_VERSION: Final = 3
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_HEAD: Final = Struct(">hqih")
# What stands behind the beginning of a record without a note: offset, leader epoch, a text of no length, the time of
# the commit, and no headers.
_REST: Final = Struct(">qi2xqx")
_VALUE_SIZE: Final = varint(Struct(">hqihq").size)
# Those that take one byte.
_DELTAS: Final = [varint(delta) for delta in range(64)]


@lru_cache(maxsize=1024)
def _parts(group_id: str, topic: str, partitions: tuple[int, ...]) -> list[bytes]:
    """Records without notes of these partitions, which consumers commit again and again: of each what stands before its
    delta, the delta, what stands behind that, and nothing yet where the rest belongs."""
    prefix = _key_prefix(group_id, topic)
    key = varint(len(prefix) + _INT32.size) + prefix
    value = _VALUE_SIZE + _INT16.pack(_VERSION)
    no_times = b"\0\0"  # no attributes, and the batch's own timestamp
    parts = []
    for delta, partition in enumerate(partitions):
        behind = key + _INT32.pack(partition) + value
        before = varint(len(no_times) + 1 + len(behind) + _REST.size) + no_times
        parts += [before, varint(delta), behind, b""]
    return parts


def _key_prefix(group_id: str, topic: str) -> bytes:
    """All of a key but the partition."""
    group, name = group_id.encode(), topic.encode()
    return b"".join((_TYPE, _INT16.pack(len(group)), group, _INT16.pack(len(name)), name))


def records_of(
    first: int,
    group_id: str,
    topic: str,
    partitions: Sequence[int],
    offsets: Sequence[int],
    leader_epochs: Sequence[int],
    notes: Sequence[str] | None,
    commit_ms: int,
) -> list[bytes]:
    """Records of a topic's offsets, in pieces; the first has this offset delta."""
    end = first + len(partitions)
    if notes is not None or end > len(_DELTAS):
        rows = zip(partitions, offsets, leader_epochs, notes or repeat(""), strict=False)
        return [
            _record(delta, group_id, topic, partition, offset, epoch, note, commit_ms)
            for delta, (partition, offset, epoch, note) in enumerate(rows, first)
        ]
    parts = _parts(group_id, topic, tuple(partitions)).copy()
    if first:
        parts[1::4] = _DELTAS[first:end]
    parts[3::4] = map(_REST.pack, offsets, leader_epochs, repeat(commit_ms))
    return parts


def _record(
    delta: int,
    group_id: str,
    topic: str,
    partition: int,
    offset: int,
    leader_epoch: int,
    note: str,
    commit_ms: int,
) -> bytes:
    key = _key_prefix(group_id, topic) + _INT32.pack(partition)
    text = note.encode()
    value = _HEAD.pack(_VERSION, offset, leader_epoch, len(text)) + text + _INT64.pack(commit_ms)
    body = b"".join((b"\0\0", varint(delta), varint(len(key)), key, varint(len(value)), value, b"\0"))
    return varint(len(body)) + body
