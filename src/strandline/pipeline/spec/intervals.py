"""Spans of time as people write them in a spec, such as `10 minutes`."""

from __future__ import annotations

import re
from typing import Final

_UNIT_MS: Final = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
}
_INTERVAL: Final = re.compile(rf"([0-9]+)\s*({'|'.join(_UNIT_MS)})s?")
# A hundred years. Spark counts microseconds in 64 bits, and days in 32; a longer interval is a typing error anyway.
_INTERVAL_MS_MAX: Final = 36_500 * _UNIT_MS["day"]


def interval_ms(text: str) -> int | None:
    """Returns the milliseconds of an interval; None if Spark cannot read it."""
    match = _INTERVAL.fullmatch(text)
    if match is None:
        return None
    milliseconds = int(match[1]) * _UNIT_MS[match[2]]
    return milliseconds if milliseconds <= _INTERVAL_MS_MAX else None
