"""No two modules need each other: the import graph has no cycle, imports for type checkers included."""

from __future__ import annotations

from tests.tidy.import_graph import cycles, import_graph


def test_no_module_imports_one_that_imports_it() -> None:
    graph = import_graph()
    assert len(graph) > 500
    assert cycles(graph) == []


def test_a_cycle_is_noticed() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c"]]
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
