"""Records of committed offsets, encoded by hand, because busy groups commit thousands of times a second.

The bytes are those of `OffsetCommitKey` and of `OffsetCommitValue` in version 4; tests compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from struct import Struct
from typing import Final

from strandline.base.ids import ZERO_UUID
from strandline.wire.compiler import uvarint
from strandline.wire.record_batch import varint
from strandline.wire.records.offsets_topic import OffsetCommitKey

_TYPE: Final = OffsetCommitKey.API_KEY.to_bytes(2, "big")
_VERSION: Final = (4).to_bytes(2, "big")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
# An offset and its leader epoch, which follow each other in requests and in records.
POSITION: Final = Struct(">qi")
# The fields after the position in a record without metadata: an empty text, and the time of the commit.
_NO_NOTE: Final = b"\1"
_NO_HEADERS: Final = b"\0"
_VALUE_BYTES: Final = (
    len(_VERSION) + POSITION.size + len(_NO_NOTE) + _INT64.size
)  # without metadata and without tags
# Commits with more partitions are not cached, because they would take too much room.
_KEPT_PARTITIONS_MAX: Final = 64


@lru_cache(maxsize=1024)
def _parts(
    first: int, group_id: str, topic: str, topic_id: bytes, partitions: tuple[int, ...]
) -> list[bytes]:
    """Returns records without metadata for these partitions, which consumers commit again and again: the bytes before
    each position, empty parts for position and time, and the bytes after the last. The first record has this offset
    delta."""
    prefix = _key_prefix(group_id, topic)
    key = varint(len(prefix) + _INT32.size) + prefix
    end = _tags(topic_id)
    value = varint(_VALUE_BYTES + len(end)) + _VERSION
    end += _NO_HEADERS
    behind_value_size = POSITION.size + len(_NO_NOTE) + _INT64.size + len(end)
    parts = []
    before_this = b""
    for delta, partition in enumerate(partitions, first):
        # No attributes, the batch's timestamp, the offset delta, the key and the beginning of the value.
        before = b"".join((b"\0\0", varint(delta), key, _INT32.pack(partition), value))
        parts += [before_this + varint(len(before) + behind_value_size) + before, b"", b""]
        before_this = end
    return [*parts, before_this]


@lru_cache(maxsize=1024)
def _tags(topic_id: bytes) -> bytes:
    """Returns the tagged fields of a value: the topic's id, if it has one."""
    return b"\0" if topic_id == ZERO_UUID else b"".join((b"\1\0", uvarint(len(topic_id)), topic_id))


def _key_prefix(group_id: str, topic: str) -> bytes:
    """Returns the bytes of a key before the partition."""
    group, name = group_id.encode(), topic.encode()
    return b"".join((_TYPE, _INT16.pack(len(group)), group, _INT16.pack(len(name)), name))


def records_of(
    first: int,
    group_id: str,
    topic: str,
    topic_id: bytes,
    partitions: Sequence[int],
    positions: Sequence[bytes],
    notes: Sequence[str] | None,
    commit_ms: int,
) -> list[bytes]:
    """Returns the records of a topic's offsets, in pieces; the first record has this offset delta. A position is packed
    by `POSITION`."""
    if notes is not None or len(partitions) > _KEPT_PARTITIONS_MAX:
        rows = zip(partitions, positions, notes or repeat(""), strict=False)
        prefix, end = _key_prefix(group_id, topic), _INT64.pack(commit_ms) + _tags(topic_id)
        return [
            _record(delta, prefix + _INT32.pack(partition), position, note, end)
            for delta, (partition, position, note) in enumerate(rows, first)
        ]
    parts = _parts(first, group_id, topic, topic_id, tuple(partitions)).copy()
    parts[1::3] = positions
    parts[2::3] = (_NO_NOTE + _INT64.pack(commit_ms),) * len(partitions)
    return parts


def _record(delta: int, key: bytes, position: bytes, note: str, end: bytes) -> bytes:
    text = note.encode()
    value = b"".join((_VERSION, position, uvarint(len(text) + 1), text, end))
    body = b"".join((b"\0\0", varint(delta), varint(len(key)), key, varint(len(value)), value, _NO_HEADERS))
    return varint(len(body)) + body
