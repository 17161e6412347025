"""The partitions of a Fetch response, and its bytes without the records, which are sent from their files."""

from __future__ import annotations

from struct import Struct
from typing import Final

from strandline.base.aborted_transaction import AbortedTransaction
from strandline.base.errors import ErrorCode
from strandline.broker.api.leader_hints import Hint, LeaderAddress
from strandline.broker.replication.fetch_sessions import SessionPartition
from strandline.broker.replication.replica import Replica
from strandline.storage.segment import Slice
from strandline.wire.compiler import uvarint

READ_COMMITTED: Final = 1
FLEXIBLE_FROM: Final = 12
TOPIC_IDS_FROM: Final = 13
_PARTITION: Final = Struct(">ihqqq")  # index, error, high watermark, last stable offset, log start
_ABORTED: Final = Struct(">qq")  # producer id, first offset
_DIVERGING: Final = Struct(">iq")  # epoch, end offset
_HINT: Final = Struct(">ii")  # leader, its epoch
_INT32: Final = Struct(">i")


class Read:
    """The result of one partition."""

    __slots__ = (
        "aborted",
        "diverging",
        "error_code",
        "high_watermark",
        "last_stable",
        "log_start",
        "partition",
        "preferred",
        "records",
        "replica",
    )

    def __init__(self, partition: SessionPartition, replica: Replica | None) -> None:
        self.partition = partition
        self.replica = replica
        self.error_code: int = ErrorCode.NONE
        self.high_watermark = -1
        self.last_stable = -1
        self.log_start = -1
        self.records: Slice | None = None
        self.aborted: list[AbortedTransaction] = []
        self.diverging: tuple[int, int] | None = None
        self.preferred = -1  # the replica from which the consumer should read instead


def topic_name(version: int, topic: str, topic_id: bytes) -> bytes:
    if version >= TOPIC_IDS_FROM:
        return topic_id
    name = topic.encode()
    return _compact(topic) if version >= FLEXIBLE_FROM else len(name).to_bytes(2, "big") + name


def partition_head(version: int, isolation_level: int, read: Read) -> bytes:
    """Returns the bytes of a partition before its records."""
    size = read.records.size if read.records is not None else 0
    head = _PARTITION.pack(
        read.partition.index, read.error_code, read.high_watermark, read.last_stable, read.log_start
    )
    if version < 5:
        head = head[:-8]
    # Kafka has an empty list for read_committed without an error, and for an unknown partition; otherwise null.
    has_list = read.error_code == ErrorCode.NONE and isolation_level == READ_COMMITTED
    has_list = has_list or read.error_code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )
    count = len(read.aborted) if has_list else -1
    if version >= FLEXIBLE_FROM:
        rows = b"".join(_ABORTED.pack(*row[:2]) + b"\x00" for row in read.aborted)
        return head + uvarint(count + 1) + rows + _INT32.pack(read.preferred) + uvarint(size + 1)
    rows = b"".join(_ABORTED.pack(*row[:2]) for row in read.aborted)
    preferred = _INT32.pack(read.preferred) if version >= 11 else b""
    return head + _INT32.pack(count) + rows + preferred + _INT32.pack(size)


def partition_tags(read: Read, hint: Hint | None) -> bytes:
    if read.diverging is not None:  # this is no error, so there is no hint
        return _tagged(0, _DIVERGING.pack(*read.diverging) + b"\x00")
    return b"\x00" if hint is None else _tagged(1, _HINT.pack(*hint) + b"\x00")


def response_tags(addresses: list[LeaderAddress]) -> bytes:
    if not addresses:
        return b"\x00"
    content = bytearray(uvarint(len(addresses) + 1))
    for node_id, host, port, rack in addresses:
        content += _INT32.pack(node_id) + _compact(host) + _INT32.pack(port)
        content += (b"\x00" if rack is None else _compact(rack)) + b"\x00"
    return _tagged(0, bytes(content))


def _tagged(tag: int, content: bytes) -> bytes:
    """Returns a section with one tagged field."""
    return b"\x01" + uvarint(tag) + uvarint(len(content)) + content


def _compact(text: str) -> bytes:
    data = text.encode()
    return uvarint(len(data) + 1) + data
