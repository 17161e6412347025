"""Decides which records a deletion writes, of a version, a subject or a context, softly or for good. A soft deletion
hides a version, and its id can still be read. Only a version that was softly deleted can be deleted for good, and a
version to which another schema refers cannot be deleted.
"""

from __future__ import annotations

from dataclasses import replace

from strandline.base.planned import Planned
from strandline.registry import errors
from strandline.registry.model.lookups import latest_version
from strandline.registry.model.records import (
    ContextRecord,
    DeleteSubjectRecord,
    RegistryRecord,
    SchemaRecord,
    SubjectConfigRecord,
    SubjectModeRecord,
)
from strandline.registry.model.scopes import is_readonly
from strandline.registry.model.state import ContextId, RegistryState
from strandline.registry.model.stored_schema import StoredSchema
from strandline.registry.model.subjects import context_of, qualified_context_of


def plan_version_deletion(
    state: RegistryState, subject: str, version: int, *, is_permanent: bool
) -> Planned[int]:
    """Deletes one version; -1 is the latest. The response is the version."""
    schema = _version_to_delete(state, subject, version, is_permanent)
    check_writable(state, subject)
    if live_referrers(state, subject, schema.version, includes_deleted=is_permanent):
        raise errors.reference_exists(shown_key(subject, schema.version))
    if not is_permanent:
        record = SchemaRecord(subject, schema.version, replace(schema, is_deleted=True, timestamp_ms=None))
        return Planned(records=(record,), response=schema.version)
    if not schema.is_deleted:
        raise errors.version_not_soft_deleted(subject, schema.version)
    records: list[RegistryRecord] = [SchemaRecord(subject, schema.version, None)]
    if len(state.versions[subject]) == 1:
        records += _settings_of(state, subject)
    return Planned(records=tuple(records), response=schema.version)


def _version_to_delete(state: RegistryState, subject: str, version: int, is_permanent: bool) -> StoredSchema:
    if version == -1:
        schema = latest_version(state, subject)
    else:
        schema = state.schema(subject, version)
        if schema is not None and schema.is_deleted and not is_permanent:
            raise errors.version_soft_deleted(subject, version)
    if schema is None:
        if not state.subject_exists(subject, includes_deleted=True):
            raise errors.subject_not_found(subject)
        raise errors.version_not_found(version)
    return schema


def plan_subject_deletion(state: RegistryState, subject: str, *, is_permanent: bool) -> Planned[list[int]]:
    """Deletes all versions of a subject. The response lists them."""
    if not state.subject_exists(subject, includes_deleted=True):
        raise errors.subject_not_found(subject)
    if not is_permanent and not state.subject_exists(subject, includes_deleted=False):
        raise errors.subject_soft_deleted(subject)
    check_writable(state, subject)
    schemas = [each for each in state.versions.get(subject, ()) if is_permanent or not each.is_deleted]
    for schema in schemas:
        if _is_referred_to_by_others(state, schema, includes_deleted=is_permanent):
            raise errors.reference_exists(shown_key(subject, schema.version))
        if is_permanent and not schema.is_deleted:
            raise errors.subject_not_soft_deleted(subject)
    versions = [schema.version for schema in schemas]
    if not is_permanent:
        record = DeleteSubjectRecord(subject, versions[-1] if versions else 0)
        return Planned(records=(record,), response=versions)
    # The last version is deleted first, because later versions may refer to earlier ones.
    records: list[RegistryRecord] = [SchemaRecord(subject, version, None) for version in reversed(versions)]
    return Planned(records=(*records, *_settings_of(state, subject)), response=versions)


def plan_context_deletion(state: RegistryState, context: str) -> Planned[None]:
    """Deletes a context without subjects. `context` has the form in which it precedes a name."""
    if state.subject_exists(context, includes_deleted=True):
        raise errors.context_not_empty(context)
    return Planned(records=(ContextRecord(context_of(context), exists=False),), response=None)


def check_writable(state: RegistryState, subject: str | None) -> None:
    if is_readonly(state, subject):
        name = "null" if subject is None else subject
        raise errors.not_permitted(
            f"Subject {name} in context {qualified_context_of(subject)} is in read-only mode"
        )


def live_referrers(
    state: RegistryState, subject: str, version: int, *, includes_deleted: bool
) -> list[ContextId]:
    """Returns the schemas that refer to a version, by context and id, in order."""
    found = state.referrers.get((subject, version), frozenset())
    if not includes_deleted:
        found = frozenset(each for each in found if _is_live(state, each))
    return sorted(found)


def _is_live(state: RegistryState, place: ContextId) -> bool:
    for subject, version in state.places.get(place, {}).items():
        schema = state.schema(subject, version)
        if schema is not None and not schema.is_deleted:
            return True
    return False


def _is_referred_to_by_others(state: RegistryState, schema: StoredSchema, *, includes_deleted: bool) -> bool:
    for place in state.referrers.get((schema.subject, schema.version), frozenset()):
        for subject, version in state.places.get(place, {}).items():
            referrer = state.schema(subject, version)
            if subject == schema.subject or referrer is None:
                continue
            if includes_deleted or not referrer.is_deleted:
                return True
    return False


def _settings_of(state: RegistryState, subject: str) -> list[RegistryRecord]:
    """Returns the records that delete config and mode of a subject, as the deletion of its last version does."""
    records: list[RegistryRecord] = []
    if subject in state.modes:
        records.append(SubjectModeRecord(subject, None))
    if subject in state.configs:
        records.append(SubjectConfigRecord(subject, None))
    return records


def shown_key(subject: str, version: int) -> str:
    """Returns a version as messages name it."""
    return f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
