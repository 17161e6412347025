"""What several commands take in the same way."""

from __future__ import annotations

import argparse
from typing import Final

# Eleven days; as milliseconds it fits an int, which is what Kafka's timeouts are.
_SECONDS_MAX: Final = 1_000_000
# A person reads what is counted; more would fill memory before it filled a screen.
_COUNT_MAX: Final = 10_000
_PORT_MAX: Final = 65_535


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _SECONDS_MAX:  # NaN is not, either
        raise argparse.ArgumentTypeError(f"{text} is no time: seconds from 0 to {_SECONDS_MAX}")
    return value


def count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) > _COUNT_MAX:
        raise argparse.ArgumentTypeError(f"{text} is no count: a number from 0 to {_COUNT_MAX}")
    return int(text)


def port(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) > _PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text} is no port: a number from 0 to {_PORT_MAX}")
    return int(text)
