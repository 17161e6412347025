"""Sets of record numbers as text, such as "0-999, 1005"."""

from __future__ import annotations

from collections.abc import Iterable


def as_text(numbers: Iterable[int]) -> str:
    """The numbers in order, with runs drawn together; empty for none."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)
