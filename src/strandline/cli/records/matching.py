"""Selects the records that `strandline consume` prints: `--grep`, `--grep-key`, `--grep-value`, `--grep-header`.

`matcher_of` decides for each record. Before that, `batch_filter_of` passes over whole batches in which no record can
match, without decoding them.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from strandline.cli.failures import usage
from strandline.cli.records.rows import header_bytes

if TYPE_CHECKING:
    from strandline.client.consumer.record_decoder import ConsumerRecord

Matcher = Callable[[list["ConsumerRecord"]], list["ConsumerRecord"]]
_SPECIAL = frozenset(".^$*+?{}[]\\|()")
# A pattern with one of these may match without containing any fixed text.
_ALTERNATIVES = frozenset("{}[]\\|()")
_ESCAPED = frozenset(b"\\.+*?()|[]{}^$-&~# ")
# The number of batches that are searched before it is decided whether searching saves time.
_TRIALS = 32


def add_grep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--grep", metavar="REGEX", help="print only records whose key, value or a header matches"
    )
    parser.add_argument("--grep-key", metavar="REGEX", help="print only records whose key matches")
    parser.add_argument("--grep-value", metavar="REGEX", help="print only records whose value matches")
    parser.add_argument(
        "--grep-header", metavar="REGEX", help="print only records with a header KEY=VALUE that matches"
    )
    parser.add_argument("--ignore-case", "-i", action="store_true", help="ignore case")
    parser.add_argument("--invert", action="store_true", help="print only records that do not match")


def matcher_of(options: argparse.Namespace) -> Matcher:
    """Returns a function that keeps the records that match all of the options."""
    steps: list[Matcher] = []
    if options.grep is not None:
        steps.append(_anywhere(_test(options.grep, options.ignore_case)))
    if options.grep_key is not None:
        steps.append(_keys(_test(options.grep_key, options.ignore_case)))
    if options.grep_value is not None:
        steps.append(_values(_test(options.grep_value, options.ignore_case)))
    if options.grep_header is not None:
        steps.append(_headers(_test(options.grep_header, options.ignore_case)))
    if not steps:
        return lambda records: records

    def matches(records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        kept = records
        for step in steps:
            kept = step(kept)
        if options.invert:
            found = set(map(id, kept))
            return [each for each in records if id(each) not in found]
        return kept

    return matches


def batch_filter_of(options: argparse.Namespace) -> Callable[[bytes], bool] | None:
    """Returns a function that is false for the bytes of a batch in which no record can match; None if that cannot be
    decided from the bytes. Looking through the bytes of a batch costs a hundredth of decoding its records.
    """
    patterns = [options.grep, options.grep_key, options.grep_value, options.grep_header]
    parts = [part for pattern in patterns if pattern is not None for part in _required(pattern)]
    if options.invert or not parts:
        return None
    # RE2 searches at the speed of memory; `in` and `re` are much slower.
    import re2

    flags = b"(?i)" if options.ignore_case else b""
    searches = [re2.compile(b"(?s)" + flags + _escaped(part)).search for part in parts]
    return _while_it_pays(lambda body: all(search(body) is not None for search in searches))


def _escaped(part: bytes) -> bytes:
    """Returns a text escaped for RE2. RE2 reads UTF-8, so non-ASCII characters need no escaping."""
    return b"".join(b"\\" + bytes((byte,)) if byte in _ESCAPED else bytes((byte,)) for byte in part)


def _while_it_pays(can_match: Callable[[bytes], bool]) -> Callable[[bytes], bool]:
    """Returns a function that calls `can_match` until most batches were accepted. Then it accepts all, because decoding
    them directly is faster."""
    passed = refused = 0

    def counted(body: bytes) -> bool:
        nonlocal passed, refused
        if passed > _TRIALS + 4 * refused:
            return True
        found = can_match(body)
        passed += found
        refused += not found
        return found

    return counted


def _required(pattern: str) -> list[bytes]:
    """Returns texts that every match of a pattern contains. There are none for patterns with alternatives, classes or
    groups.

    A header is matched as KEY=VALUE, and its two sides lie apart in a batch: texts are cut at the sign.
    """
    if _ALTERNATIVES.intersection(pattern):
        return []
    found = []
    for run in re.split(r"[.^$+]|.[*?]", pattern, flags=re.DOTALL):
        found += [part.encode() for part in run.split("=") if part]
    return found


def _test(pattern: str, ignore_case: bool) -> Callable[[bytes], object]:
    """Returns a function that is true for bytes that match. A pattern without special characters is searched for as
    plain text."""
    text = pattern.encode()
    if not ignore_case and not _SPECIAL.intersection(pattern):
        return lambda data: text in data
    try:
        return re.compile(text, re.IGNORECASE if ignore_case else 0).search
    except re.error as error:
        raise usage(f"{pattern} is not a regular expression: {error}") from error


def _keys(test: Callable[[bytes], object]) -> Matcher:
    return lambda records: [each for each in records if each.key is not None and test(each.key)]


def _values(test: Callable[[bytes], object]) -> Matcher:
    return lambda records: [each for each in records if each.value is not None and test(each.value)]


def _headers(test: Callable[[bytes], object]) -> Matcher:
    return lambda records: [each for each in records if each.headers and _has_header(each, test)]


def _has_header(record: ConsumerRecord, test: Callable[[bytes], object]) -> bool:
    return any(test(header_bytes(*header)) for header in record.headers)


def _anywhere(test: Callable[[bytes], object]) -> Matcher:
    def matches(records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        return [
            each
            for each in records
            if (each.value is not None and test(each.value))
            or (each.key is not None and test(each.key))
            or (each.headers and _has_header(each, test))
        ]

    return matches
