"""Settings in a file that several kinds of clients share: which of them a kind does not have."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

KINDS: Final = ("admin", "producer", "consumer")


def is_of_another_kind(key: str, kind: str) -> bool:
    """Returns True for a setting that another kind of client has, and this one has not."""
    return key not in _known_keys(kind) and any(key in _known_keys(each) for each in KINDS)


@cache
def _known_keys(kind: str) -> frozenset[str]:
    module = import_module(f"strandline.client.config.{kind}_keys")
    return frozenset(key.name for key in getattr(module, f"{kind.upper()}_KEYS"))
