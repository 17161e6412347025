"""The tree of a parsed Avro schema."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMED: Final = ("record", "enum", "fixed")
NO_DEFAULT: Final = object()


@dataclass(slots=True, eq=False)
class AvroField:
    name: str
    type: AvroType
    doc: str | None = None
    default: Any = NO_DEFAULT
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    props: dict[str, Any] = field(default_factory=dict)

    @property
    def has_default(self) -> bool:
        return self.default is not NO_DEFAULT


@dataclass(slots=True, eq=False)
class AvroType:
    """One type. Compared by identity: a record may contain itself."""

    kind: str
    name: str = ""
    namespace: str | None = None
    doc: str | None = None
    aliases: tuple[str, ...] = ()  # full names
    fields: tuple[AvroField, ...] = ()
    symbols: tuple[str, ...] = ()
    enum_default: str | None = None
    size: int = 0
    items: AvroType | None = None  # an array's elements, a map's values
    branches: tuple[AvroType, ...] = ()
    is_error: bool = False
    props: dict[str, Any] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        if self.kind not in NAMED:
            return self.kind
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    def field_named(self, name: str) -> AvroField | None:
        for each in self.fields:
            if each.name == name:
                return each
        return None
