"""Everything that the registry knows: the result of applying the records of `_schemas` in order.

`apply` changes the state and decides nothing. Values are immutable and replaced as a whole, so that another thread may
read while records are applied, and a copy costs no more than its dictionaries.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import assert_never

from strandline.registry.model.records import (
    ClearSubjectRecord,
    ContextRecord,
    DeleteSubjectRecord,
    NoopRecord,
    RegistryRecord,
    SchemaRecord,
    SubjectConfigRecord,
    SubjectModeRecord,
)
from strandline.registry.model.rules import Json
from strandline.registry.model.stored_schema import StoredSchema
from strandline.registry.model.subjects import (
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT,
    QualifiedSubject,
    context_of,
    within_parent,
)

VersionKey = tuple[str, int]  # subject and version
ContextId = tuple[str, int]  # context and id


class RegistryState:
    def __init__(self) -> None:
        self.subjects: list[str] = []  # sorted; includes subjects that have only deleted versions
        self.versions: dict[str, tuple[StoredSchema, ...]] = {}  # ascending by version
        self.places: dict[ContextId, dict[str, int]] = {}  # the version of each subject that has this id
        self.ids: dict[tuple[str, bytes], int] = {}  # by context and digest
        self.id_max: dict[str, int] = {}  # by context
        self.referrers: dict[VersionKey, frozenset[ContextId]] = {}
        self.configs: dict[str | None, Json] = {}
        self.modes: dict[str | None, str] = {}
        self.contexts: tuple[str, ...] = ()  # sorted, without the default one
        self.clash_count = 0  # the number of records whose id belonged to another schema
        self.removals = object()  # changes whenever a version is deleted, softly or for good

    def copy(self) -> RegistryState:
        made = RegistryState()
        made.subjects = self.subjects[:]
        made.versions = self.versions.copy()
        made.places = self.places.copy()
        made.ids = self.ids.copy()
        made.id_max = self.id_max.copy()
        made.referrers = self.referrers.copy()
        made.configs = self.configs.copy()
        made.modes = self.modes.copy()
        made.contexts = self.contexts
        made.clash_count = self.clash_count
        return made

    def apply(self, record: RegistryRecord) -> None:
        match record:
            case SchemaRecord(subject, version, None):
                self._remove(subject, version)
            case SchemaRecord(_, _, schema):
                assert schema is not None
                self._put(schema)
            case SubjectConfigRecord(subject, None):
                self.configs.pop(subject, None)
            case SubjectConfigRecord(subject, config):
                assert config is not None
                self.configs[subject] = config
            case SubjectModeRecord(subject, None):
                self.modes.pop(subject, None)
            case SubjectModeRecord(subject, mode):
                assert mode is not None
                self.modes[subject] = mode
            case DeleteSubjectRecord(subject, version):
                self.removals = object()
                self.versions[subject] = tuple(
                    replace(each, is_deleted=True) if each.version <= version else each
                    for each in self.versions.get(subject, ())
                )
                if not self.versions[subject]:
                    del self.versions[subject]
            case ClearSubjectRecord(subject):
                self._clear(subject)
            case ContextRecord(context, exists):
                others = {each for each in self.contexts if each != context}
                self.contexts = tuple(sorted(others | {context} if exists else others))
            case NoopRecord(floors):
                for context, id in floors:
                    self.id_max[context] = max(self.id_max.get(context, 0), id)
            case _:
                assert_never(record)

    def _put(self, schema: StoredSchema) -> None:
        context = context_of(schema.subject)
        known = self.schema_by_id(schema.id, context)
        if known is not None and known.text != schema.text:
            self.clash_count += 1
            return
        others = self.versions.get(schema.subject)
        if others is None:
            insort(self.subjects, schema.subject)
            others = ()
        kept = [each for each in others if each.version != schema.version]
        if len(kept) < len(others) or schema.is_deleted:
            self.removals = object()
        insort(kept, schema, key=lambda each: each.version)
        self.versions[schema.subject] = tuple(kept)
        place = (context, schema.id)
        self.places[place] = self.places.get(place, {}) | {schema.subject: schema.version}
        self.ids[context, schema.digest] = schema.id
        self.id_max[context] = max(self.id_max.get(context, 0), schema.id)
        if not schema.is_deleted:
            for key in referenced_keys(schema):
                self.referrers[key] = self.referrers.get(key, frozenset()) | {place}

    def _remove(self, subject: str, version: int) -> None:
        removed = self.schema(subject, version)
        if removed is None:
            return
        self.removals = object()
        kept = tuple(each for each in self.versions[subject] if each.version != version)
        if kept:
            self.versions[subject] = kept
        else:
            del self.versions[subject]
            del self.subjects[bisect_left(self.subjects, subject)]
        place = (context_of(subject), removed.id)
        if self.places.get(place, {}).get(subject) == version:
            left = {key: each for key, each in self.places[place].items() if key != subject}
            if left:
                self.places[place] = left
            else:
                del self.places[place]
        for key in referenced_keys(removed):
            referrers = self.referrers.get(key, frozenset()) - {place}
            if referrers:
                self.referrers[key] = referrers
            else:
                self.referrers.pop(key, None)

    def _clear(self, subject: str | None) -> None:
        matches = subject_matcher(subject)
        for each in [each for each in self.subjects if matches(each)]:
            for schema in self.versions[each]:
                if schema.is_deleted:
                    self._remove(each, schema.version)

    # Lookups

    def id_floors(self) -> tuple[tuple[str, int], ...]:
        """Returns the highest ids of contexts if their versions were deleted, by context."""
        return tuple(each for each in sorted(self.id_max.items()) if each not in self.places)

    def schema(self, subject: str, version: int) -> StoredSchema | None:
        for each in self.versions.get(subject, ()):
            if each.version == version:
                return each
        return None

    def schema_by_id(self, id: int, context: str, subject: str = "") -> StoredSchema | None:
        """Returns the schema with this id in a context, as any subject has it, or as this one does."""
        places = self.places.get((context, id))
        if not places:
            return None
        if not subject:
            subject = next(iter(places))
        version = places.get(subject)
        return None if version is None else self.schema(subject, version)

    def subject_exists(self, subject: str | None, *, includes_deleted: bool) -> bool:
        """True if the subject, or for a context any subject in it, has a version."""
        if subject is not None and QualifiedSubject.parse(subject).name:
            return self._has_version(subject, includes_deleted)
        matches = subject_matcher(subject)
        return any(self._has_version(each, includes_deleted) for each in self.subjects if matches(each))

    def _has_version(self, subject: str, includes_deleted: bool) -> bool:
        versions = self.versions.get(subject, ())
        return bool(versions) and (includes_deleted or any(not each.is_deleted for each in versions))

    def subjects_with_prefix(self, prefix: str) -> Iterable[str]:
        start = bisect_left(self.subjects, prefix)
        for subject in self.subjects[start:]:
            if not subject.startswith(prefix):
                return
            yield subject


def referenced_keys(schema: StoredSchema) -> list[VersionKey]:
    """Returns the versions that a schema refers to."""
    return [(within_parent(schema.subject, each.subject), each.version) for each in schema.references]


def subject_matcher(subject: str | None) -> Callable[[str], bool]:
    """Returns a function that is true for the subjects of this name, which may be a subject, a context or all
    contexts."""
    if subject is None:
        return lambda _: True
    parsed = QualifiedSubject.parse(subject)
    if parsed.name:
        return lambda each: each == subject
    if parsed.context == GLOBAL_CONTEXT:
        return lambda _: True
    if parsed.context == DEFAULT_CONTEXT:
        return lambda each: not each.startswith(":.")
    return lambda each: each == subject or each.startswith(parsed.qualified_context)
