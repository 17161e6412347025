"""Patterns of `timestampFormat` and its kin, judged without Spark, which finds a bad one only when it reads a value.

What counts is what Spark's parsers take: the letters of Java's DateTimeFormatter, without those that Spark refuses when
it parses (the table of Spark's page "Datetime Patterns for Formatting and Parsing").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

# Options of decoders that are patterns, by their names in lower case.
PATTERN_OPTIONS: Final = ("timestampformat", "timestampntzformat", "dateformat")
# How often a letter may be repeated.
_REPEATS: Final[Mapping[str, Sequence[int]]] = {
    "G": range(1, 5),
    "y": range(1, 7),
    "M": range(1, 5),
    "L": range(1, 5),
    "d": range(1, 3),
    "D": range(1, 4),
    "a": range(1, 2),
    "h": range(1, 3),
    "K": range(1, 3),
    "k": range(1, 3),
    "H": range(1, 3),
    "m": range(1, 3),
    "s": range(1, 3),
    "S": range(1, 10),
    "V": range(2, 3),
    "v": (1, 4),
    "z": range(1, 5),
    "O": (1, 4),
    "g": range(1, 20),
    "X": range(1, 6),
    "x": range(1, 6),
    "Z": range(1, 6),
}
_INSTEAD: Final = {
    "Y": "yyyy is the year",
    "u": "yyyy is the year",
    "D": "dd is the day",
    "n": "SSS is the fraction",
}
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'")


def why_no_pattern(text: str) -> str | None:
    """What is wrong with a pattern; None if Spark takes it."""
    if not text.strip():
        return "is empty"
    plain = _QUOTED.sub(" ", text)
    if "'" in plain:
        return "has a quote without an end: text is between two, as in yyyy-MM-dd'T'HH:mm"
    depth = 0
    for sign, run in groupby(plain):
        count = len(list(run))
        if sign in "{}#":
            return f"has {sign!r}, which must stand between quotes"
        depth += count * ((sign == "[") - (sign == "]"))
        if depth < 0:
            return "has ] without a [ before it"
        if sign.isascii() and sign.isalpha():
            why = _why_no_letters(sign, count)
            if why is not None:
                return why
    return None


def _why_no_letters(letter: str, count: int) -> str | None:
    allowed = _REPEATS.get(letter)
    if allowed is None:
        instead = f": {_INSTEAD[letter]}" if letter in _INSTEAD else ""
        return f"has the letter {letter}, which Spark does not read{instead}; text stands between quotes"
    if count not in allowed:
        return f"has {letter * count}: the letter {letter} can be repeated {_said(allowed)} times"
    return None


def _said(allowed: Sequence[int]) -> str:
    return " or ".join(map(str, allowed)) if len(allowed) < 3 else f"{allowed[0]} to {allowed[-1]}"
