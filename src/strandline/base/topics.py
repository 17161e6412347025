"""The rules for names of topics."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

# The longest name that leaves room for "-<partition>" and a "-delete" suffix within a file name's 255 bytes.
NAME_LENGTH_MAX: Final = 249
_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")

SHARE_GROUPS_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", SHARE_GROUPS_TOPIC})


def invalid_topic_name(name: str) -> str | None:
    """Returns why this cannot be a topic's name; None if it can."""
    if not name:
        return "the topic name is empty"
    if name in (".", ".."):
        return f"the topic name cannot be {name!r}"
    if len(name) > NAME_LENGTH_MAX:
        return f"the topic name has {len(name)} characters, and {NAME_LENGTH_MAX} are allowed"
    if not _CHARACTERS.issuperset(name):
        return f"the topic name {name!r} has characters other than ASCII letters, digits, '.', '_' and '-'"
    return None


def colliding_name(name: str, existing: Collection[str]) -> str | None:
    """Returns an existing topic whose metrics would have the same name, because '.' and '_' are the same there."""
    if "." not in name and "_" not in name:
        return None
    plain = name.replace(".", "_")
    return next((other for other in existing if other.replace(".", "_") == plain), None)
