"""Numbers in the form in which people write them."""

from __future__ import annotations

from typing import Final

# Python refuses to read some thousands of digits.
_DIGITS_MAX: Final = 100


def natural(text: str) -> int | None:
    """Returns the number that a text of ASCII digits stands for; None for any other text, and for more digits than any
    number here has."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX else None
