"""A JSON Schema in the registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar

from strandline.registry.formats.json_schema.comparison import compare_schemas
from strandline.registry.formats.json_schema.differences import COMPATIBLE, COMPATIBLE_IF_LENIENT
from strandline.registry.formats.json_schema.loader import load_schema
from strandline.registry.formats.json_schema.nodes import SchemaNode
from strandline.registry.formats.parsed import InvalidSchema, ParsedSchema, Reference


class JsonSchema(ParsedSchema):
    type: ClassVar[str] = "JSON"

    def __init__(self, value: Any, references: tuple[Reference, ...], resolved: Mapping[str, str]) -> None:
        super().__init__(references, resolved)
        self.value = value
        self._text = _dumped(value)
        self._root: SchemaNode | None = None

    @classmethod
    def parse(cls, text: str, references: tuple[Reference, ...], resolved: Mapping[str, str]) -> JsonSchema:
        try:
            value = json.loads(text, parse_constant=_refuse_constant, parse_float=Decimal)
        except (ValueError, RecursionError) as error:
            raise InvalidSchema(f"Invalid JSON schema: {error}") from None
        return cls(value, references, resolved)

    @property
    def text(self) -> str:
        return self._text

    @property
    def root(self) -> SchemaNode:
        """The tree that schemas are compared in; raises InvalidSchema if there is none."""
        if self._root is None:
            self._root = load_schema(self.value, self.resolved)
        return self._root

    def check(self, *, is_strict: bool) -> None:
        root = self.root
        if is_strict and root.kind == "object" and any(name.startswith("$$") for name in root.properties):
            raise InvalidSchema("Field names cannot start with $$ prefix")

    def normalized(self) -> JsonSchema:
        return JsonSchema(_sorted(self.value), self.sorted_references(), self.resolved)

    def incompatibilities(self, previous: ParsedSchema, *, is_lenient: bool = False) -> list[str]:
        assert isinstance(previous, JsonSchema)
        compatible = COMPATIBLE_IF_LENIENT if is_lenient else COMPATIBLE
        found = compare_schemas(previous.root, self.root, compatible)
        return [str(each) for each in found if each.type not in compatible]

    def has_top_level_field(self, name: str) -> bool:
        properties = self.value.get("properties") if isinstance(self.value, dict) else None
        return isinstance(properties, dict) and name in properties


def _dumped(value: Any) -> str:
    """Returns Returns JSON text without spaces. Numbers with a point keep their digits: 0.10 is not written as 0.1."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    except TypeError:  # the text is a number
        return _spelled(value)


def _spelled(value: Any) -> str:
    match value:
        case dict():
            return f"{{{','.join(f'{json.dumps(k, ensure_ascii=False)}:{_spelled(v)}' for k, v in value.items())}}}"
        case list():
            return f"[{','.join(map(_spelled, value))}]"
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(each) for each in value]
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
