"""Reads the code fences of a Markdown page, with what the comment before each says about it.

A fence runs, in the order of the page, unless the line directly before it is a comment that says otherwise:

    <!-- not run: needs three machines -->      why nobody runs it
    <!-- proved by: tests/lab/test_pages.py --> another test runs it
    <!-- file: test_orders.py -->               it is the content of this file, for the fences after it
    <!-- output -->                             it is what the fence before it printed
    <!-- stays -->                              its command goes on until the end of the page
    <!-- exits: 1 -->                           its last command ends with this status

A comment that begins with a language (`<!-- python`, code, `-->`) is a fence that readers do not see.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

_FENCE = re.compile(
    r"^(?:[ ]*<!-- (?P<directive>[a-z][a-z ]*?)(?:: (?P<argument>[^\n]+?))? -->\n)?"
    r"(?P<indent>[ ]*)```(?P<language>[a-z]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```[ ]*$"
    r"|^<!-- (?P<hidden>python|sh)\n(?P<code>.*?)^-->$",
    re.MULTILINE | re.DOTALL,
)
DIRECTIVES = {"not run", "proved by", "file", "output", "stays", "exits"}
WITH_ARGUMENT = {"not run", "proved by", "file", "exits"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """A fence of a page: `line` is where its text begins."""

    line: int
    language: str
    text: str
    directive: str = ""
    argument: str = ""

    @property
    def commands(self) -> list[tuple[str, str]]:
        """The commands of a console, each with the output that the page shows."""
        parts = re.split(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n", self.text, flags=re.MULTILINE)
        return list(zip(parts[1::2], parts[2::2], strict=True))


def fences(text: str) -> list[Fence]:
    """Returns the fences of a page's text, hidden ones included."""
    found = []
    for match in _FENCE.finditer(text):
        is_hidden = match["hidden"] is not None
        start = match.start("code" if is_hidden else "text")
        found.append(
            Fence(
                line=text.count("\n", 0, start) + 1,
                language=match["hidden"] or match["language"],
                text=match["code"] if is_hidden else dedent(match["text"]),
                directive=match["directive"] or "",
                argument=match["argument"] or "",
            )
        )
    return found


def fences_of(page: Path) -> list[Fence]:
    return fences(page.read_text())
