"""Tests use real cores: none replaces more than two attributes of our own code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]
PATCHES_MAX: Final = 2
# Functions that replace more, and why.
ALLOWED: Final[dict[str, str]] = {
    "unit/pipeline/test_runner.py::test_queries_and_session_are_stopped_even_if_one_of_them_fails": (
        "queries of Spark cannot be made to refuse their end"
    ),
    "unit/spark/test_range_reader.py::reader": "a task waits for hours there, and has no clock of a test's",
    "unit/testing/test_testing.py::test_a_cluster_resumes_its_paused_nodes_before_it_stops_any": (
        "the order of signals cannot be seen from outside"
    ),
    "unit/testing/test_testing.py::test_a_broker_that_does_not_stop_does_not_hide_why_a_test_failed": (
        "a process that survives kill -9 cannot be had"
    ),
}


def patched(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Returns the number of attributes of our own modules that a function replaces."""
    places = {
        ", ".join(ast.unparse(argument) for argument in call.args[:2])
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("setattr", "object")
        and len(call.args) >= 2
    }
    return sum(not place.startswith(("sys,", "os,", "time,", "'sys.", "'os.")) for place in places)


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(TESTS)}::{node.name}", node


def test_no_test_replaces_more_than_two_attributes() -> None:
    found = [name for name, node in functions() if patched(node) > PATCHES_MAX]
    assert sorted(set(found) - set(ALLOWED)) == [], "let it use the real thing, or say here why it cannot"
    assert sorted(set(ALLOWED) - set(found)) == [], "these replace no more than others"
