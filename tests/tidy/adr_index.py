"""Makes `docs/adr/README.md` from the titles of the decisions: `python -m tests.tidy.adr_index`."""

from __future__ import annotations

import re
from pathlib import Path

DIRECTORY = Path(__file__).parents[2] / "docs" / "adr"
FILE = DIRECTORY / "README.md"
HEAD = """# Decisions

A page for each choice that somebody could question later: the situation, the decision, what was rejected and why, and
what follows from it. A page says what is true today; one that no longer holds names the page that took its place.

"""
_SUPERSEDED = re.compile(r"Superseded by \[ADR (\d+)\]")


def render() -> str:
    pages = sorted(path for path in DIRECTORY.glob("[0-9]*.md"))
    numbers = [int(path.name[:4]) for path in pages]
    lines = [_line(path) for path in pages]
    unused = sorted(set(range(1, max(numbers) + 1)) - set(numbers))
    told = f"There are no pages {', '.join(map(str, unused))}: these numbers were set aside and not used.\n"
    return f"{HEAD}{''.join(lines)}\n{told if unused else ''}"


def _line(path: Path) -> str:
    text = path.read_text()
    number, _, title = text.partition("\n")[0].removeprefix("# ").partition(". ")
    successor = _SUPERSEDED.search(text)
    note = f" (superseded by {successor[1]})" if successor else ""
    return f"- {number}. [{title}]({path.name}){note}\n"


if __name__ == "__main__":
    FILE.write_text(render())
