"""The seven compatibility levels: which earlier versions a schema is compared with, and in which direction.

| level | compared with | direction |
| --- | --- | --- |
| NONE | nothing | |
| BACKWARD | the latest version | the new schema reads old data |
| FORWARD | the latest version | the old schema reads new data |
| FULL | the latest version | both |
| …_TRANSITIVE | every version, the latest first | as above |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strandline.registry.formats.large import find_incompatibilities
from strandline.registry.formats.parsed import ParsedSchema

LEVELS: Final = (
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE",
)  # fmt: skip
_SHOWN_MAX: Final = 10 * 1024  # the most characters of an old schema in a message


def violations(
    level: str, schema: ParsedSchema, earlier: Sequence[tuple[int, ParsedSchema]], *, is_lenient: bool = False
) -> list[str]:
    """Returns the incompatibilities of a schema by a level, after these versions in ascending order; empty if it is
    allowed."""
    direction, _, transitive = level.partition("_")
    if direction == "NONE" or not earlier:
        return []
    compared = reversed(earlier) if transitive else [earlier[-1]]
    for version, previous in compared:
        if previous.type != schema.type:
            return ["Incompatible because of different schema type"]
        found: list[str] = []
        if direction in ("FORWARD", "FULL"):
            found += _named(find_incompatibilities(previous, schema, is_lenient=is_lenient), "old", "new")
        if direction == "FORWARD" and found:
            return [*found, *_shown(version, previous)]
        if direction in ("BACKWARD", "FULL"):
            backward = _named(find_incompatibilities(schema, previous, is_lenient=is_lenient), "new", "old")
            if backward:
                backward += _shown(version, previous)
            found += backward
        if found:
            return found
    return []


def _named(messages: list[str], reader: str, writer: str) -> list[str]:
    return [message.replace("%s", reader, 1).replace("%s", writer, 1) for message in messages]


def _shown(version: int, previous: ParsedSchema) -> list[str]:
    text = previous.text
    shown = f"'{text}'" if len(text) <= _SHOWN_MAX else f"<truncated> '{text[:_SHOWN_MAX]}...'"
    return [f"{{oldSchemaVersion: {version}}}", f"{{oldSchema: {shown}}}"]
