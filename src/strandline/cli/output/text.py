"""Text for people: tables, colour if the terminal shows it, and a pager if the screen is too small."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

_COLOURS: Final = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}
_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")


def has_colour() -> bool:
    """True if stdout is a terminal that may show colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, colour: str) -> str:
    """Returns the text in a colour; without colours, the text itself."""
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if has_colour() else text


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Returns the lines of a table. Columns with only numbers are aligned to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        return []
    columns = list(zip(*cells, strict=True))
    numeric = [all(_is_number(text) for text in column) for column in columns]
    widths = [
        max(len(title), *(len(text) for text in column)) for title, column in zip(head, columns, strict=True)
    ]

    def line(texts: Sequence[str]) -> str:
        parts = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, numeric, strict=True)
        ]
        return "  ".join(parts).rstrip()

    return [coloured(line(head), "bold"), *(line(row) for row in cells)]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, tuple | list):
        return ",".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(str(value))


def _is_number(text: str) -> bool:
    return text == "-" or text.replace(".", "", 1).removeprefix("-").isdigit()


def printable(text: str) -> str:
    """Returns the text without control characters, which could move the cursor or colour a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def size(count: float) -> str:
    """Returns a number of bytes in a readable form, such as 1.5 MB."""
    for unit in _UNITS:
        if abs(count) < 1000 or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("units are over")


def moment(timestamp_ms: int) -> str:
    """Returns a time in milliseconds as ISO 8601; the number itself if there is no such date."""
    if timestamp_ms < 0:
        return "-"
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"


def show(lines: Sequence[str]) -> None:
    """Prints lines, through a pager if stdout is a terminal with fewer rows. Leaving the pager early is not an
    error."""
    rows = shutil.get_terminal_size().lines
    if not sys.stdout.isatty() or len(lines) < rows or os.environ.get("PAGER") == "cat":
        print("\n".join(lines))
        return
    pager = os.environ.get("PAGER") or ("less -FRX" if shutil.which("less") else "")
    if not pager:
        print("\n".join(lines))
        return
    subprocess.run(pager, shell=True, input="\n".join(lines) + "\n", text=True, check=False)


def note(text: str) -> None:
    """Prints a line for people on stderr, so that a pipe has only data."""
    print(text, file=sys.stderr, flush=True)


def count_of(count: int, singular: str, plural: str | None = None) -> str:
    """Returns a count with its noun, such as "1 partition" and "2 partitions"."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"
