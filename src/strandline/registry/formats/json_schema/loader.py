"""Builds the tree of nodes from JSON, and refuses JSON that is not a schema. Keywords are read in the order of the
loader of Confluent's registry: a `$ref` counts alone; otherwise enum, combinations, not and const come first, then the
declared types, then keywords that imply a type without declaring it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from strandline.registry.formats.json_schema.nodes import NO_DEFAULT, SchemaNode
from strandline.registry.formats.json_schema.patterns import check_pattern
from strandline.registry.formats.json_schema.references import MODERN, Documents, SchemaDocument
from strandline.registry.formats.parsed import InvalidSchema

DEPTH_MAX: Final = 150
_COMBINATIONS: Final = ("allOf", "anyOf", "oneOf")
_STRING_KEYS: Final = ("minLength", "maxLength", "pattern", "format")
_NUMBER_KEYS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_OBJECT_KEYS_4: Final = (
    "properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties",
    "additionalProperties",
)  # fmt: skip
_OBJECT_KEYS_6: Final = (*_OBJECT_KEYS_4, "propertyNames")
_OBJECT_KEYS_MODERN: Final = (
    "properties", "required", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas",
    "patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties",
)  # fmt: skip
_KEYS_OF_OBJECTS: Final = {
    4: _OBJECT_KEYS_4,
    6: _OBJECT_KEYS_6,
    7: _OBJECT_KEYS_6,
    MODERN: _OBJECT_KEYS_MODERN,
}
_ARRAY_KEYS_4: Final = ("items", "additionalItems", "minItems", "maxItems", "uniqueItems")
_ARRAY_KEYS_6: Final = (*_ARRAY_KEYS_4, "contains")
_ARRAY_KEYS_MODERN: Final = (
    "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
    "unevaluatedItems",
)  # fmt: skip
_KEYS_OF_ARRAYS: Final = {4: _ARRAY_KEYS_4, 6: _ARRAY_KEYS_6, 7: _ARRAY_KEYS_6, MODERN: _ARRAY_KEYS_MODERN}
_CONDITION_KEYS: Final = ("if", "then", "else")
_TYPES: Final = ("string", "number", "integer", "boolean", "null", "array", "object")


def load_schema(value: Any, resolved: Mapping[str, str]) -> SchemaNode:
    """Returns the tree of a schema with the schemas that it refers to. Raises InvalidSchema."""
    if not isinstance(value, dict | bool):
        kind = {str: "STRING", list: "ARRAY", type(None): "NULL"}.get(type(value), "NUMBER")
        raise InvalidSchema(f"Invalid JSON schema: expected an object or boolean at the root, found {kind}")
    documents = Documents(value, resolved)
    loader = _Loader(documents)
    root = loader.load(value, documents.root, 0)
    loader.resolve_references()
    return root


class _Loader:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._loaded: dict[tuple[int, int], SchemaNode] = {}  # by document and value
        self._waiting: list[tuple[SchemaNode, str, SchemaDocument, int]] = []

    def resolve_references(self) -> None:
        """Loads the targets of all references, and the targets of references in those."""
        while self._waiting:
            node, ref, document, depth = self._waiting.pop()
            value, where = self._documents.find(ref, document)
            key = (id(where), id(value))
            target = self._loaded.get(key)
            if target is None:
                target = self.load(value, where, depth + 1)
            node.target = target

    def load(self, value: Any, document: SchemaDocument, depth: int) -> SchemaNode:
        if depth > DEPTH_MAX:
            raise InvalidSchema(f"the schema is nested more than {DEPTH_MAX} deep")
        if isinstance(value, bool):
            return SchemaNode("true" if value else "false", source=value)
        if not isinstance(value, dict):
            raise InvalidSchema(f"expected type is one of JsonObject or Boolean, found: {_shown(value)}")
        parts = _Parts(self, value, document, depth).collect()
        if not parts:
            node = SchemaNode("empty", source=value)
        elif len(parts) == 1:
            node = parts[0]
        else:
            node = SchemaNode("combined", source=value, criterion="allOf", children=parts)
        node.id = _text(value.get("$id", value.get("id")))
        node.title = _text(value.get("title"))
        node.description = _text(value.get("description"))
        node.default = value.get("default", NO_DEFAULT)
        node.connect_type = value.get("connect.type")
        self._loaded[id(document), id(value)] = node
        return node

    def refer(self, node: SchemaNode, ref: str, document: SchemaDocument, depth: int) -> None:
        self._waiting.append((node, ref, document, depth))


class _Parts:
    """Takes the keywords of one JSON object apart into nodes."""

    def __init__(self, loader: _Loader, value: dict[str, Any], document: SchemaDocument, depth: int) -> None:
        self._loader = loader
        self._value = value
        self._document = document
        self._depth = depth
        self._draft = document.draft
        self._array_keys = _KEYS_OF_ARRAYS[self._draft]
        self._object_keys = _KEYS_OF_OBJECTS[self._draft]

    def collect(self) -> list[SchemaNode]:
        value = self._value
        ref = value.get("$ref", value.get("$dynamicRef", value.get("$recursiveRef")))
        if ref is not None:
            return [self._reference(ref)]
        parts = []
        if "enum" in value:
            self._require(isinstance(value["enum"], list), "enum", "an array")
            parts.append(SchemaNode("enum", source=value["enum"], values=value["enum"]))
        parts += [self._combination(keyword) for keyword in _COMBINATIONS if keyword in value]
        if "not" in value:
            parts.append(SchemaNode("not", source=value["not"], children=[self._child(value["not"])]))
        if "const" in value and self._draft > 4:
            parts.append(SchemaNode("const", source=value["const"], values=[value["const"]]))
        declared, typed = self._typed()
        return parts + typed + self._implied(declared)

    def _reference(self, ref: Any) -> SchemaNode:
        self._require(isinstance(ref, str), "$ref", "text")
        node = SchemaNode("ref", source=ref)
        self._loader.refer(node, ref, self._document, self._depth)
        return node

    def _combination(self, keyword: str) -> SchemaNode:
        listed = self._value[keyword]
        self._require(isinstance(listed, list), keyword, "an array")
        return SchemaNode(
            "combined",
            source={keyword: listed},
            criterion=keyword,
            children=[self._child(each) for each in listed],
        )

    def _typed(self) -> tuple[tuple[str, ...], list[SchemaNode]]:
        """Returns the declared types, and their nodes."""
        declared = self._value.get("type")
        if declared is None:
            return (), []
        if isinstance(declared, str):
            return (declared,), [self._of_type(declared)]
        if not isinstance(declared, list) or not all(isinstance(each, str) for each in declared):
            raise InvalidSchema(f"type is neither text nor an array of text: {_shown(declared)}")
        nodes = [self._of_type(each) for each in declared]
        source = {"type": declared, **{k: v for k, v in self._value.items() if k not in ("title", "type")}}
        return tuple(declared), [SchemaNode("combined", source=source, criterion="anyOf", children=nodes)]

    def _of_type(self, name: str) -> SchemaNode:
        match name:
            case "string":
                return self._string()
            case "number" | "integer":
                return self._number(is_integer=name == "integer")
            case "boolean" | "null":
                return SchemaNode(name, source=name)
            case "array":
                return self._array()
            case "object":
                return self._object()
            case _:
                raise InvalidSchema(f"unknown type: [{name}]")

    def _implied(self, declared: tuple[str, ...]) -> list[SchemaNode]:
        """Returns nodes for keywords whose type is not declared."""
        value = self._value
        parts = []
        if "array" not in declared and any(key in value for key in self._array_keys):
            parts.append(self._array())
        if "object" not in declared and any(key in value for key in self._object_keys):
            parts.append(self._object())
        if not {"number", "integer"} & set(declared) and any(key in value for key in _NUMBER_KEYS):
            parts.append(self._number(is_integer=False))
        if "string" not in declared and any(key in value for key in _STRING_KEYS):
            parts.append(self._string())
        if self._draft >= 7 and any(key in value for key in _CONDITION_KEYS):
            source = {key: value[key] for key in _CONDITION_KEYS if key in value}
            children = [self._child(each) for each in source.values()]
            parts.append(SchemaNode("conditional", source=source, children=children))
        return parts

    def _string(self) -> SchemaNode:
        node = self._node("string", _STRING_KEYS)
        self._counts(node, "minLength", "maxLength")
        pattern = self._value.get("pattern")
        if pattern is not None:
            self._require(isinstance(pattern, str), "pattern", "text")
            check_pattern(pattern)
            node.limits["pattern"] = pattern
        return node

    def _number(self, *, is_integer: bool) -> SchemaNode:
        node = self._node("number", _NUMBER_KEYS)
        node.is_integer = is_integer
        value = self._value
        for keyword in ("minimum", "maximum", "multipleOf"):
            if keyword in value:
                self._require(_is_number(value[keyword]), keyword, "a number")
                self._require(
                    keyword != "multipleOf" or value[keyword] != 0, keyword, "a number other than zero"
                )
                node.limits[keyword] = value[keyword]
        for keyword, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            exclusive = value.get(keyword)
            if exclusive is None:
                continue
            if self._draft == 4:  # true says that the other bound is exclusive
                self._require(isinstance(exclusive, bool), keyword, "true or false")
                if exclusive and bound in node.limits:
                    node.limits[keyword] = node.limits.pop(bound)
                continue
            self._require(_is_number(exclusive), keyword, "a number")
            node.limits[keyword] = exclusive
        return node

    def _object(self) -> SchemaNode:
        node = self._node("object", self._object_keys)
        value = self._value
        self._counts(node, "minProperties", "maxProperties")
        required = value.get("required")
        if required is not None and not isinstance(required, bool):
            is_list = isinstance(required, list) and all(isinstance(each, str) for each in required)
            self._require(is_list, "required", "an array of names")
            node.required = set(required)
        node.properties = self._children("properties")
        node.patterns = self._children("patternProperties")
        for pattern in node.patterns:
            check_pattern(pattern)
        self._dependencies(node)
        node.permits_more, node.more = self._more("additionalProperties")
        if "unevaluatedProperties" in self._object_keys and "unevaluatedProperties" in value:
            node.unevaluated = self._child(value["unevaluatedProperties"])
        if "propertyNames" in self._object_keys and "propertyNames" in value:
            self._child(value["propertyNames"])
        return node

    def _dependencies(self, node: SchemaNode) -> None:
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            listed = self._value.get(keyword)
            if listed is None or keyword not in self._object_keys:
                continue
            self._require(isinstance(listed, dict), keyword, "an object")
            for name, each in listed.items():
                if isinstance(each, list):
                    node.property_dependencies[name] = {str(other) for other in each}
                else:
                    node.schema_dependencies[name] = self._child(each)

    def _array(self) -> SchemaNode:
        node = self._node("array", self._array_keys)
        value = self._value
        is_modern = self._draft == MODERN
        self._counts(node, "minItems", "maxItems", *(("minContains", "maxContains") if is_modern else ()))
        if "contains" in value and self._draft > 4:
            self._child(value["contains"])
            if is_modern:
                node.limits.setdefault("minContains", 1)
        unique = value.get("uniqueItems", False)
        self._require(isinstance(unique, bool), "uniqueItems", "true or false")
        node.is_unique = unique
        items, prefix = value.get("items"), value.get("prefixItems") if is_modern else None
        if isinstance(items, list):
            self._require(not is_modern, "items", "a schema; prefixItems takes an array")
            prefix, items = items, None
        if prefix is not None:
            self._require(isinstance(prefix, list), "prefixItems", "an array")
            node.items = [self._child(each) for each in prefix]
            if items is not None:
                node.permits_more, node.more = self._more("items")
        elif items is not None:
            if items is False:
                node.permits_more = False
            elif items is not True:
                node.all_items = self._child(items)
        if "additionalItems" in value and not is_modern:
            node.permits_more, node.more = self._more("additionalItems")
        if "unevaluatedItems" in value and is_modern:
            node.unevaluated = self._child(value["unevaluatedItems"])
        return node

    def _more(self, keyword: str) -> tuple[bool, SchemaNode | None]:
        more = self._value.get(keyword, True)
        if isinstance(more, bool):
            return more, None
        return True, self._child(more)

    def _children(self, keyword: str) -> dict[str, SchemaNode]:
        listed = self._value.get(keyword)
        if listed is None:
            return {}
        self._require(isinstance(listed, dict), keyword, "an object")
        return {name: self._child(each) for name, each in listed.items()}

    def _child(self, value: Any) -> SchemaNode:
        return self._loader.load(value, self._document, self._depth + 1)

    def _node(self, kind: str, keywords: tuple[str, ...]) -> SchemaNode:
        source = {key: self._value[key] for key in (*keywords, "type") if key in self._value}
        return SchemaNode(kind, source=source)

    def _counts(self, node: SchemaNode, *keywords: str) -> None:
        for keyword in keywords:
            if keyword in self._value:
                count = self._value[keyword]
                self._require(_is_number(count), keyword, "a number")
                node.limits[keyword] = int(count)

    def _require(self, condition: bool, keyword: str, wanted: str) -> None:
        if not condition:
            raise InvalidSchema(f"{keyword} is not {wanted}: {_shown(self._value.get(keyword))}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:200]
