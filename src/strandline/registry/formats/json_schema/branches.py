"""The work of one comparison of JSON Schemas: which pairs were compared, and what was found at which path.

Each pair of nodes is compared once, and its differences have paths relative to the pair. A pair that is met again while
it is being compared counts as compatible. If it turns out to be incompatible, another pass takes that into account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from typing import Final

from strandline.registry.formats.json_schema.differences import JsonDifference
from strandline.registry.formats.json_schema.nodes import SchemaNode
from strandline.registry.formats.parsed import InvalidSchema

_PAIRS_MAX: Final = 200_000  # the most pairs of nodes; comparing them takes some seconds

Pair = tuple[int, int]


class ComparisonPass:
    """The state that all branches of one pass share."""

    def __init__(
        self,
        compatible: Set[str],
        compare_types: Callable[[Comparison, SchemaNode, SchemaNode], None],
        incompatible: dict[Pair, list[JsonDifference]] | None = None,
        pair_count: int = 0,
    ) -> None:
        self.compatible = compatible
        self.compare_types = compare_types
        self.incompatible = incompatible or {}
        self.known: dict[Pair, list[JsonDifference]] = {}
        self.open: set[Pair] = set()
        self.was_optimistic = False
        self.pair_count = pair_count

    def incompatible_pairs(self) -> dict[Pair, list[JsonDifference]]:
        return {pair: found for pair, found in self.known.items() if not self.is_compatible(found)}

    def is_compatible(self, differences: list[JsonDifference]) -> bool:
        return all(each.type in self.compatible for each in differences)


class Comparison:
    """One branch: a path and the differences that were found below it."""

    def __init__(self, work: ComparisonPass, path: tuple[str, ...] = ()) -> None:
        self._work = work
        self._path = list(path)
        self.differences: list[JsonDifference] = []

    @property
    def is_compatible(self) -> bool:
        return self._work.is_compatible(self.differences)

    def branch(self) -> Comparison:
        """Returns a comparison of its own at the same place, whose differences do not count here yet."""
        return Comparison(self._work, tuple(self._path))

    @contextmanager
    def at(self, *tokens: str) -> Iterator[None]:
        self._path += tokens
        try:
            yield
        finally:
            del self._path[-len(tokens) :]

    def add(self, type: str, *tokens: str) -> None:
        self.differences.append(JsonDifference(type, "#/" + "/".join((*self._path, *tokens))))

    def compare(self, original: SchemaNode | None, update: SchemaNode | None) -> None:
        if original is None or update is None:
            if original is not update:
                self.add("SCHEMA_ADDED" if original is None else "SCHEMA_REMOVED")
            return
        original, update = _referred(original), _referred(update)
        prefix = "#/" + "/".join(self._path)
        for each in self._compared_once(original, update):
            rest = each.path[2:]
            path = prefix if not rest else f"{prefix}/{rest}" if self._path else each.path
            self.differences.append(JsonDifference(each.type, path))

    def _compared_once(self, original: SchemaNode, update: SchemaNode) -> list[JsonDifference]:
        work = self._work
        pair = (id(original), id(update))
        known = work.known.get(pair)
        if known is not None:
            return known
        if pair in work.open:
            known = work.incompatible.get(pair)
            if known is None:
                work.was_optimistic = True
            return known or []
        work.pair_count += 1
        if work.pair_count > _PAIRS_MAX:
            raise InvalidSchema(f"more than {_PAIRS_MAX} pairs of subschemas would have to be compared")
        work.open.add(pair)
        inner = Comparison(work)
        work.compare_types(inner, original, update)
        work.open.discard(pair)
        work.known[pair] = inner.differences
        return inner.differences


def _referred(node: SchemaNode) -> SchemaNode:
    """Returns the schema at the end of a chain of references. A reference to itself means nothing, and is returned
    unchanged."""
    seen: set[int] = set()
    while node.kind == "ref" and id(node) not in seen:
        seen.add(id(node))
        assert node.target is not None
        node = node.target
    return node


def compare_limits(found: Comparison, original: SchemaNode, update: SchemaNode, *keywords: str) -> None:
    """Adds a difference for each limit that was added, removed, increased or decreased: `maxLength` is MAX_LENGTH in a
    difference."""
    for keyword in keywords:
        old, new = original.limits.get(keyword), update.limits.get(keyword)
        if old == new:
            continue
        name = "".join(f"_{each}" if each.isupper() else each.upper() for each in keyword)
        if old is None or new is None:
            change = "ADDED" if old is None else "REMOVED"
        else:
            change = "INCREASED" if old < new else "DECREASED"
        found.add(f"{name}_{change}", keyword)
