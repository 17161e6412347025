"""The name of a test is a claim, and its docstring a sentence: both begin with their subject."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
HIDDEN_SUBJECT = re.compile(r"test_(what|who|whoever|whatever)_|test_.*(whoever|_anew|_answer)")
HOUSE_WORDS = re.compile(r"\b(answer(s|ed|ing)?|anew|whoever)\b", re.IGNORECASE)
# Folders and modules in which the house words are still to be replaced.
WITH_HOUSE_WORDS = {"compat", "frame_proxy.py", "oracle", "spark", "system", "tidy"}
FORBIDDEN = ("What ", "Who ", "Whoever ", "Whatever ")


def modules() -> Iterator[tuple[Path, Path]]:
    """Yields the modules of all tests, with their names below `tests`."""
    for path in sorted(TESTS.rglob("*.py")):
        yield path, path.relative_to(TESTS)


def definitions() -> Iterator[tuple[str, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path, name in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name}:{getattr(node, 'lineno', 1)}", node


def test_names_and_docstrings_of_tests_do_not_hide_their_subject() -> None:
    names, docstrings = [], []
    for place, node in definitions():
        if not isinstance(node, ast.Module) and HIDDEN_SUBJECT.match(node.name):
            names.append(f"{place}: {node.name}")
        if (text := ast.get_docstring(node)) is not None and text.startswith(FORBIDDEN):
            docstrings.append(f"{place}: {text.splitlines()[0]}")
    assert names == [], "a claim has a subject: a member, a record, a response"
    assert docstrings == [], "say what the thing is or returns, with the subject first"


def test_no_test_uses_a_house_word_where_there_is_a_plain_one() -> None:
    found = [
        f"{name}:{number}: {line.strip()}"
        for path, name in modules()
        if name.parts[0] not in WITH_HOUSE_WORDS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if HOUSE_WORDS.search(line)
    ]
    assert found == [], "say response, again, or the subject itself"
