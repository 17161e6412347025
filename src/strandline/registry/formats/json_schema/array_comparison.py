"""Compares the array keywords of two schemas."""

from __future__ import annotations

from strandline.registry.formats.json_schema.branches import Comparison, compare_limits
from strandline.registry.formats.json_schema.content_models import is_open, schema_of_unnamed
from strandline.registry.formats.json_schema.member_comparison import (
    compare_covered,
    compare_more,
    compare_unevaluated,
)
from strandline.registry.formats.json_schema.nodes import SchemaNode


def compare_arrays(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    with found.at("items"):
        found.compare(original.all_items, update.all_items)
    for number in range(max(len(original.items), len(update.items))):
        with found.at(f"items/{number}"):
            _compare_item(found, original, update, number)
    compare_more(found, original, update, "additionalItems", "ADDITIONAL_ITEMS")
    compare_unevaluated(found, original, update, "unevaluatedItems", "UNEVALUATED_ITEMS")
    compare_limits(found, original, update, "maxItems", "minItems", "maxContains", "minContains")
    if original.is_unique != update.is_unique:
        found.add(f"UNIQUE_ITEMS_{'REMOVED' if original.is_unique else 'ADDED'}", "uniqueItems")


def _compare_item(found: Comparison, original: SchemaNode, update: SchemaNode, number: int) -> None:
    if number >= len(update.items):
        _compare_removed(found, original.items[number], update)
    elif number >= len(original.items):
        _compare_added(found, original, update.items[number])
    else:
        found.compare(original.items[number], update.items[number])


def _compare_removed(found: Comparison, old: SchemaNode, update: SchemaNode) -> None:
    unnamed = schema_of_unnamed(update)
    if is_open(update):
        found.add("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL")
    elif unnamed is not None:
        compare_covered(
            found,
            old,
            unnamed,
            "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
            "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        )
    elif old.kind == "false":
        found.add("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")
    else:
        found.add("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL")


def _compare_added(found: Comparison, original: SchemaNode, new: SchemaNode) -> None:
    unnamed = schema_of_unnamed(original)
    if is_open(original):
        is_empty = new.kind in ("empty", "true")
        found.add(f"ITEM{'_WITH_EMPTY_SCHEMA' if is_empty else ''}_ADDED_TO_OPEN_CONTENT_MODEL")
    elif unnamed is not None:
        compare_covered(
            found,
            unnamed,
            new,
            "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
            "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        )
    else:
        found.add("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL")
