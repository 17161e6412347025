"""Compares two JSON Schemas node by node, as Confluent's registry does.

Each pair of nodes is compared once, and its differences are kept relative to the pair. A pair that is met again while
it is being compared is taken for compatible. If it turns out not to be, everything is compared again with that
knowledge, until nothing new is found out.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from fractions import Fraction
from typing import Final

from strandline.registry.formats.json_schema.array_comparison import compare_arrays
from strandline.registry.formats.json_schema.differences import JsonDifference
from strandline.registry.formats.json_schema.matching import maximum_matching
from strandline.registry.formats.json_schema.nodes import SchemaNode
from strandline.registry.formats.json_schema.object_comparison import compare_objects
from strandline.registry.formats.parsed import InvalidSchema

_PAIRS_MAX: Final = 200_000  # of nodes: some seconds
_PASSES_MAX: Final = 20

Pair = tuple[int, int]


def compare_schemas(
    original: SchemaNode, update: SchemaNode, compatible: Set[str]
) -> list[JsonDifference]:
    """The differences of `update` from `original`, with their paths."""
    incompatible: dict[Pair, list[JsonDifference]] = {}
    work = _Work(compatible)
    for _ in range(_PASSES_MAX):
        work = _Work(compatible, incompatible, work.pair_count)
        comparison = Comparison(work)
        comparison.compare(original, update)
        found = work.incompatible_pairs()
        if not work.was_optimistic or found.keys() == incompatible.keys():
            return comparison.differences
        incompatible = found
    raise InvalidSchema("the schemas refer to each other in too many ways to be compared")


class _Work:
    """What all branches of one pass share."""

    def __init__(
        self,
        compatible: Set[str],
        incompatible: dict[Pair, list[JsonDifference]] | None = None,
        pair_count: int = 0,
    ) -> None:
        self.compatible = compatible
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

    def __init__(self, work: _Work, path: tuple[str, ...] = ()) -> None:
        self._work = work
        self._path = list(path)
        self.differences: list[JsonDifference] = []

    @property
    def is_compatible(self) -> bool:
        return self._work.is_compatible(self.differences)

    def branch(self) -> Comparison:
        """A comparison of its own at the same place, whose differences do not count here yet."""
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
        _compare_types(inner, original, update)
        work.open.discard(pair)
        work.known[pair] = inner.differences
        return inner.differences


def _referred(node: SchemaNode) -> SchemaNode:
    seen = 0
    while node.kind == "ref":
        assert node.target is not None
        node = node.target
        seen += 1
        if seen > 100:
            raise InvalidSchema("a $ref refers to itself")
    return node


def _compare_types(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    if original.kind != "combined" and update.kind == "combined":
        if _fits_alternative(found, original, update):
            return
    elif original.kind == "combined" and update.kind != "combined":
        if _is_implied(found, original, update):
            return
    if original.kind != update.kind:
        if original.kind == "false" or update.kind in ("empty", "true"):
            return
        if original.connect_type == "bytes" and update.connect_type == "bytes":
            return
        found.add("TYPE_CHANGED")
        return
    _compare_words(found, original, update)
    match original.kind:
        case "string":
            compare_limits(found, original, update, "maxLength", "minLength")
            _compare_patterns(found, original, update)
        case "number":
            _compare_numbers(found, original, update)
        case "const":
            if original.values != update.values:
                found.add("ENUM_ARRAY_CHANGED", "const")
        case "enum":
            _compare_enums(found, original, update)
        case "combined":
            _compare_combined(found, original, update)
        case "not":
            _compare_not(found, original, update)
        case "object":
            compare_objects(found, original, update)
        case "array":
            compare_arrays(found, original, update)
        case _:
            pass


def _fits_alternative(found: Comparison, original: SchemaNode, update: SchemaNode) -> bool:
    """A schema may become one of the alternatives of a choice."""
    if len(update.children) != 1 and update.criterion not in ("anyOf", "oneOf"):
        return False
    for child in update.children:
        branch = found.branch()
        branch.compare(original, child)
        if branch.is_compatible:
            found.differences += branch.differences
            if len(update.children) > 1:
                found.add("SUM_TYPE_EXTENDED")
            return True
    return False


def _is_implied(found: Comparison, original: SchemaNode, update: SchemaNode) -> bool:
    """One of several conditions may be all that is left of them."""
    if len(original.children) != 1 and original.criterion != "allOf":
        return False
    for child in original.children:
        branch = found.branch()
        branch.compare(child, update)
        if branch.is_compatible:
            found.differences += branch.differences
            if len(original.children) > 1:
                found.add("PRODUCT_TYPE_NARROWED")
            return True
    return False


def _compare_words(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    if original.id != update.id:
        found.add("ID_CHANGED")
    if original.title != update.title:
        found.add("TITLE_CHANGED")
    if original.description != update.description:
        found.add("DESCRIPTION_CHANGED")
    if original.has_default != update.has_default or (
        original.has_default and original.default != update.default
    ):
        found.add("DEFAULT_CHANGED")


def compare_limits(found: Comparison, original: SchemaNode, update: SchemaNode, *keywords: str) -> None:
    """Limits that were added or removed, increased or decreased: `maxLength` is MAX_LENGTH in a difference."""
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


def _compare_patterns(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    old, new = original.limits.get("pattern"), update.limits.get("pattern")
    if old != new:
        change = "ADDED" if old is None else "REMOVED" if new is None else "CHANGED"
        found.add(f"PATTERN_{change}", "pattern")


def _compare_numbers(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    compare_limits(
        found, original, update, "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"
    )
    old, new = original.limits.get("multipleOf"), update.limits.get("multipleOf")
    if old != new:
        if old is None or new is None:
            change = "ADDED" if old is None else "REMOVED"
        elif old and Fraction(str(new)) % Fraction(str(old)) == 0:
            change = "EXPANDED"
        elif new and Fraction(str(old)) % Fraction(str(new)) == 0:
            change = "REDUCED"
        else:
            change = "CHANGED"
        found.add(f"MULTIPLE_OF_{change}", "multipleOf")
    if original.is_integer != update.is_integer:
        found.add("TYPE_EXTENDED" if original.is_integer else "TYPE_NARROWED")


def _compare_enums(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    gone = [each for each in original.values if each not in update.values]
    new = [each for each in update.values if each not in original.values]
    if gone and new:
        found.add("ENUM_ARRAY_CHANGED", "enum")
    elif gone or new:
        found.add("ENUM_ARRAY_NARROWED" if gone else "ENUM_ARRAY_EXTENDED", "enum")


def _compare_not(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    """Forbidding less is compatible, so the two are compared the other way round."""
    with found.at("not"):
        branch = found.branch()
        branch.compare(update.children[0], original.children[0])
        found.add("NOT_TYPE_NARROWED" if branch.is_compatible else "NOT_TYPE_EXTENDED")


def _compare_combined(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    if original.criterion != update.criterion:
        is_one, becomes_one = len(original.children) == 1, len(update.children) == 1
        is_wider = (
            update.criterion == "anyOf"
            or (is_one and (becomes_one or update.criterion == "oneOf"))
            or (becomes_one and original.criterion == "allOf")
        )
        found.add("COMBINED_TYPE_EXTENDED" if is_wider else "COMBINED_TYPE_CHANGED")
        if not is_wider:
            return
    old = list({child.key: child for child in original.children}.values())
    new = list({child.key: child for child in update.children}.values())
    if len(old) < len(new):
        found.add("PRODUCT_TYPE_EXTENDED" if update.criterion == "allOf" else "SUM_TYPE_EXTENDED")
    elif len(old) > len(new):
        found.add("PRODUCT_TYPE_NARROWED" if original.criterion == "allOf" else "SUM_TYPE_NARROWED")
    branches: dict[tuple[int, int], Comparison] = {}
    for left, child in enumerate(old):
        with found.at(original.criterion, str(left)):
            for right, other in enumerate(new):
                branch = found.branch()
                branch.compare(child, other)
                if branch.is_compatible:
                    branches[left, right] = branch
    edges: dict[int, list[int]] = {}
    for left, right in branches:
        edges.setdefault(left, []).append(right)
    partners = maximum_matching(edges, len(old))
    for right, left in sorted(partners.items()):
        found.differences += branches[left, right].differences
    if len(partners) < min(len(old), len(new)):
        found.add("COMBINED_TYPE_SUBSCHEMAS_CHANGED")
