"""Decides which records a registration writes: none if the schema is registered already, an error if it is not allowed.

Ids count up from 1 in each context, from the highest id that any record has ever had there. Only one instance plans at
a time, the one with the right to write `_schemas` (storage/writer.py), and its state has everything that was planned
before. So no two plans choose the same id.
"""

from __future__ import annotations

from dataclasses import replace

from strandline.base.planned import Planned
from strandline.registry import errors
from strandline.registry.formats.levels import violations
from strandline.registry.formats.parsed import InvalidSchema, ParsedSchema
from strandline.registry.model.lookups import (
    canonicalize,
    find_version,
    id_by_digest,
    is_same_schema,
    version_by_digest,
    with_defaults,
)
from strandline.registry.model.parser import SchemaParser
from strandline.registry.model.records import ContextRecord, RegistryRecord, SchemaRecord
from strandline.registry.model.requests import RegisterRequest
from strandline.registry.model.rules import Json
from strandline.registry.model.scopes import (
    READWRITE,
    config_in_scope,
    is_importing,
    is_readonly,
    mode_in_scope,
)
from strandline.registry.model.state import RegistryState
from strandline.registry.model.stored_schema import StoredSchema, digest_of
from strandline.registry.model.subjects import DEFAULT_CONTEXT, context_of, qualified_context_of

Registered = Planned[StoredSchema]


def find_registered(
    state: RegistryState,
    parser: SchemaParser,
    subject: str,
    request: RegisterRequest,
    default_level: str,
    *,
    normalizes: bool,
) -> StoredSchema | None:
    """Returns the version that a registration would return without writing. Any instance may respond with it."""
    config = config_in_scope(state, subject, default_level)
    if any(
        config.get(key) is not None
        for key in ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")
    ):
        return None
    is_latest = request.version == -1
    found = find_version(
        state, parser, subject, request, config,
        normalizes=normalizes, includes_deleted=False, is_latest_only=is_latest,
    )  # fmt: skip
    if found is None:
        return None
    existing = found[0]
    if request.version == 0 or is_latest:
        return existing if request.id < 0 or request.id == existing.id else None
    if existing.id != request.id:
        return None
    if existing.version == request.version:
        return existing
    other = state.schema(subject, request.version)
    is_same = other is not None and not other.is_deleted and other.digest == existing.digest
    return other if is_same and other is not None and other.id == existing.id else None


def plan_registration(
    state: RegistryState,
    parser: SchemaParser,
    subject: str,
    request: RegisterRequest,
    default_level: str,
    *,
    normalizes: bool,
    is_forced: bool = False,
) -> Registered:
    """Returns the records of a registration and the version that it makes. Raises RegistryError if it is refused."""
    _check_mode(state, subject, request)
    versions = state.versions.get(subject, ())
    undeleted = [each for each in versions if not each.is_deleted]
    new_version = max((each.version for each in versions), default=0) + 1
    config = config_in_scope(state, subject, default_level)
    mode = mode_in_scope(state, subject)
    if not is_importing(mode):
        request = _completed(config, request, undeleted[-1] if undeleted else None, new_version)
    given_id = request.id
    validates = given_id < 0 and config.get("validateNewSchemas", True)
    canonical = canonicalize(
        state, parser, subject, request, config, is_new=bool(validates), normalizes=normalizes
    )
    if canonical is None:
        raise errors.invalid_schema("Empty schema")
    request, parsed = canonical
    existing = _existing(state, parser, subject, request, parsed, given_id, undeleted)
    if existing is not None:
        return Planned(records=(), response=existing)
    if not is_importing(mode) and not is_forced:
        found = find_violations(state, parser, config, request, parsed, undeleted)
        if found:
            raise errors.incompatible_schema(subject, f"[{', '.join(found)}]")
    if request.version > 0 and request.version != new_version and not is_importing(mode):
        raise errors.invalid_schema("Version is not one more than previous version")
    version = request.version if request.version > 0 else new_version
    return _write(state, subject, request, version, given_id)


def _check_mode(state: RegistryState, subject: str, request: RegisterRequest) -> None:
    where = f"Subject {subject} in context {qualified_context_of(subject)}"
    if is_readonly(state, subject):
        raise errors.not_permitted(f"{where} is in read-only mode")
    mode = mode_in_scope(state, subject)
    if request.id >= 0:
        if not is_importing(mode):
            raise errors.not_permitted(f"{where} is not in import mode")
    elif mode != READWRITE:
        raise errors.not_permitted(f"{where} is not in read-write mode")


def _completed(
    config: Json, request: RegisterRequest, previous: StoredSchema | None, new_version: int
) -> RegisterRequest:
    """Returns the request with the schema of the version before if it has none: then it changes only metadata and
    rules."""
    if request.text is None or not request.text.strip():
        if previous is None:
            raise errors.invalid_schema("Empty schema")
        request = replace(request, text=previous.text, type=previous.type, references=previous.references)
    return with_defaults(config, request, previous, new_version=new_version)


def _existing(
    state: RegistryState,
    parser: SchemaParser,
    subject: str,
    request: RegisterRequest,
    parsed: ParsedSchema,
    given_id: int,
    undeleted: list[StoredSchema],
) -> StoredSchema | None:
    """Returns the version that the subject already has for this schema."""
    if request.version != 0:
        return None
    known = version_by_digest(state, subject, request)
    if known is not None and not known.is_deleted and given_id in (-1, known.id):
        return known
    id = given_id
    if id < 0:
        shared = id_by_digest(state, subject, request)
        id = -1 if shared is None else shared
    for each in reversed(undeleted):
        if id in (-1, each.id) and is_same_schema(state, parser, subject, request, parsed, each):
            return each
    return None


def find_violations(
    state: RegistryState,
    parser: SchemaParser,
    config: Json,
    request: RegisterRequest,
    parsed: ParsedSchema,
    earlier: list[StoredSchema],
) -> list[str]:
    """Returns the reasons why the config of a subject forbids this schema after these versions, which are in ascending
    order."""
    validates_fields = bool(config.get("validateFields", False))
    found: list[str] = []
    if validates_fields:
        found += _reserved_fields(request, parsed, earlier[-1] if earlier else None)
    group = config.get("compatibilityGroup")
    if group is not None:
        value = _property(request.metadata, group)
        earlier = [each for each in earlier if _property(each.metadata, group) == value]
    level = str(config["compatibilityLevel"])
    if level != "NONE" and earlier:
        if not level.endswith("_TRANSITIVE"):
            earlier = earlier[-1:]
        try:
            compared = [(each.version, parser.parse_stored(state, each)) for each in earlier]
        except InvalidSchema as error:
            raise errors.invalid_schema(str(error)) from error
        is_lenient = config.get("compatibilityPolicy") == "LENIENT"
        try:
            found += violations(level, parsed, compared, is_lenient=is_lenient)
        except InvalidSchema as error:
            raise errors.invalid_schema(str(error)) from error
        except RecursionError:
            raise errors.invalid_schema("the schema is nested too deep to be compared") from None
    if found:
        flag = "true" if validates_fields else "false"
        found.append(f"{{validateFields: '{flag}', compatibility: '{level}'}}")
    return found


def _reserved_fields(
    request: RegisterRequest, parsed: ParsedSchema, previous: StoredSchema | None
) -> list[str]:
    reserved = _reserved(request.metadata)
    found = []
    if previous is not None:
        for name in sorted(_reserved(previous.metadata) - reserved):
            found.append(
                f"The new schema has reserved field {name} removed from its metadata which is present in the "
                "old schema's metadata."
            )
    for name in sorted(reserved):
        if parsed.has_top_level_field(name):
            found.append(f"The new schema has field that conflicts with the reserved field {name}.")
    return found


def _reserved(metadata: Json | None) -> set[str]:
    listed = _property(metadata, "confluent:reserved") or ""
    return {name.strip() for name in listed.split(",") if name.strip()}


def _property(metadata: Json | None, name: str) -> str | None:
    value: str | None = None if metadata is None else metadata.get("properties", {}).get(name)
    return value


def _write(
    state: RegistryState, subject: str, request: RegisterRequest, version: int, given_id: int
) -> Registered:
    assert request.text is not None
    context = context_of(subject)
    shared = id_by_digest(state, subject, request)
    if shared is not None and given_id in (-1, shared):
        id = shared
    elif given_id >= 0:
        _check_id_is_free(state, context, request, given_id)
        id = given_id
    else:
        id = state.id_max.get(context, 0) + 1
    schema = StoredSchema(
        subject=subject,
        version=version,
        id=id,
        type=request.type,
        text=request.text,
        references=request.references,
        metadata=request.metadata,
        rule_set=request.rule_set,
        digest=digest_of(request.text, request.references, request.metadata, request.rule_set),
    )
    records: list[RegistryRecord] = []
    if context != DEFAULT_CONTEXT and context not in state.contexts:
        records.append(ContextRecord(context, exists=True))
    for old in state.versions.get(subject, ()):
        # A deleted version of the same id is removed, unless another schema still refers to it.
        is_replaced = old.is_deleted and old.id == id and old.version < version
        if is_replaced and not state.referrers.get((subject, old.version)):
            records.append(SchemaRecord(subject, old.version, None))
    records.append(SchemaRecord(subject, version, schema))
    return Planned(records=tuple(records), response=schema)


def _check_id_is_free(state: RegistryState, context: str, request: RegisterRequest, id: int) -> None:
    existing = state.schema_by_id(id, context)
    if existing is None:
        return
    same = (
        existing.type == request.type
        and existing.text == request.text
        and existing.references == request.references
        and existing.metadata == request.metadata
        and existing.rule_set == request.rule_set
    )
    if not same:
        shown = "" if context == DEFAULT_CONTEXT else f":{context}:"
        raise errors.not_permitted(f"Overwrite new schema with id {id} in context {shown} is not permitted.")
