"""Compares the records of a topic with those that a test expects, and says how they differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from strandline.client.consumer.record_decoder import ConsumerRecord

_ROWS_MAX: Final = 40
_TEXT_MAX: Final = 100


class RecordComparison:
    """The difference between expected and present records: `missing` ones are absent, `unexpected` ones are too many.

    With `in_order` the records must have the expected order: the first one that differs is unexpected, and so are all
    after it.
    """

    def __init__(
        self, topic: str, expected: Sequence[Any], records: Sequence[ConsumerRecord], in_order: bool
    ) -> None:
        self._topic = topic
        self._expected = expected
        self._records = records
        # The number of the record that matches each expected one, or None.
        self._matches = _in_order(expected, records) if in_order else _in_any_order(expected, records)
        matched = {number for number in self._matches if number is not None}
        self.missing = [each for each, at in zip(expected, self._matches, strict=True) if at is None]
        self.unexpected = [each for number, each in enumerate(records) if number not in matched]

    def in_expected_order(self) -> list[ConsumerRecord]:
        """Returns the records in the order in which they were expected."""
        return [self._records[at] for at in self._matches if at is not None]

    def rows_there(self) -> str:
        """Returns the records that are there as text, one in a line."""
        return _rows([f"  {described(record)}" for record in self._records]) or "  (none)"

    def report(self, within: float, *, exists: bool) -> str:
        """Returns the difference as text: `+` marks a record that was not expected, `-` one that is missing."""
        count = len(self._expected)
        if not exists:
            return f"topic {self._topic} does not exist after {within:g} s; {count} records were expected"
        head = f"topic {self._topic} does not hold the {count} expected records"
        if not self.unexpected:
            head += f" within {within:g} s: {len(self.missing)} are missing"
        unexpected = {id(record) for record in self.unexpected}
        rows = [
            f"{'+' if id(record) in unexpected else ' '} {described(record)}"
            + ("  (not expected)" if id(record) in unexpected else "")
            for record in self._records
        ]
        rows += [f"- {_expected_text(each)}  (missing)" for each in self.missing]
        return f"{head}:\n{_rows(rows)}"


def _rows(rows: list[str]) -> str:
    """Returns the rows as text, without those in the middle if there are many."""
    if len(rows) <= _ROWS_MAX:
        return "\n".join(rows)
    half = _ROWS_MAX // 2
    return "\n".join([*rows[:half], f"  … {len(rows) - 2 * half} more rows …", *rows[-half:]])


def _in_order(expected: Sequence[Any], records: Sequence[ConsumerRecord]) -> list[int | None]:
    matches: list[int | None] = [None] * len(expected)
    for number, (each, record) in enumerate(zip(expected, records, strict=False)):
        if not matches_record(each, record):
            break
        matches[number] = number
    return matches


def _in_any_order(expected: Sequence[Any], records: Sequence[ConsumerRecord]) -> list[int | None]:
    """Matches each record with one expected record at most. Functions are matched last, because several records may
    satisfy them."""
    matches: list[int | None] = [None] * len(expected)
    unmatched = dict(enumerate(records))
    for at in sorted(range(len(expected)), key=lambda number: callable(expected[number])):
        for number, record in unmatched.items():
            if matches_record(expected[at], record):
                matches[at] = number
                del unmatched[number]
                break
    return matches


def matches_record(expected: Any, record: ConsumerRecord) -> bool:
    """True if the record is as expected. `expected` is a value, a pair of key and value, or a function that says
    whether the record is accepted."""
    if callable(expected):
        return bool(expected(record))
    if isinstance(expected, tuple):
        if len(expected) != 2:
            raise TypeError(f"{expected!r} cannot be compared: a tuple is (key, value)")
        return _equals(expected[0], record.key) and _equals(expected[1], record.value)
    return _equals(expected, record.value)


def _equals(expected: Any, data: bytes | None) -> bool:
    if expected is None or isinstance(expected, bytes):
        return expected == data
    if isinstance(expected, str):
        return data is not None and expected.encode() == data
    if not isinstance(expected, dict | list):
        raise TypeError(
            f"{expected!r} cannot be compared with a record: say bytes, text, None, a dict or a list (as JSON), a pair "
            "of key and value, or a function of the record"
        )
    if data is None:
        return False
    try:
        return bool(json.loads(data) == expected)
    except ValueError:
        return False


def described(record: ConsumerRecord) -> str:
    """Returns a record as one line: partition, offset, key if it has one, value."""
    key = "" if record.key is None else f"key {_text(record.key)}  "
    return f"{record.partition}:{record.offset}  {key}{_text(record.value)}"


def _text(data: Any) -> str:
    if isinstance(data, bytes):
        with suppress(UnicodeDecodeError):  # bytes that are not text are shown by their repr
            data = data.decode()
    shown = repr(data)
    return shown if len(shown) <= _TEXT_MAX else f"{shown[:_TEXT_MAX]}… ({len(shown)} characters)"


def _expected_text(expected: Any) -> str:
    if callable(expected):
        return f"a record for which {getattr(expected, '__name__', 'the function')} is true"
    if isinstance(expected, tuple):
        return f"key {_text(expected[0])}  {_text(expected[1])}"
    return _text(expected)
