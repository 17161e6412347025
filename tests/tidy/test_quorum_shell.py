"""The shell of the metadata quorum reaches its core only by events: it reads properties and changes nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.import_graph import SOURCE

SHELL = SOURCE / "strandline" / "broker"


def breaches(text: str) -> Iterator[str]:
    """Assignments to what lies below `core`, calls of its private methods, and looks into its history."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Attribute) or not _is_core(node.value):
            continue
        if isinstance(node.ctx, ast.Store | ast.Del) or node.attr.startswith("_") or node.attr == "history":
            yield f"line {node.lineno}: {ast.unparse(node)}"


def _is_core(node: ast.expr) -> bool:
    """True for `core`, `x.core` and whatever is read from them."""
    while isinstance(node, ast.Attribute):
        if node.attr == "core":
            return True
        node = node.value
    return isinstance(node, ast.Name) and node.id == "core"


def test_the_shell_of_the_quorum_only_reads_its_core() -> None:
    found = [
        f"{path.name} {each}" for path in sorted(SHELL.rglob("*.py")) for each in breaches(path.read_text())
    ]
    assert found == []


def test_breaches_are_noticed() -> None:
    for line in (
        "self.core.log_start = 1",
        "core.role.is_writing = False",
        "self._shell.core._prospect(now)",
        "quorum.core.history.last",
    ):
        assert list(breaches(line)), line
    assert not list(breaches("self.core.voters; self.core.step(event, now); self.core = Quorum()"))
