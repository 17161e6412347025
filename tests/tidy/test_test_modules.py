"""Code that several test modules use is in a module of its own, not in one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
# Mutants switch a rule off and run the tests of that rule.
RUNS_TESTS_OF_OTHERS = "_mutants"


def imported_test_modules(path: Path) -> Iterator[str]:
    package = ("tests", *path.relative_to(TESTS).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            names = [*base, *(node.module or "").split(".")]
            if names[0] == "tests" or node.level:
                last = [
                    names[-1],
                    *(alias.name for alias in node.names if TESTS.joinpath(*names[1:]).is_dir()),
                ]
                yield from (name for name in last if name.startswith("test_"))


def test_no_test_module_imports_another() -> None:
    found = [
        f"{path.relative_to(TESTS)} imports {name}"
        for path in sorted(TESTS.rglob("*.py"))
        if not path.stem.endswith(RUNS_TESTS_OF_OTHERS)
        for name in imported_test_modules(path)
    ]
    assert found == [], "move what both use into a module whose name has no test_"
