"""The form of a transcript. A line that begins with `> ` is a command, one that begins with `#` is for the reader, and
the lines after a command are what came of it.

`pytest tests/transcripts --rewrite` writes every file again; the change is reviewed as a diff.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

# Gets the words of a command, and gives the lines that came of it.
Interpreter = Callable[[str, dict[str, str]], Iterable[str]]


def replayed(text: str, interpret: Interpreter) -> str:
    """Returns the transcript with the output of the present code."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            lines.append(line)
        elif line.startswith("> "):
            lines.append(line)
            name, *words = shlex.split(line[2:])
            lines += interpret(name, dict(word.split("=", 1) for word in words))
    return "\n".join(lines) + "\n"


def check(path: Path, interpret: Interpreter, *, rewrite: bool) -> None:
    text = path.read_text()
    now = replayed(text, interpret)
    if rewrite:
        path.write_text(now)
    else:
        assert now == text, (
            f"{path.name} tells something else; `pytest tests/transcripts --rewrite` shows it as a diff"
        )


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(",") if each)
