"""`--grep`: which records are printed."""

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


def add_grep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--grep", metavar="REGEX", help="only records whose key, value or a header matches")
    parser.add_argument("--grep-key", metavar="REGEX", help="only records whose key matches")
    parser.add_argument("--grep-value", metavar="REGEX", help="only records whose value matches")
    parser.add_argument(
        "--grep-header", metavar="REGEX", help="only records with a header KEY=VALUE that matches"
    )
    parser.add_argument("--ignore-case", "-i", action="store_true", help="upper and lower case are the same")
    parser.add_argument("--invert", action="store_true", help="only records that do not match")


def matcher_of(options: argparse.Namespace) -> Matcher:
    """A function that keeps the records that match all of the options."""
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


def _test(pattern: str, ignore_case: bool) -> Callable[[bytes], object]:
    """A function that is true for bytes that match. A pattern without special characters is looked for as it is."""
    text = pattern.encode()
    if not ignore_case and not _SPECIAL.intersection(pattern):
        return lambda data: text in data
    try:
        return re.compile(text, re.IGNORECASE if ignore_case else 0).search
    except re.error as error:
        raise usage(f"{pattern} is no regular expression: {error}") from error


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
