"""Compares what a page shows with what was printed.

`…` in a line stands for any text, and a line that is only `…` for any number of lines. What differs from run to run
(ids, times, addresses, sizes) needs no `…`.
"""

from __future__ import annotations

import re

CHANGING = (
    (re.compile(r"\b[A-Za-z0-9_-]{22}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)"), "TIME"),
    (re.compile(r'"timestamp": \d+'), '"timestamp": TIME'),
    (re.compile(r"(localhost|127\.0\.0\.1):\d+"), "ADDRESS"),
    (re.compile(r"\d+\.\d s ago"), "AGO"),
    (re.compile(r"\d+(\.\d)? [kM]?B\b"), "SIZE"),
    (re.compile(r"high watermark \d+|epoch \d+"), "NUMBER"),
    (re.compile(r"\b\d+(\.\d+)? ?m?s\b"), "SECONDS"),
    (re.compile(r"\b(node \d+): \d+"), r"\1: PID"),
    (re.compile(r"[ \t]+"), " "),
)


def steady(text: str) -> str:
    """Returns the text without what differs from run to run."""
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    return text


def _pattern(shown: str) -> str:
    lines = []
    for line in steady(shown).strip().splitlines():
        if line.strip() == "…":
            lines.append(r"(?:[^\n]*\n)*?")
        else:
            lines.append("[^\n]*?".join(re.escape(part) for part in line.rstrip().split("…")) + r"[ ]*\n")
    return "".join(lines)


def mismatch(shown: str, printed: str) -> str | None:
    """Returns both texts if they differ, or None if the page shows what was printed."""
    if re.fullmatch(_pattern(shown), steady(printed).strip() + "\n") is not None:
        return None
    return f"the page shows:\n{shown.rstrip()}\nbut this was printed:\n{printed.rstrip()}"


def contains(shown: str, printed: str) -> bool:
    """True if the lines that the page shows are somewhere in what was printed."""
    return re.search(_pattern(shown), steady(printed) + "\n") is not None
