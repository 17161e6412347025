"""Rules that the members of objects and of arrays share."""

from __future__ import annotations

from strandline.registry.formats.json_schema.branches import Comparison
from strandline.registry.formats.json_schema.nodes import SchemaNode


def compare_covered(
    found: Comparison, original: SchemaNode, update: SchemaNode, covered: str, uncovered: str
) -> None:
    """Compares an added or removed member with the schema for unnamed members of the side that lacks it."""
    branch = found.branch()
    branch.compare(original, update)
    found.differences += branch.differences
    found.add(covered if branch.is_compatible else uncovered)


def compare_more(
    found: Comparison, original: SchemaNode, update: SchemaNode, keyword: str, name: str
) -> None:
    """Compares the values that are admitted beside the named members: additionalProperties, additionalItems."""
    with found.at(keyword):
        if original.permits_more != update.permits_more:
            found.add(f"{name}_{'ADDED' if update.permits_more else 'REMOVED'}")
        elif original.more is None and update.more is not None:
            found.add(f"{name}_NARROWED")
        elif original.more is not None and update.more is None:
            found.add(f"{name}_EXTENDED")
        else:
            found.compare(original.more, update.more)


def compare_unevaluated(
    found: Comparison, original: SchemaNode, update: SchemaNode, keyword: str, name: str
) -> None:
    """Compares the values that are admitted for members that no part of the schema has evaluated:
    unevaluatedProperties, unevaluatedItems."""
    old, new = original.unevaluated, update.unevaluated
    if old is None and new is None:
        return
    with found.at(keyword):
        was_closed, is_closed = (
            old is not None and old.kind == "false",
            new is not None and new.kind == "false",
        )
        was_open, is_open = _is_open(old), _is_open(new)
        if was_closed != is_closed:
            found.add(f"{name}_{'ADDED' if was_closed else 'REMOVED'}")
        elif old is None or new is None:
            found.add(f"{name}_{'NARROWED' if old is None else 'EXTENDED'}")
        elif was_open != is_open:
            found.add(f"{name}_{'NARROWED' if was_open else 'EXTENDED'}")
        else:
            found.compare(old, new)


def _is_open(node: SchemaNode | None) -> bool:
    return node is not None and node.kind in ("empty", "true")
