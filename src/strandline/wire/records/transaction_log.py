"""Keys and values of the records in __transaction_state.

A key is its type as int16 (0) and the message; a value is its version as int16 and the message.
"""

from __future__ import annotations

from strandline.wire.codec import decode, encode_into
from strandline.wire.compiler import DecodeError
from strandline.wire.schema import Message, Struct, array, field, int8, int16, int32, int64, string


class TransactionLogKey(Message, key=0, versions="0"):
    transactional_id: str = field(string, "0")


class PartitionsSchema(Struct):
    topic: str = field(string)
    partition_ids: tuple[int, ...] = field(array(int32))


class TransactionLogValue(Message, key=0, versions="0-1", flexible="1+"):
    producer_id: int = field(int64)
    previous_producer_id: int = field(int64, "1+", default=-1, tag=0, tagged="1+", ignorable=True)
    next_producer_id: int = field(int64, "1+", default=-1, tag=1, tagged="1+", ignorable=True)
    producer_epoch: int = field(int16)
    next_producer_epoch: int = field(int16, "1+", default=-1, tag=3, tagged="1+", ignorable=True)
    transaction_timeout_ms: int = field(int32)
    transaction_status: int = field(int8)
    transaction_partitions: tuple[PartitionsSchema, ...] | None = field(
        array(PartitionsSchema), nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = field(int64)
    transaction_start_timestamp_ms: int = field(int64)
    client_transaction_version: int = field(int16, "1+", default=0, tag=2, tagged="1+", ignorable=True)


def encode_key(transactional_id: str) -> bytes:
    out = bytearray(TransactionLogKey.API_KEY.to_bytes(2, "big"))
    encode_into(TransactionLogKey(transactional_id=transactional_id), 0, out)
    return bytes(out)


def encode_value(value: TransactionLogValue, version: int) -> bytes:
    out = bytearray(version.to_bytes(2, "big"))
    encode_into(value, version, out)
    return bytes(out)


def decode_entry(key: bytes, value: bytes | None) -> tuple[str, TransactionLogValue | None] | None:
    """Returns the transactional id and its state, which is None for a tombstone; None for a record of an unknown
    kind."""
    if int.from_bytes(key[:2], "big", signed=True) != TransactionLogKey.API_KEY:
        return None
    transactional_id = decode(TransactionLogKey, 0, key, 2).transactional_id
    if value is None:
        return transactional_id, None
    version = int.from_bytes(value[:2], "big", signed=True)
    if version not in TransactionLogValue.VERSIONS:
        raise DecodeError(f"TransactionLogValue of version {version}")
    return transactional_id, decode(TransactionLogValue, version, value, 2)
