"""Numbers as people write them."""

from __future__ import annotations

from typing import Final

# Python refuses to read some thousands.
_DIGITS_MAX: Final = 100


def natural(text: str) -> int | None:
    """The number that digits stand for, the ten of ASCII and nothing else; None for any other text, and for more
    digits than anything here is counted in."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX else None
