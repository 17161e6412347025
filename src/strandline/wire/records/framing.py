"""The format of metadata records in the values of a record batch, and the keys of control records.

A metadata record is: frame version 1, API key and version as unsigned varints, then the message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strandline.wire import record_batch
from strandline.wire.codec import decode, encode_into
from strandline.wire.compiler import DecodeError, read_uvarint, uvarint
from strandline.wire.record_batch import CONTROL_FLAG, Record
from strandline.wire.records import metadata
from strandline.wire.schema import Message, bytes_, field

_FRAME_VERSION: Final = 1

ABORT: Final = 0
COMMIT: Final = 1
LEADER_CHANGE: Final = 2
SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4
KRAFT_VERSION: Final = 5
KRAFT_VOTERS: Final = 6

_CONTROL_VERSION: Final = (0).to_bytes(2, "big")

# The version in which each record is written, if it is not 0.
_WRITTEN_VERSIONS: Final[dict[type[Message], int]] = {
    metadata.RegisterBrokerRecord: 3,
    metadata.PartitionRecord: 2,
    metadata.PartitionChangeRecord: 2,
    metadata.BrokerRegistrationChangeRecord: 2,
}

_BY_KEY: Final[dict[int, type[Message]]] = {
    cls.API_KEY: cls
    for cls in vars(metadata).values()
    if isinstance(cls, type) and issubclass(cls, Message) and cls.API_KEY >= 0
}


class ForeignRecord(Message, versions="0"):
    """A record of an unknown kind, unchanged: a record of another version must not be lost."""

    value: bytes = field(bytes_)


def encode_metadata_record(message: Message) -> bytes:
    if isinstance(message, ForeignRecord):
        return message.value
    version = _WRITTEN_VERSIONS.get(type(message), 0)
    out = bytearray(uvarint(_FRAME_VERSION) + uvarint(message.API_KEY) + uvarint(version))
    encode_into(message, version, out)
    return bytes(out)


def decode_metadata_record(value: bytes) -> Message:
    frame, position = read_uvarint(value, 0)
    if frame != _FRAME_VERSION:
        raise DecodeError(f"a metadata record of frame version {frame}")
    key, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    cls = _BY_KEY.get(key)
    return ForeignRecord(value=value) if cls is None else decode(cls, version, value, position)


def metadata_batch(messages: Iterable[Message], base_offset: int, epoch: int, timestamp: int) -> bytes:
    records = [
        Record(base_offset + number, timestamp, None, encode_metadata_record(message))
        for number, message in enumerate(messages)
    ]
    return record_batch.build_batch(records, leader_epoch=epoch)


def control_batch(
    contents: Iterable[tuple[int, bytes]], base_offset: int, epoch: int, timestamp: int
) -> bytes:
    """Returns a batch of control records, each with its kind."""
    records = [
        Record(base_offset + number, timestamp, _CONTROL_VERSION + kind.to_bytes(2, "big"), content)
        for number, (kind, content) in enumerate(contents)
    ]
    return record_batch.build_batch(records, leader_epoch=epoch, attributes=CONTROL_FLAG)


def control_kind(record: Record) -> int:
    return int.from_bytes((record.key or b"")[2:4], "big")
