"""Parses schemas of subjects: references are looked up, and parsed schemas are cached."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from strandline.registry import errors
from strandline.registry.formats.large import Call, LargeSchema, SchemaSource
from strandline.registry.formats.parsed import InvalidSchema, ParsedSchema, Reference
from strandline.registry.model.requests import RegisterRequest, shown_references
from strandline.registry.model.state import RegistryState
from strandline.registry.model.stored_schema import StoredSchema
from strandline.registry.model.subjects import within_parent

_CACHE_MAX: Final = 1000  # the most schemas in the cache, as schema.cache.size of Confluent's registry
_CACHE_BYTES_MAX: Final = 32 * 1024 * 1024  # the most characters of text in the cache
_REFERENCE_DEPTH_MAX: Final = 100
_REFERENCES_MAX: Final = 1000  # the most references in all, imports of imports included

_Key = tuple[str, str, tuple[Reference, ...], tuple[tuple[str, str], ...], bool]


class SchemaParser:
    """A parser that several threads may use: parsed schemas are never changed, and cache entries are only removed."""

    def __init__(self, call: Call | None = None) -> None:
        """With `call` large schemas are parsed in another process."""
        self._call = call
        self._cache: OrderedDict[_Key, ParsedSchema] = OrderedDict()
        self._cached_bytes = 0

    def parse_stored(self, state: RegistryState, schema: StoredSchema) -> ParsedSchema:
        return self._parse(state, schema.subject, schema.type, schema.text, schema.references, is_new=False)

    def parse_request(
        self, state: RegistryState, subject: str, request: RegisterRequest, *, is_new: bool
    ) -> ParsedSchema:
        """Raises the error that the client gets if the schema is invalid."""
        try:
            return self._parse(
                state, subject, request.type, request.text or "", request.references, is_new=is_new
            )
        except InvalidSchema as error:
            raise errors.invalid_schema(
                f"Invalid schema of type {request.type}, details: {_detailed(subject, request, error)}"
                if not str(error).startswith("Invalid schema type")
                else str(error)
            ) from error

    def _parse(
        self,
        state: RegistryState,
        subject: str,
        type: str,
        text: str,
        references: tuple[Reference, ...],
        *,
        is_new: bool,
    ) -> ParsedSchema:
        named, resolved = resolve_references(state, subject, references, is_new=is_new)
        key = (type, text, named, tuple(resolved.items()), is_new)
        found = self._cache.get(key)
        if found is None:
            source = SchemaSource(type, text, named, tuple(resolved.items()), is_new=is_new)
            try:
                if self._call is not None and source.is_large:
                    found = LargeSchema(source, self._call)
                else:
                    found = source.parse()
            except RecursionError:
                raise InvalidSchema("the schema is nested too deep") from None
            self._keep(key, found)
        return found

    def _keep(self, key: _Key, parsed: ParsedSchema) -> None:
        self._cache[key] = parsed
        self._cached_bytes += len(key[1])
        while len(self._cache) > _CACHE_MAX or self._cached_bytes > _CACHE_BYTES_MAX:
            try:
                forgotten, _ = self._cache.popitem(last=False)
            except KeyError:  # another thread has emptied it
                return
            self._cached_bytes -= len(forgotten[1])


def resolve_references(
    state: RegistryState, subject: str, references: tuple[Reference, ...], *, is_new: bool
) -> tuple[tuple[Reference, ...], dict[str, str]]:
    """Returns the references with real versions instead of -1, and the text of everything that they import, imports
    first.

    A new schema cannot refer to a deleted one. Raises InvalidSchema if the target of a reference does not exist.
    """
    resolved: dict[str, str] = {}
    visited: set[str] = set()

    def visit(parent: str, references: tuple[Reference, ...], depth: int) -> tuple[Reference, ...]:
        if depth > _REFERENCE_DEPTH_MAX or len(visited) > _REFERENCES_MAX:
            raise InvalidSchema("the references are nested too deep, or too many")
        made = []
        for reference in references:
            found = find_referenced(state, parent, reference, includes_deleted=not is_new)
            if reference.version == -1:
                reference = Reference(reference.name, reference.subject, found.version)
            made.append(reference)
            if reference.name in visited:
                continue
            visited.add(reference.name)
            visit(found.subject, found.references, depth + 1)
            resolved.setdefault(reference.name, found.text)
        return tuple(made)

    return visit(subject, references, 0), resolved


def find_referenced(
    state: RegistryState, parent: str, reference: Reference, *, includes_deleted: bool
) -> StoredSchema:
    subject = within_parent(parent, reference.subject)
    if reference.version == -1:
        found = next(
            (each for each in reversed(state.versions.get(subject, ())) if not each.is_deleted), None
        )
    else:
        found = state.schema(subject, reference.version)
    if found is None or (found.is_deleted and not includes_deleted):
        raise InvalidSchema(
            f'No schema reference found for subject "{subject}" and version {reference.version}'
        )
    return found


def _detailed(subject: str, request: RegisterRequest, error: InvalidSchema) -> str:
    if request.type != "AVRO":
        return f"Invalid schema of type {request.type}, details: {error}"
    return (
        f"Invalid schema {request.shown(subject)} with refs {shown_references(request.references)} "
        f"of type {request.type}, details: {error}"
    )
