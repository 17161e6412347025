"""Docstrings say what a thing is or returns, in full sentences whose subject comes first."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
# Openings that hide the subject of a sentence.
FORBIDDEN = ("What ", "Who ", "Whoever ", "Whatever ", "Whether what ")
WORDS_MIN = 4  # a line with fewer is a fragment


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield getattr(node, "lineno", 1), text


def test_no_docstring_begins_with_what_or_whoever() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text.splitlines()[0]}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, text in docstrings(path)
        if text.startswith(FORBIDDEN)
    ]
    assert found == [], "say what the thing is or returns, with the subject first"


def test_no_docstring_is_a_fragment() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, text in docstrings(path)
        if "\n" not in text and text.endswith(".") and len(text.split()) < WORDS_MIN
    ]
    assert found == [], "say it in a full sentence, or leave it to the name"
