"""No two modules need each other: the import graph has no cycle, imports for type checkers included."""

from __future__ import annotations

import pytest

from tests.tidy.import_graph import cycles, import_graph

# Packages without a cycle; the others follow.
PACKAGES = ("strandline.avro", "strandline.client", "strandline.pipeline", "strandline.spark")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_one_that_imports_it(package: str) -> None:
    graph = import_graph()
    inside = {name for name in graph if name == package or name.startswith(f"{package}.")}
    assert cycles({name: graph[name] & inside for name in inside}) == []


def test_a_cycle_is_noticed() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c"]]
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
