"""The records of MirrorMaker 2 in its own formats, so that MirrorClient and RemoteClusterUtils read them.

They are Kafka's plain types: a string is its length in two bytes and UTF-8, numbers are big-endian.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_TWO_OFFSETS: Final = Struct(">qq")
_VERSION: Final = _INT16.pack(0)


class Heartbeat(NamedTuple):
    """A sign of life of a flow, in the topic `heartbeats`."""

    source: str
    target: str
    timestamp_ms: int

    def encode(self) -> tuple[bytes, bytes]:
        """Returns the key and the value of the record."""
        return _string(self.source) + _string(self.target), _VERSION + _INT64.pack(self.timestamp_ms)

    @classmethod
    def decode(cls, key: bytes, value: bytes) -> Heartbeat:
        source, position = _read_string(key, 0)
        target, _ = _read_string(key, position)
        return cls(source, target, _INT64.unpack_from(value, _INT16.size)[0])


class Checkpoint(NamedTuple):
    """A group's committed offset at both ends, in the topic `<source>.checkpoints.internal` of the target."""

    group: str
    topic: str  # at the target
    partition: int
    source_offset: int
    target_offset: int
    metadata: str = ""

    def encode(self) -> tuple[bytes, bytes]:
        """Returns the key and the value of the record."""
        key = _string(self.group) + _string(self.topic) + _INT32.pack(self.partition)
        offsets = _TWO_OFFSETS.pack(self.source_offset, self.target_offset)
        return key, _VERSION + offsets + _string(self.metadata)

    @classmethod
    def decode(cls, key: bytes, value: bytes) -> Checkpoint:
        group, position = _read_string(key, 0)
        topic, position = _read_string(key, position)
        (partition,) = _INT32.unpack_from(key, position)
        source_offset, target_offset = _TWO_OFFSETS.unpack_from(value, _INT16.size)
        metadata, _ = _read_string(value, _INT16.size + _TWO_OFFSETS.size)
        return cls(group, topic, partition, source_offset, target_offset, metadata)


class OffsetSync(NamedTuple):
    """The offsets of one copied record at both ends, in the topic `mm2-offset-syncs.<alias>.internal`."""

    topic: str  # at the source
    partition: int
    source_offset: int
    target_offset: int

    def encode(self) -> tuple[bytes, bytes]:
        """Returns the key and the value of the record."""
        key = _string(self.topic) + _INT32.pack(self.partition)
        return key, _TWO_OFFSETS.pack(self.source_offset, self.target_offset)

    @classmethod
    def decode(cls, key: bytes, value: bytes) -> OffsetSync:
        topic, position = _read_string(key, 0)
        (partition,) = _INT32.unpack_from(key, position)
        return cls(topic, partition, *_TWO_OFFSETS.unpack(value))


def _string(text: str) -> bytes:
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded


def _read_string(data: bytes, position: int) -> tuple[str, int]:
    (size,) = _INT16.unpack_from(data, position)
    start = position + _INT16.size
    return data[start : start + size].decode(), start + size
