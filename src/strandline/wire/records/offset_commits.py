"""Key and value of a committed offset's record, written by hand: busy groups commit thousands of times a second.

The bytes are those of `OffsetCommitKey` and of `OffsetCommitValue` in version 3, which tests compare.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from strandline.wire.records.offsets_topic import OffsetCommitKey

_TYPE: Final = OffsetCommitKey.API_KEY.to_bytes(2, "big")
_VERSION: Final = 3
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_HEAD: Final = Struct(">hqih")
_WITHOUT_NOTE: Final = Struct(">hqihq")


def key_prefix(group_id: str, topic: str) -> bytes:
    """All of a key but the partition."""
    group, name = group_id.encode(), topic.encode()
    return b"".join((_TYPE, _INT16.pack(len(group)), group, _INT16.pack(len(name)), name))


def key(prefix: bytes, partition: int) -> bytes:
    return prefix + _INT32.pack(partition)


def value(offset: int, leader_epoch: int, metadata: str, commit_ms: int) -> bytes:
    if not metadata:
        return _WITHOUT_NOTE.pack(_VERSION, offset, leader_epoch, 0, commit_ms)
    note = metadata.encode()
    return _HEAD.pack(_VERSION, offset, leader_epoch, len(note)) + note + _INT64.pack(commit_ms)
