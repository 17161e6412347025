"""Finds the target of a `$ref`: in the document, in an imported schema, or in a meta-schema.

Nothing is fetched. A reference to a document that is neither imported nor a meta-schema is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from strandline.registry.formats.parsed import InvalidSchema

DEFAULT_DRAFT: Final = 7
MODERN: Final = 2019  # the draft number of 2019-09 and later
_DIALECTS: Final = {
    "json-schema.org/draft-04/schema": 4,
    "json-schema.org/schema": 4,
    "json-schema.org/draft-06/schema": 6,
    "json-schema.org/draft-07/schema": 7,
    "json-schema.org/draft/2019-09/schema": MODERN,
    "json-schema.org/draft/2020-12/schema": MODERN,
}


@dataclass(slots=True, eq=False)
class SchemaDocument:
    base: str  # the URI that relative references are relative to
    value: Any
    draft: int  # 4, 6, 7 or MODERN
    by_name: dict[str, Any] | None = field(default=None)  # subschemas by $id and $anchor


class Documents:
    def __init__(self, root: Any, imported: Mapping[str, str]) -> None:
        self.root = _document(root, "", DEFAULT_DRAFT)
        self._by_uri: dict[str, SchemaDocument] = {}
        if self.root.base:
            self._by_uri[self.root.base] = self.root
        for name, text in imported.items():
            try:
                value = json.loads(text)
            except ValueError as error:
                raise InvalidSchema(f"the imported schema {name} is not JSON: {error}") from None
            document = _document(value, name, self.root.draft)
            for uri in {name, urljoin(self.root.base, name), f"./{name}", document.base}:
                self._by_uri.setdefault(uri, document)

    def find(self, ref: str, document: SchemaDocument) -> tuple[Any, SchemaDocument]:
        """Returns the JSON that a reference means and the document that it is in. Raises InvalidSchema."""
        uri, fragment = urldefrag(ref)
        where = document if not uri else self._by_reference(uri, document)
        return _in_document(where, unquote(fragment), ref), where

    def _by_reference(self, uri: str, document: SchemaDocument) -> SchemaDocument:
        absolute = urljoin(document.base, uri)
        for candidate in (uri, absolute, uri.removeprefix("./")):
            found = self._by_uri.get(candidate)
            if found is not None:
                return found
        for candidate in (uri, absolute):
            named = _names(document).get(candidate)
            if named is not None:
                return SchemaDocument(candidate, named, document.draft)
        meta = _meta_schema(absolute)
        if meta is None:
            if absolute.startswith(("http:", "https:")):
                raise InvalidSchema(f"Remote schema reference fetching over HTTP(S) is disabled: {absolute}")
            raise InvalidSchema(f"Unresolved $ref '{uri}': no reference of this name is given")
        made = self._by_uri[absolute] = _document(meta, absolute, DEFAULT_DRAFT)
        return made


def _document(value: Any, base: str, draft: int) -> SchemaDocument:
    if isinstance(value, dict):
        own = value.get("$id", value.get("id"))
        if isinstance(own, str):
            base = urldefrag(urljoin(base, own))[0]
        dialect = value.get("$schema")
        if isinstance(dialect, str):
            draft = _draft_of(dialect, draft)
    return SchemaDocument(base, value, draft)


def _draft_of(dialect: str, default: int) -> int:
    """Returns the draft that a `$schema` names; the default if it is not a known draft."""
    _, _, rest = dialect.partition("://")
    return next((draft for start, draft in _DIALECTS.items() if rest.startswith(start)), default)


def _in_document(document: SchemaDocument, fragment: str, ref: str) -> Any:
    value = document.value
    if not fragment:
        return value
    if not fragment.startswith("/"):
        named = _names(document).get(f"#{fragment}")
        if named is None:
            raise InvalidSchema(f"Unresolved $ref '{ref}'")
        return named
    for number, token in enumerate(fragment[1:].split("/")):
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and token not in value and number == 0 and token == "$defs":
            token = "definitions"  # a definition is found under either name
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            raise InvalidSchema(f"Unresolved $ref '{ref}': {token!r} is not there")
    return value


def _names(document: SchemaDocument) -> dict[str, Any]:
    """Returns the subschemas of a document that have a name of their own."""
    if document.by_name is None:
        found: dict[str, Any] = {}
        waiting = [document.value]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                own = value.get("$id", value.get("id"))
                if isinstance(own, str):
                    found.setdefault(own, value)
                    found.setdefault(urljoin(document.base, own), value)
                for keyword in ("$anchor", "$dynamicAnchor"):
                    if isinstance(value.get(keyword), str):
                        found.setdefault(f"#{value[keyword]}", value)
                waiting.extend(value.values())
            elif isinstance(value, list):
                waiting.extend(value)
        document.by_name = found
    return document.by_name


def _meta_schema(uri: str) -> Any:
    """Returns a meta-schema of JSON Schema itself, from the package jsonschema-specifications."""
    if "json-schema.org" not in uri:
        return None
    from jsonschema_specifications import REGISTRY

    for candidate in (uri, uri + "#", uri.replace("https:", "http:") + "#", uri.replace("http:", "https:")):
        found = REGISTRY.get(candidate)
        if found is not None:
            return found.contents
    return None
