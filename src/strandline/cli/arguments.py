"""What several commands take in the same way."""

from __future__ import annotations

import argparse
from typing import Final

from strandline.base.numbers import natural

# Eleven days; as milliseconds it fits an int, which is what Kafka's timeouts are.
_SECONDS_MAX: Final = 1_000_000
# A person reads what is counted; more would fill memory before it filled a screen.
_COUNT_MAX: Final = 10_000
_PORT_MAX: Final = 65_535
_OFFSET_MAX: Final = 2**63 - 1


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _SECONDS_MAX:  # NaN is not, either
        raise argparse.ArgumentTypeError(f"{text} is no time: seconds from 0 to {_SECONDS_MAX}")
    return value


def count(text: str) -> int:
    return _up_to(_COUNT_MAX, text, "count")


def offset(text: str) -> int:
    return _up_to(_OFFSET_MAX, text, "offset")


def port(text: str) -> int:
    return _up_to(_PORT_MAX, text, "port")


def _up_to(largest: int, text: str, what: str) -> int:
    found = natural(text)
    if found is None or found > largest:
        raise argparse.ArgumentTypeError(f"{text} is no {what}: a number from 0 to {largest}")
    return found
