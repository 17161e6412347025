"""Decides which records a change of a config or a mode writes."""

from __future__ import annotations

from strandline.base.planned import Planned
from strandline.registry import errors
from strandline.registry.model.deletion import check_writable, shown_key
from strandline.registry.model.records import (
    ClearSubjectRecord,
    RegistryRecord,
    SchemaRecord,
    SubjectConfigRecord,
    SubjectModeRecord,
)
from strandline.registry.model.rules import Json
from strandline.registry.model.scopes import mode_in_scope, ordered_config, own_config, own_mode
from strandline.registry.model.state import RegistryState, subject_matcher
from strandline.registry.model.subjects import is_context


def plan_config_update(state: RegistryState, subject: str | None, changes: Json) -> Planned[Json]:
    """Changes the config of a subject, a context or all. The response is the whole config of that scope."""
    check_writable(state, subject)
    config = ordered_config(state.configs.get(subject, {}) | changes)
    return Planned(records=(SubjectConfigRecord(subject, config),), response=config)


def plan_config_deletion(state: RegistryState, subject: str | None, default_level: str) -> Planned[Json]:
    """Deletes a config. The response is the old one."""
    old = own_config(state, subject, default_level)
    if old is None:
        raise errors.subject_not_found(subject)
    check_writable(state, subject)
    return Planned(records=(SubjectConfigRecord(subject, None),), response=old)


def plan_mode_update(
    state: RegistryState, subject: str | None, mode: str | None, *, is_forced: bool
) -> Planned[None]:
    """Sets or deletes a mode. An import must begin without schemas, unless it is forced."""
    records: list[RegistryRecord] = []
    if mode == "IMPORT" and mode_in_scope(state, subject) != "IMPORT" and not is_forced:
        if state.subject_exists(subject, includes_deleted=False):
            raise errors.not_permitted("Cannot import since found existing subjects")
        matches = subject_matcher(subject)
        for each in [each for each in state.subjects if matches(each)]:
            for schema in state.versions[each]:
                if state.referrers.get((each, schema.version)):
                    raise errors.reference_exists(shown_key(each, schema.version))
                records.append(SchemaRecord(each, schema.version, None))
        records.append(ClearSubjectRecord(subject))
    records.append(SubjectModeRecord(subject, mode))
    return Planned(records=tuple(records), response=None)


def plan_mode_deletion(
    state: RegistryState, subject: str | None, *, is_recursive: bool
) -> Planned[str | None]:
    """Deletes a mode; with `is_recursive` those of a context's subjects too. The response is the old mode."""
    old = own_mode(state, subject)
    if old is None and not is_recursive:
        raise errors.subject_not_found(subject)
    records = [SubjectModeRecord(subject, None)]
    if is_recursive and is_context(subject):
        prefix = "" if subject is None else subject
        for each in sorted(name for name in state.modes if name is not None):
            in_scope = each.startswith(prefix) if prefix else not each.startswith(":.")
            if in_scope and each != subject:
                records.append(SubjectModeRecord(each, None))
    return Planned(records=tuple(records), response=old)
