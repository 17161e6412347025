"""Converts records to JSON rows and back: `produce --from-json` reads the output of `consume --json`.

Keys and values are text where they are UTF-8; other bytes are in `key_base64` and `value_base64`. A missing or null
value is a tombstone. Headers are a list, because a key may come twice.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from strandline.client.consumer.record_decoder import ConsumerRecord

SHAPE: Final[Any] = {
    "topic": "text",
    "partition": "number",
    "offset": "number",
    "timestamp": "number",
    "timestamp_type": "text",
    "key": "text?",
    "value": "text?",
    "headers": [{"key": "text", "value": "text?"}],
}


_FIELDS: Final = frozenset({*SHAPE, "key_base64", "value_base64"})


class Row(NamedTuple):
    """A record to produce."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None = None
    timestamp_ms: int | None = None


class BadRow(ValueError):
    """The text is not a valid row; the message says why."""


def to_row(record: ConsumerRecord) -> dict[str, Any]:
    """Returns a record as an object that JSON can have."""
    row: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": "append" if record.timestamp_type else "create",
    }
    _put(row, "key", record.key)
    _put(row, "value", record.value)
    row["headers"] = [_header(key, value) for key, value in record.headers]
    return row


def _put(row: dict[str, Any], name: str, data: bytes | None) -> None:
    if data is None:
        row[name] = None
        return
    try:
        row[name] = data.decode()
    except UnicodeDecodeError:
        row[f"{name}_base64"] = b64encode(data).decode()


def header_bytes(name: str, value: bytes | None) -> bytes:
    """Returns a header as one text: name=value."""
    return name.encode("utf-8", "surrogateescape") + b"=" + (value or b"")


def _header(name: str, value: bytes | None) -> dict[str, Any]:
    header: dict[str, Any] = {"key": name}
    _put(header, "value", value)
    return header


def from_row(line: bytes | str) -> Row:
    """Returns the record that a row describes. Raises BadRow if the row is not valid."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise BadRow(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise BadRow("not a JSON object")
    unknown = sorted(set(row) - _FIELDS)
    if unknown and not {"value", "value_base64"} & set(row):
        raise BadRow(
            f"no value, and {', '.join(unknown)}, which a row does not have: "
            'the value is in "value" or "value_base64"; null is a tombstone'
        )
    partition, timestamp = row.get("partition"), row.get("timestamp")
    for name, number in (("partition", partition), ("timestamp", timestamp)):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise BadRow(f"{name} is {number!r}, not a whole number")
    # Records without a time have -1; the producer gives them the present time.
    timestamp_ms = timestamp if timestamp is not None and timestamp >= 0 else None
    return Row(_get(row, "key"), _get(row, "value"), _headers(row.get("headers")), partition, timestamp_ms)


def _get(row: dict[str, Any], name: str) -> bytes | None:
    encoded = row.get(f"{name}_base64")
    if encoded is not None:
        try:
            return b64decode(encoded, validate=True)
        except (ValueError, TypeError) as error:
            raise BadRow(f"{name}_base64 is not base64: {error}") from error
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    # A value that is JSON itself is written as JSON.
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _headers(found: Any) -> list[tuple[str, bytes | None]]:
    if found is None:
        return []
    if isinstance(found, dict):
        found = [{"key": key, "value": value} for key, value in found.items()]
    if not isinstance(found, list) or not all(
        isinstance(each, dict) and isinstance(each.get("key"), str) for each in found
    ):
        raise BadRow('headers must be a list of {"key": ..., "value": ...}')
    return [(each["key"], _get(each, "value")) for each in found]
