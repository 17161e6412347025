"""Decides whether an object or an array admits members that it does not name. It is open if it admits any member,
closed if it admits none, and partially open if such members have to fit a schema.
"""

from __future__ import annotations

from strandline.registry.formats.json_schema.nodes import SchemaNode
from strandline.registry.formats.json_schema.patterns import matches


def is_open(node: SchemaNode) -> bool:
    if not node.permits_more or node.more is not None or node.patterns:
        return False
    return node.unevaluated is None or node.unevaluated.kind in ("empty", "true")


def schema_of_unnamed(node: SchemaNode, name: str | None = None) -> SchemaNode | None:
    """Returns the schema that an unnamed member has to fit in a partially open model; None in any other."""
    if name is not None:
        for pattern, schema in node.patterns.items():
            if matches(pattern, name):
                return schema
    if node.more is not None:
        return node.more
    unevaluated = node.unevaluated
    if node.permits_more and unevaluated is not None and unevaluated.kind not in ("false", "empty", "true"):
        return unevaluated
    return None
