"""Docstrings say what a thing is or returns, in full sentences whose subject comes first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
# Openings that hide the subject of a sentence.
FORBIDDEN = ("What ", "Who ", "Whoever ", "Whatever ", "Whether what ")
WORDS_MIN = 4  # a line with fewer is a fragment
# Openings of docstrings that name a value, where a function's docstring says that it returns the value.
NOUN_PHRASES = ("The ", "A ", "An ", "Those ", "How ", "Where ", "Whether ", "Which ", "All ")
READ_TESTS = ("compat", "docs", "lab", "mirror", "oracle", "registry", "security", "serde", "spark", "tidy")
READ = [
    "bench",
    *(f"tests/{each}" for each in READ_TESTS),
    *sorted(
        folder.relative_to(ROOT).as_posix()
        for folder in (SOURCE / "strandline").iterdir()
        if (folder / "__init__.py").exists()
    ),
]


# Words of the house that have a plain or a Kafka word.
HOUSE_WORDS = re.compile(r"\b(answer(s|ed|ing)?|anew|whoever)\b", re.IGNORECASE)


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield getattr(node, "lineno", 1), text


def test_no_docstring_hides_its_subject() -> None:
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


def is_noun_phrase(text: str) -> bool:
    """True if a docstring only names a value, as in "The bytes of a frame." or "How many records it has"."""
    return text.startswith(NOUN_PHRASES)


def returning_functions(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the docstrings of functions that return something. A property is a name for a value, and a fixture's
    docstring describes the fixture: neither is among them."""
    for node in nodes(path):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.returns is None:
            continue
        decorators = " ".join(map(ast.unparse, node.decorator_list))
        if "property" in decorators or "fixture" in decorators or ast.unparse(node.returns) == "None":
            continue
        text = ast.get_docstring(node)
        if text is not None:
            yield node.lineno, text


@pytest.mark.parametrize("folder", READ)
def test_a_function_says_that_it_returns_something(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in returning_functions(path)
        if is_noun_phrase(text)
    ]
    assert found == [], "begin with Returns, Yields or another verb"


def test_no_module_uses_a_house_word_where_there_is_a_plain_one() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if HOUSE_WORDS.search(line)
    ]
    assert found == [], "say response, again, or the subject itself"
