"""Records of committed offsets, written by hand: busy groups commit thousands of times a second.

The bytes are those of `OffsetCommitKey` and of `OffsetCommitValue` in version 3, which tests compare.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
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
# Of a record without a note what differs: the partition, the value's size, the value, and no headers.
_WITHOUT_NOTE: Final = Struct(">ibhqihqb")
_VALUE_BYTES: Final = Struct(">hqihq").size
_VALUE_SIZE: Final = varint(_VALUE_BYTES)[0]
_DELTAS_OF_A_BYTE: Final = 64


@lru_cache(maxsize=4096)
def _beginnings(group_id: str, topic: str) -> tuple[bytes, bytes]:
    """What records of a topic without notes begin with, before and behind a delta of one byte."""
    prefix = _key_prefix(group_id, topic)
    key_size = len(prefix) + _INT32.size
    behind = varint(key_size) + prefix
    size = 2 + 1 + len(behind) + _WITHOUT_NOTE.size
    return varint(size) + b"\0\0", behind


def _key_prefix(group_id: str, topic: str) -> bytes:
    """All of a key but the partition."""
    group, name = group_id.encode(), topic.encode()
    return b"".join((_TYPE, _INT16.pack(len(group)), group, _INT16.pack(len(name)), name))


def append_records(
    records: list[bytes],
    group_id: str,
    topic: str,
    committed: Iterable[tuple[int, tuple[int, int, str, int, int]]],
) -> None:
    """Records of these offsets of a topic: partition, then offset, leader epoch, note and time of the commit."""
    before, behind = _beginnings(group_id, topic)
    pack = _WITHOUT_NOTE.pack
    for partition, (offset, leader_epoch, note, commit_ms, _) in committed:
        delta = len(records)
        if note or delta >= _DELTAS_OF_A_BYTE:
            records.append(_record(delta, group_id, topic, partition, offset, leader_epoch, note, commit_ms))
            continue
        rest = pack(partition, _VALUE_SIZE, _VERSION, offset, leader_epoch, 0, commit_ms, 0)
        records.append(b"%b%c%b%b" % (before, delta << 1, behind, rest))


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
