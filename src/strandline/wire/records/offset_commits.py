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
# An offset and its leader epoch, one behind the other in requests and in records.
POSITION: Final = Struct(">qi")
# What stands behind the position in a record without a note: a text of no length, the time of the commit, no headers.
_REST: Final = Struct(">2xqx")
_VALUE_SIZE: Final = varint(Struct(">hqihq").size)
# Of commits with more partitions nothing is kept: what is would take too much room.
_KEPT_PARTITIONS_MAX: Final = 64


@lru_cache(maxsize=1024)
def _parts(first: int, group_id: str, topic: str, partitions: tuple[int, ...]) -> list[bytes]:
    """Records without notes of these partitions, which consumers commit again and again: of each what stands before its
    position, and nothing yet where position and time belong. The first has this offset delta."""
    prefix = _key_prefix(group_id, topic)
    key = varint(len(prefix) + _INT32.size) + prefix
    value = _VALUE_SIZE + _INT16.pack(_VERSION)
    parts = []
    for delta, partition in enumerate(partitions, first):
        # No attributes, the batch's own timestamp, the delta, the key and the beginning of the value.
        before = b"".join((b"\0\0", varint(delta), key, _INT32.pack(partition), value))
        parts += [varint(len(before) + POSITION.size + _REST.size) + before, b"", b""]
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
    positions: Sequence[bytes],
    notes: Sequence[str] | None,
    commit_ms: int,
) -> list[bytes]:
    """Records of a topic's offsets, in pieces; the first has this offset delta. A position is what `POSITION` packs."""
    if notes is not None or len(partitions) > _KEPT_PARTITIONS_MAX:
        rows = zip(partitions, positions, notes or repeat(""), strict=False)
        return [
            _record(delta, group_id, topic, partition, position, note, commit_ms)
            for delta, (partition, position, note) in enumerate(rows, first)
        ]
    parts = _parts(first, group_id, topic, tuple(partitions)).copy()
    parts[1::3] = positions
    parts[2::3] = (_REST.pack(commit_ms),) * len(partitions)
    return parts


def _record(
    delta: int,
    group_id: str,
    topic: str,
    partition: int,
    position: bytes,
    note: str,
    commit_ms: int,
) -> bytes:
    key = _key_prefix(group_id, topic) + _INT32.pack(partition)
    text = note.encode()
    value = b"".join((_INT16.pack(_VERSION), position, _INT16.pack(len(text)), text, _INT64.pack(commit_ms)))
    body = b"".join((b"\0\0", varint(delta), varint(len(key)), key, varint(len(value)), value, b"\0"))
    return varint(len(body)) + body
