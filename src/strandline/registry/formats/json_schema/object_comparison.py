"""Compares the object keywords of two schemas."""

from __future__ import annotations

from strandline.registry.formats.json_schema.branches import Comparison, compare_limits
from strandline.registry.formats.json_schema.content_models import is_open, schema_of_unnamed
from strandline.registry.formats.json_schema.member_comparison import (
    compare_covered,
    compare_more,
    compare_unevaluated,
)
from strandline.registry.formats.json_schema.nodes import SchemaNode


def compare_objects(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    _compare_required(found, original, update)
    with found.at("properties"):
        for name in dict.fromkeys((*original.properties, *update.properties)):
            with found.at(name):
                _compare_property(found, original, update, name)
    _compare_dependencies(found, original, update)
    compare_more(found, original, update, "additionalProperties", "ADDITIONAL_PROPERTIES")
    compare_unevaluated(found, original, update, "unevaluatedProperties", "UNEVALUATED_PROPERTIES")
    compare_limits(found, original, update, "maxProperties", "minProperties")


def _compare_required(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    for name in original.properties:
        if name not in update.properties:
            continue
        was_required, is_required = name in original.required, name in update.required
        if was_required and not is_required:
            found.add("REQUIRED_ATTRIBUTE_REMOVED", "required", name)
        elif is_required and not was_required:
            has_default = update.properties[name].has_default
            type = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if has_default else "REQUIRED_ATTRIBUTE_ADDED"
            found.add(type, "required", name)


def _compare_property(found: Comparison, original: SchemaNode, update: SchemaNode, name: str) -> None:
    old, new = original.properties.get(name), update.properties.get(name)
    if old is not None and new is not None:
        found.compare(old, new)
    elif old is not None:
        _compare_removed(found, old, update, name)
    elif new is not None:
        _compare_added(found, original, update, new, name)


def _compare_removed(found: Comparison, old: SchemaNode, update: SchemaNode, name: str) -> None:
    """Compares a removed property with the new schema for unnamed properties, which now applies to its old values."""
    if is_open(update):
        found.add("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL")
        return
    unnamed = schema_of_unnamed(update, name)
    if unnamed is not None:
        compare_covered(
            found,
            old,
            unnamed,
            "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        )
    elif old.kind == "false":
        found.add("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")
    else:
        found.add("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL")


def _compare_added(
    found: Comparison, original: SchemaNode, update: SchemaNode, new: SchemaNode, name: str
) -> None:
    """Compares an added property with the old schema: old data may have any value under its name that the old schema
    admitted."""
    is_required = name in update.required
    if is_open(original):
        if new.kind in ("empty", "true"):
            found.add("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL")
        elif is_required:
            with_default = "_WITH_DEFAULT" if new.has_default else ""
            found.add(f"REQUIRED_PROPERTY{with_default}_ADDED_TO_OPEN_CONTENT_MODEL")
        else:
            found.add("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL")
        return
    unnamed = schema_of_unnamed(original, name)
    if unnamed is not None:
        compare_covered(
            found,
            unnamed,
            new,
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        )
    if not is_required:
        found.add("OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL")
    elif new.has_default:
        found.add("REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL")
    else:
        found.add("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL")


def _compare_dependencies(found: Comparison, original: SchemaNode, update: SchemaNode) -> None:
    with found.at("dependencies"):
        for name in dict.fromkeys((*original.property_dependencies, *update.property_dependencies)):
            old, new = original.property_dependencies.get(name), update.property_dependencies.get(name)
            if new is None:
                found.add("DEPENDENCY_ARRAY_REMOVED", name)
            elif old is None:
                found.add("DEPENDENCY_ARRAY_ADDED", name)
            elif old != new:
                change = "EXTENDED" if new >= old else "NARROWED" if old >= new else "CHANGED"
                found.add(f"DEPENDENCY_ARRAY_{change}", name)
        for name in dict.fromkeys((*original.schema_dependencies, *update.schema_dependencies)):
            before, after = original.schema_dependencies.get(name), update.schema_dependencies.get(name)
            if after is None:
                found.add("DEPENDENCY_SCHEMA_REMOVED", name)
            elif before is None:
                found.add("DEPENDENCY_SCHEMA_ADDED", name)
            else:
                with found.at(name):
                    found.compare(before, after)
