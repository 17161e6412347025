"""Sets of record numbers as text, such as "0-999, 1005"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_RUNS_MAX: Final = 8


def as_text(numbers: Iterable[int]) -> str:
    """Returns the numbers in order, runs as first-last; an empty text for none."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def in_brief(numbers: list[int]) -> str:
    """Returns the numbers as text, or their count if they have too many gaps to be readable."""
    text = as_text(numbers)
    if text.count(",") < _RUNS_MAX:
        return text
    return f"{len(set(numbers))} records of {min(numbers)}-{max(numbers)}"


def count_of_numbers(text: str) -> int:
    """Counts the numbers that a text of `as_text` names."""
    count = 0
    for run in filter(None, text.split(", ")):
        first, _, last = run.partition("-")
        count += int(last or first) - int(first) + 1
    return count
