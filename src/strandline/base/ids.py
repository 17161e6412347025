"""Identifiers as Kafka writes them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final, NamedTuple

ZERO_UUID: Final = bytes(16)
# Kafka reserves the first hundred ids for its own use; a log directory's id must not be one of them.
RESERVED_UUIDS: Final = frozenset(number.to_bytes(16, "big") for number in range(100))
METADATA_TOPIC_ID: Final = (1).to_bytes(16, "big")
METADATA_TOPIC: Final = "__cluster_metadata"


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class ProducerIdAndEpoch(NamedTuple):
    """The id and epoch under which a producer writes."""

    producer_id: int
    epoch: int


class Uuid(bytes):
    """Sixteen bytes, which are shown in the form of Kafka's tools."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Uuid({uuid_text(self)})"


def uuid_text(uuid: bytes | bytearray) -> str:
    """Returns 22 characters of URL-safe base64, the form of Kafka's tools."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode()


def new_uuid(random_bytes: Callable[[int], bytes]) -> bytes:
    """Returns a UUID of version 4 whose text does not begin with a dash, which a command line would take for an option.

    `random_bytes(count)` is the source of random bytes. Apache Kafka draws again in the same case.
    """
    while True:
        raw = bytearray(random_bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if not uuid_text(raw).startswith("-"):
            return bytes(raw)


def parse_uuid(text: str) -> bytes:
    if len(text) > 24:
        raise ValueError(f"{text!r} is too long to be a UUID")
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a UUID: it holds {len(raw)} bytes, not 16")
    return raw
