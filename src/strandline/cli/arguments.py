"""Arguments that several commands take in the same way."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from strandline.base.numbers import natural
from strandline.cli.exit_codes import USAGE
from strandline.cli.failures import CommandError

# Eleven days; in milliseconds this fits the 32 bits of Kafka's timeouts.
_SECONDS_MAX: Final = 1_000_000
# A larger count would fill the memory, and no person reads so much output.
_COUNT_MAX: Final = 10_000
_PORT_MAX: Final = 65_535
_OFFSET_MAX: Final = 2**63 - 1
_WHOLE_MAX: Final = 2**31 - 1
_UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_ISO_DURATION: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _SECONDS_MAX:  # this refuses NaN too
        raise argparse.ArgumentTypeError(f"{text} is not a time: give seconds from 0 to {_SECONDS_MAX}")
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
        raise argparse.ArgumentTypeError(f"{text} is not valid as {what}: give a number from 0 to {largest}")
    return found


def whole_number(text: str) -> int:
    """Returns a count of at least 1."""
    found = natural(text)
    if found is None or not 1 <= found <= _WHOLE_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not a count: give a number from 1 to {_WHOLE_MAX}")
    return found


def key_values(pairs: Sequence[str], option: str) -> dict[str, str]:
    """Returns the settings of an option that may be repeated, each as KEY=VALUE."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise CommandError(f"{option} {pair}: write it as KEY=VALUE", USAGE)
        found[key.strip()] = value.strip()
    return found


def replica_assignment(text: str) -> dict[int, tuple[int, ...]]:
    """Returns the replicas of a text in Kafka's notation: commas between partitions, colons between brokers."""
    try:
        return {i: tuple(int(node) for node in part.split(":")) for i, part in enumerate(text.split(","))}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} names no brokers: write 1:2:3,2:3:1") from None


def partition_list(text: str) -> tuple[int, ...]:
    """Returns the partitions of a text such as 0,2 or 0-3."""
    found: dict[int, None] = {}
    for part in text.split(","):
        low, _, high = part.partition("-")
        first, last = natural(low), natural(high or low)
        if first is None or last is None or not first <= last <= _WHOLE_MAX:
            raise argparse.ArgumentTypeError(f"{text} names no partitions: write 0,2 or 0-3")
        found.update(dict.fromkeys(range(first, last + 1)))
    return tuple(found)


def timestamp_ms(text: str) -> int:
    """Returns the milliseconds of a time: ISO 8601 (UTC without a zone), milliseconds since 1970, or a time ago such as
    15m, 2h, 7d."""
    unit = _UNITS_MS.get(text[-1:])
    amount = natural(text[:-1])
    if unit is not None and amount is not None:
        return max(int(time.time() * 1000) - amount * unit, 0)
    number = natural(text)
    if number is not None and number <= _OFFSET_MAX:
        return number
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() < 0:
        raise argparse.ArgumentTypeError(
            f"{text} is not a time: give 2026-01-31T12:00:00Z, milliseconds since 1970, or 15m, 2h, 7d for a time ago"
        )
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def duration_ms(text: str) -> int:
    """Returns a duration in milliseconds: ISO 8601 as Kafka's tools take it (P1DT2H), or 15m, 2h, 7d."""
    unit, amount = _UNITS_MS.get(text[-1:]), natural(text[:-1])
    if unit is not None and amount is not None:
        return amount * unit
    found = _ISO_DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise argparse.ArgumentTypeError(f"{text} is not a duration: give 15m, 2h, 7d, or P1DT2H30M")
    days, hours, minutes, rest = (float(group or 0) for group in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + rest) * 1000)
