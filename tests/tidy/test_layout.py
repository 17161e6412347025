"""Rules of the house that a machine can check."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, tracked_files

SOURCE = ROOT / "src" / "strandline"

# The world outside: only `node` touches it, and what runs above `node` for people's sake.
OUTSIDE = {
    "concurrent",
    "ctypes",
    "multiprocessing",
    "os",
    "random",
    "resource",
    "select",
    "selectors",
    "signal",
    "socket",
    "ssl",
    "subprocess",
    "threading",
    "time",
    "uuid",
    "uvloop",
}
BANNED_CALLS = {"uuid4", "to_thread", "run_in_executor", "TaskGroup", "as_completed"}
OUTER_PACKAGES = {"node", "sim", "testing", "cli", "spark", "pipeline"}
OUTER_ROOMS = {("lab", "real")}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
ROOT_ENTRIES = {
    ".ci",
    ".git",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "bench",
    "docs",
    "examples",
    "native",
    "pyproject.toml",
    "src",
    "tests",
}
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 80


def python_files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(folder.rglob("*.py"))


def inner_files() -> list[Path]:
    return [
        path
        for path in python_files(SOURCE)
        if path.relative_to(SOURCE).parts[0] not in OUTER_PACKAGES
        and path.relative_to(SOURCE).parts[:2] not in OUTER_ROOMS
    ]


def imported_roots(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_only_the_outer_packages_touch_the_outside_world() -> None:
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in inner_files()
        for name in imported_roots(ast.parse(path.read_text()))
        if name in OUTSIDE
    ]
    assert found == []


def test_nothing_that_escapes_a_simulation_is_called() -> None:
    found = []
    for path in inner_files():
        for node in ast.walk(ast.parse(path.read_text())):
            name = (
                node.attr
                if isinstance(node, ast.Attribute)
                else node.id
                if isinstance(node, ast.Name)
                else ""
            )
            if name in BANNED_CALLS:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} uses {name}")
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("datetime.now", "asyncio.wait"):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} uses {ast.unparse(node)}")
    assert found == []


def test_files_and_functions_fit_in_the_head() -> None:
    found = []
    for path in python_files(ROOT / "src", ROOT / "tests", ROOT / "bench", ROOT / "examples"):
        text = path.read_text()
        if text.count("\n") > FILE_LINES_MAX:
            found.append(f"{path.relative_to(ROOT)} has {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno
                if lines > FUNCTION_LINES_MAX:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {lines} lines")
    assert found == []


def test_modules_have_names_that_say_something() -> None:
    assert [str(p.relative_to(ROOT)) for p in python_files(ROOT / "src") if p.stem in VAGUE_NAMES] == []


def test_every_module_says_what_it_is_for() -> None:
    missing = [
        str(path.relative_to(ROOT))
        for path in python_files(SOURCE)
        if ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert missing == []


def test_nothing_else_lies_at_the_root() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked_files()} <= ROOT_ENTRIES


def test_no_file_names_this_machine_or_a_registry() -> None:
    machine = re.compile(
        r"(?<![\w.])/(?:root|home/\w+|work|tmp/lab)/[\w./-]+|https?://[\w.-]*(?:pypi|maven|npmjs|crates)"
    )
    found = []
    for path in tracked_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if path == Path(__file__):
            continue
        found += [f"{path.relative_to(ROOT)}: {match.group(0)}" for match in machine.finditer(text)]
    assert found == []


@pytest.mark.parametrize("word", ["TODO", "FIXME", "XXX"])
def test_nothing_is_left_for_later_in_comments(word: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}"
        for path in python_files(ROOT / "src", ROOT / "bench", ROOT / "examples")
        if re.search(rf"\b{word}\b", path.read_text())
    ]
    assert found == []
