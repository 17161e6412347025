"""Compares two JSON Schemas node by node, as Confluent's registry does.

If a schema contains itself, everything is compared again until no new difference is found.
"""

from __future__ import annotations

from collections.abc import Set
from fractions import Fraction
from typing import Final

from strandline.registry.formats.json_schema.array_comparison import compare_arrays
from strandline.registry.formats.json_schema.branches import Comparison, ComparisonPass, Pair, compare_limits
from strandline.registry.formats.json_schema.differences import JsonDifference
from strandline.registry.formats.json_schema.matching import maximum_matching
from strandline.registry.formats.json_schema.nodes import SchemaNode
from strandline.registry.formats.json_schema.object_comparison import compare_objects
from strandline.registry.formats.parsed import InvalidSchema

_PASSES_MAX: Final = 20


def compare_schemas(original: SchemaNode, update: SchemaNode, compatible: Set[str]) -> list[JsonDifference]:
    """Returns the differences of `update` from `original`, with their paths."""
    incompatible: dict[Pair, list[JsonDifference]] = {}
    work = ComparisonPass(compatible, _compare_types)
    for _ in range(_PASSES_MAX):
        work = ComparisonPass(compatible, _compare_types, incompatible, work.pair_count)
        comparison = Comparison(work)
        comparison.compare(original, update)
        found = work.incompatible_pairs()
        if not work.was_optimistic or found.keys() == incompatible.keys():
            return comparison.differences
        incompatible = found
    raise InvalidSchema("the schemas refer to each other in too many ways to be compared")


def _compare_types(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    if update.kind == "combined" != original.kind:
        if _fits_alternative(found, original, update):
            return
    elif original.kind == "combined" != update.kind and _is_implied(found, original, update):
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
    """True if the original schema fits one of the alternatives of a choice."""
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
    """True if the update is one of several conditions of the original, the others being dropped."""
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


def _compare_patterns(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    old, new = original.limits.get("pattern"), update.limits.get("pattern")
    if old != new:
        change = "ADDED" if old is None else "REMOVED" if new is None else "CHANGED"
        found.add(f"PATTERN_{change}", "pattern")


def _compare_numbers(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    compare_limits(found, original, update, "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum")
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
    """Compares two `not` schemas in the opposite direction, because forbidding less is compatible."""
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
