"""The frame of a value: how bytes name the schema that they were written with.

- `prefix`: in front of the value are a byte 0 and the schema's id in four bytes.
- `header`: the header `__key_schema_id` or `__value_schema_id` has a byte 1 and the schema's GUID in sixteen bytes. The
  value itself has nothing in front.

For Protobuf the path to the message follows the id or the GUID: the number of indexes, then each index, as zigzag
varints. A single zero stands for the first message of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from strandline.serde.contract import RecordHeader
from strandline.serde.errors import NotFramed, UndecodableValue

ID_BYTES: Final = 5
GUID_BYTES: Final = 17
HEADERS: Final = {"key": "__key_schema_id", "value": "__value_schema_id"}
PREFIX: Final = "prefix"
HEADER: Final = "header"
FRAMINGS: Final = (PREFIX, HEADER)
# More than any file nests messages: bytes that claim more are not a frame.
_INDEXES_MAX: Final = 100
_VARINT_BYTES_MAX: Final = 5


class Frame(NamedTuple):
    """The schema that bytes name, by `id` or by `guid`, and the frame's size, after which the rest begins."""

    id: int | None
    guid: str | None
    size: int

    @property
    def name(self) -> str:
        return f"schema id {self.id}" if self.guid is None else f"schema GUID {self.guid}"


def id_prefix(id: int) -> bytes:
    """Returns the bytes in front of a value."""
    return b"\0" + id.to_bytes(4, "big")


def guid_header(guid: str) -> bytes:
    """Returns the content of the header."""
    return b"\x01" + bytes.fromhex(guid.replace("-", ""))


def header_frame(headers: Sequence[RecordHeader], name: str) -> bytes | None:
    """Returns the content of the last header of this name that names a schema; None if there is none."""
    for each, content in reversed(headers):
        if each == name and content is not None and len(content) >= GUID_BYTES and content[0] == 1:
            return bytes(content)
    return None


def read_frame(data: bytes) -> Frame:
    """Returns the frame at the beginning of a value, or of a header's content. Raises NotFramed."""
    if len(data) >= ID_BYTES and data[0] == 0:
        return Frame(int.from_bytes(data[1:ID_BYTES], "big"), None, ID_BYTES)
    if len(data) >= GUID_BYTES and data[0] == 1:
        return Frame(None, _guid_text(data[1:GUID_BYTES]), GUID_BYTES)
    raise NotFramed(
        f"the {len(data)} bytes name no schema: they begin with {bytes(data[:ID_BYTES]).hex() or 'nothing'}, where "
        "a value with a registered schema begins with 00 and the four bytes of the schema's id"
    )


def _guid_text(content: bytes) -> str:
    digits = content.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def write_indexes(path: Sequence[int]) -> bytes:
    """Returns the bytes of a path to a message."""
    if tuple(path) == (0,):
        return b"\0"
    return b"".join(map(_zigzag, (len(path), *path)))


def read_indexes(data: bytes, position: int) -> tuple[tuple[int, ...], int]:
    """Returns the path to the message, and the position at which the message begins. Raises UndecodableValue."""
    count, position = _read_zigzag(data, position)
    if not 0 <= count <= _INDEXES_MAX:
        raise UndecodableValue(f"the path to the message has {count} indexes")
    path = []
    for _ in range(count):
        index, position = _read_zigzag(data, position)
        path.append(index)
    return tuple(path) or (0,), position


def _zigzag(number: int) -> bytes:
    rest = number << 1
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def _read_zigzag(data: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), position
    raise UndecodableValue("the path to the message is cut off")
