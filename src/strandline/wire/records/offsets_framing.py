"""The format of keys and values in `__consumer_offsets` and `__transaction_state`.

A key is its type as int16 and the message in version 0; a value is its version as int16 and the message. The types are
the API keys of the declarations.
"""

from __future__ import annotations

from typing import Final

from strandline.wire.codec import decode, encode_into
from strandline.wire.compiler import DecodeError
from strandline.wire.records import offsets_topic
from strandline.wire.schema import Message

_KEYS: Final[dict[int, type[Message]]] = {}
_VALUES: Final[dict[int, type[Message]]] = {}
for _name, _cls in vars(offsets_topic).items():
    if isinstance(_cls, type) and issubclass(_cls, Message) and _cls.API_KEY >= 0:
        (_KEYS if _name.endswith("Key") else _VALUES)[_cls.API_KEY] = _cls

# The version in which each value is written, if it is not 0; Kafka 4 writes and reads the same.
_WRITTEN_VERSIONS: Final[dict[type[Message], int]] = {
    offsets_topic.OffsetCommitValue: 4,
    offsets_topic.GroupMetadataValue: 3,
}


def encode_key(key: Message) -> bytes:
    out = bytearray(key.API_KEY.to_bytes(2, "big"))
    encode_into(key, 0, out)
    return bytes(out)


def encode_value(value: Message) -> bytes:
    version = _WRITTEN_VERSIONS.get(type(value), 0)
    # Clients before version 5 of OffsetCommit chose an expiry time; only version 1 of the record has it.
    if isinstance(value, offsets_topic.OffsetCommitValue) and value.expire_timestamp >= 0:
        version = 1
    out = bytearray(version.to_bytes(2, "big"))
    encode_into(value, version, out)
    return bytes(out)


def decode_entry(key: bytes, value: bytes | None) -> tuple[Message, Message | None] | None:
    """Returns key and value; None for a record of an unknown kind."""
    kind = int.from_bytes(key[:2], "big", signed=True)
    cls = _KEYS.get(kind)
    if cls is None:
        return None
    decoded_key = decode(cls, 0, key, 2)
    if value is None:
        return decoded_key, None
    version = int.from_bytes(value[:2], "big", signed=True)
    value_cls = _VALUES[kind]
    if version not in value_cls.VERSIONS:
        raise DecodeError(f"{value_cls.__name__} of version {version}")
    return decoded_key, decode(value_cls, version, value, 2)
