"""Queries that need only the state: lists of subjects, versions and schemas, and the versions of an id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from strandline.registry import errors
from strandline.registry.model.lookups import latest_version
from strandline.registry.model.rules import has_rule_of_type
from strandline.registry.model.state import RegistryState
from strandline.registry.model.stored_schema import StoredSchema, digest_from_guid
from strandline.registry.model.subjects import (
    ALL_CONTEXTS,
    DEFAULT_CONTEXT,
    QualifiedSubject,
    normalized_subject,
    within_parent,
)


def subjects_with_prefix(state: RegistryState, prefix: str) -> Iterator[str]:
    """Yields subjects of one context by the beginning of their names, or with `:*:` in front of all contexts."""
    if prefix.startswith(ALL_CONTEXTS):
        rest = prefix[len(ALL_CONTEXTS) :]
        yield from (each for each in state.subjects if QualifiedSubject.parse(each).name.startswith(rest))
    elif prefix.startswith(":."):
        yield from state.subjects_with_prefix(prefix)
    else:
        yield from (each for each in state.subjects_with_prefix(prefix) if not each.startswith(":."))


def list_subjects(
    state: RegistryState, prefix: str, *, includes_deleted: bool, is_deleted_only: bool
) -> list[str]:
    found = []
    for subject in subjects_with_prefix(state, prefix):
        is_deleted = all(each.is_deleted for each in state.versions[subject])
        if is_deleted if is_deleted_only else (includes_deleted or not is_deleted):
            found.append(subject)
    return found


def list_schemas(
    state: RegistryState,
    prefix: str,
    *,
    includes_deleted: bool,
    is_latest_only: bool,
    rule_type: str = "",
    has_aliases: bool = False,
) -> Iterator[tuple[StoredSchema, list[str]]]:
    """Yields schemas by subject and version, each with the subjects that are other names of its own."""
    aliases = _aliases(state, prefix) if has_aliases else {}
    subjects = set(subjects_with_prefix(state, prefix)) | {each for each in aliases if each in state.versions}
    for subject in sorted(subjects):
        schemas = [each for each in state.versions[subject] if includes_deleted or not each.is_deleted]
        if is_latest_only:
            schemas = schemas[-1:]
        for schema in schemas:
            if not rule_type or has_rule_of_type(schema.rule_set, rule_type):
                yield schema, aliases.get(subject, [])


def _aliases(state: RegistryState, prefix: str) -> dict[str, list[str]]:
    """Returns the other names of each subject, among those that begin with the prefix."""
    found: dict[str, list[str]] = {}
    for subject in sorted(each for each in state.configs if each is not None):
        alias = state.configs[subject].get("alias")
        if alias and _matches_prefix(subject, prefix):
            found.setdefault(within_parent(subject, alias), []).append(subject)
    return found


def _matches_prefix(subject: str, prefix: str) -> bool:
    if prefix.startswith(ALL_CONTEXTS):
        return QualifiedSubject.parse(subject).name.startswith(prefix[len(ALL_CONTEXTS) :])
    return subject.startswith(prefix)


def find_version(
    state: RegistryState, subject: str, version: int, *, includes_deleted: bool
) -> StoredSchema | None:
    """Returns a version of a subject; -1 is the latest that is not deleted."""
    if version == -1:
        return latest_version(state, subject)
    schema = state.schema(subject, version)
    return None if schema is None or (schema.is_deleted and not includes_deleted) else schema


def find_version_in_contexts(
    state: RegistryState, subject: str, version: int, *, includes_deleted: bool
) -> StoredSchema:
    """Does the same as `find_version`; a subject without a context is looked for in all of them. Raises
    RegistryError."""
    for each in _in_all_contexts(state, subject):
        found = find_version(state, each, version, includes_deleted=includes_deleted)
        if found is not None:
            return found
    if not state.subject_exists(subject, includes_deleted=includes_deleted):
        raise errors.subject_not_found(subject)
    raise errors.version_not_found(version)


def _in_all_contexts(state: RegistryState, subject: str) -> Iterable[str]:
    yield subject
    parsed = QualifiedSubject.parse(subject)
    if parsed.context == DEFAULT_CONTEXT:
        for context in state.contexts:
            yield str(QualifiedSubject(context, parsed.name))


def find_by_id(state: RegistryState, id: int, subject: str | None) -> StoredSchema | None:
    """Returns the schema with an id in the context of a subject; if the subject itself has it, that version."""
    if subject is None:
        return state.schema_by_id(id, DEFAULT_CONTEXT)
    parsed = QualifiedSubject.parse(subject)
    found = state.schema_by_id(id, parsed.context, subject if parsed.name else "")
    if found is not None or not parsed.name or parsed.context != DEFAULT_CONTEXT:
        return found
    for context in state.contexts:
        found = state.schema_by_id(id, context, str(QualifiedSubject(context, parsed.name)))
        if found is not None:
            return found
    return state.schema_by_id(id, DEFAULT_CONTEXT)


def places_of_id(
    state: RegistryState, id: int, subject: str | None, *, includes_deleted: bool
) -> list[StoredSchema]:
    """Returns every version that has the id. Raises RegistryError if there is none."""
    found = find_by_id(state, id, subject)
    if found is None:
        raise errors.schema_not_found()
    context = QualifiedSubject.parse(found.subject).context
    listed = []
    for each, version in sorted(state.places[context, found.id].items()):
        schema = state.schema(each, version)
        if schema is not None and (includes_deleted or not schema.is_deleted):
            listed.append(schema)
    return listed


def ids_of_guid(state: RegistryState, guid: str) -> list[tuple[str, int]]:
    """Returns the ids of a schema in each context that has it."""
    digest = digest_from_guid(guid)
    if digest is None:
        return []
    found = [(each, state.ids.get((each, digest))) for each in (DEFAULT_CONTEXT, *state.contexts)]
    return sorted((context, id) for context, id in found if id is not None and (context, id) in state.places)


def latest_with_metadata(
    state: RegistryState, subject: str, properties: dict[str, str], *, includes_deleted: bool
) -> StoredSchema:
    """Returns the newest version whose metadata has all of these properties. Raises RegistryError."""
    for schema in reversed(state.versions.get(subject, ())):
        if schema.metadata is None or (schema.is_deleted and not includes_deleted):
            continue
        if properties.items() <= schema.metadata.get("properties", {}).items():
            return schema
    if not state.subject_exists(subject, includes_deleted=includes_deleted):
        raise errors.subject_not_found(subject)
    raise errors.schema_not_found()


def resolve_alias(state: RegistryState, subject: str) -> str:
    """Returns the subject that a name means: its alias, if its config has one."""
    config = state.configs.get(normalized_subject(subject))
    alias = None if config is None else config.get("alias")
    return within_parent(subject, alias) if alias else subject
