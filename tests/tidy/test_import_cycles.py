"""No two modules need each other: the import graph has no cycle, imports for type checkers included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
# Packages without a cycle; the others follow.
PACKAGES = ("strandline.avro", "strandline.client")


def modules() -> dict[str, ast.Module]:
    """The modules of this repository by name; a package has its own name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text())
    return found


def imported(tree: ast.Module, known: dict[str, ast.Module]) -> Iterator[str]:
    """Every module that is imported, wherever in the file and for whatever reason."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                name = submodule if submodule in known else node.module
                if name in known:
                    yield name


def cycle(graph: dict[str, list[str]]) -> list[str]:
    """The first cycle that a walk along the imports meets; empty if there is none."""
    done: set[str] = set()
    path: list[str] = []

    def walk(name: str) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        path.append(name)
        found = next((ring for each in graph[name] if (ring := walk(each))), [])
        path.pop()
        done.add(name)
        return found

    return next((ring for name in graph if (ring := walk(name))), [])


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_one_that_imports_it(package: str) -> None:
    known = modules()
    inside = [name for name in known if name == package or name.startswith(f"{package}.")]
    graph = {
        name: sorted({each for each in imported(known[name], known) if each in inside and each != name})
        for name in inside
    }
    assert cycle(graph) == []


def test_a_cycle_is_noticed() -> None:
    assert cycle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    assert cycle({"a": ["b", "c"], "b": ["c"], "c": []}) == []
