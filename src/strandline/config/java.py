"""Java's rules for texts and numbers, which Kafka's configuration follows.

A value that Apache Kafka accepts must be accepted here and be shown in the same characters, so these follow
String.trim, Integer.parseInt, Double.parseDouble, Double.toString and String.split rather than Python's own.
"""

from __future__ import annotations

import re

_DURATION = re.compile(
    r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?", re.IGNORECASE
)

# String.trim cuts everything up to and including the blank, and no other Unicode space.
TRIMMED = "".join(map(chr, range(0x21)))

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
SHORT_MIN, SHORT_MAX = -(2**15), 2**15 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
DOUBLE_MAX = 1.7976931348623157e308

# More digits than this, without leading zeros, do not fit 64 bits; the limit also keeps int() from long work.
_DIGITS_MAX = 19


def trim(text: str) -> str:
    return text.strip(TRIMMED)


def parse_integer(text: str, smallest: int, largest: int) -> int | None:
    """Returns the decimal number of `text`; None if it is no number between the two bounds."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal():
        return None
    digits = digits.lstrip("0")
    if len(digits) > _DIGITS_MAX:
        return None
    number = int(digits or "0")
    if text[0] == "-":
        number = -number
    return number if smallest <= number <= largest else None


def parse_duration_ms(text: str) -> int | None:
    """Returns the milliseconds of an ISO 8601 duration of days, hours, minutes and seconds, as Duration.parse reads
    it."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


def parse_double(text: str) -> float | None:
    """Returns the number that Double.parseDouble reads: it allows the suffixes d and f, and the words NaN and
    Infinity."""
    body = trim(text)
    unsigned = body[1:] if body[:1] in ("+", "-") else body
    if unsigned in ("NaN", "Infinity"):
        return float(body)
    if unsigned[:2] in ("0x", "0X"):
        return _parse_hexadecimal_double(body)
    if unsigned[-1:] in tuple("dDfF"):
        body, unsigned = body[:-1], unsigned[:-1]
    if not unsigned or not set(unsigned) <= set("0123456789.eE+-"):
        return None  # Python would also read "1_0", "inf" and digits of other scripts.
    try:
        return float(body)
    except ValueError:
        return None


def _parse_hexadecimal_double(body: str) -> float | None:
    if "p" not in body and "P" not in body:
        return None
    try:
        return float.fromhex(body.rstrip("dDfF") if body[-1] in "dDfF" else body)
    except (ValueError, OverflowError):
        return None


def print_double(number: float) -> str:
    """Returns Double.toString: at least one digit after the point, an exponent from 10^7 up and below 10^-3."""
    if number != number:
        return "NaN"
    sign, size = ("-", -number) if number < 0 else ("", number)
    if size == float("inf"):
        return sign + "Infinity"
    shortest = repr(size)  # the fewest digits that are read back as the same number, as in Java
    if size == 0 or 1e-3 <= size < 1e7:
        return repr(number)
    mantissa, _, exponent = shortest.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = len(digits) - len(fraction) - 1 + int(exponent or 0)
    digits = digits.rstrip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def print_value(value: object) -> str:
    """Returns the text of a parsed value as Java's string concatenation puts it into an error message."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float):
        return print_double(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(value) + "]"
    return str(value)


def split(text: str, separator: str = ",") -> list[str]:
    """Returns String.split: the empty strings at the end are dropped, but the empty text is one empty string."""
    parts = text.split(separator)
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts
