"""The tree that schemas are compared in: one node for each kind of constraint, several joined by allOf.

`{"type": "string", "enum": [...]}` is an allOf of a node for strings and one for the enum: each node is compared with a
node of the same kind. References are kept as references, because a schema may contain itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

NO_DEFAULT: Final = object()


@dataclass(slots=True, eq=False)
class SchemaNode:
    """`kind` is true, false, empty, string, number, boolean, null, array, object, enum, const, not, combined,
    conditional or ref."""

    kind: str
    source: Any = None  # the JSON of the node; two nodes with the same source are the same constraint
    id: str | None = None
    title: str | None = None
    description: str | None = None
    default: Any = NO_DEFAULT
    connect_type: Any = None
    # string: maxLength, minLength, pattern; number: bounds, multipleOf; counts of arrays and objects
    limits: dict[str, Any] = field(default_factory=dict)
    is_integer: bool = False
    values: list[Any] = field(default_factory=list)  # the values of an enum, or the one value of a const
    criterion: str = ""  # allOf, anyOf or oneOf
    children: list[SchemaNode] = field(default_factory=list)  # of a combination, or the one of `not`
    # object
    properties: dict[str, SchemaNode] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    patterns: dict[str, SchemaNode] = field(default_factory=dict)
    property_dependencies: dict[str, set[str]] = field(default_factory=dict)
    schema_dependencies: dict[str, SchemaNode] = field(default_factory=dict)
    # object and array: whether unnamed members are allowed, and their schema
    permits_more: bool = True
    more: SchemaNode | None = None
    unevaluated: SchemaNode | None = None
    # array
    all_items: SchemaNode | None = None
    items: list[SchemaNode] = field(default_factory=list)
    is_unique: bool = False
    target: SchemaNode | None = None  # the target of a reference, after it is resolved

    @property
    def has_default(self) -> bool:
        return self.default is not NO_DEFAULT

    @property
    def key(self) -> str:
        """A text that is equal for nodes with the same meaning."""
        about = [self.source, self.id, self.title, self.description, self.has_default and [self.default]]
        return f"{self.kind}:{json.dumps(about, sort_keys=True, default=str)}"
