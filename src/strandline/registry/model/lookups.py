"""Finds the version of a subject that is the same schema as a client's."""

from __future__ import annotations

from dataclasses import replace

from strandline.registry import errors
from strandline.registry.formats.large import are_equivalent
from strandline.registry.formats.parsed import InvalidSchema, ParsedSchema, Reference
from strandline.registry.model.parser import SchemaParser, find_referenced
from strandline.registry.model.requests import RegisterRequest
from strandline.registry.model.rules import (
    Json,
    confluent_version,
    merge_metadata,
    merge_rule_sets,
    with_confluent_version,
)
from strandline.registry.model.scopes import config_in_scope, is_importing, mode_in_scope
from strandline.registry.model.state import RegistryState
from strandline.registry.model.stored_schema import StoredSchema, digest_of
from strandline.registry.model.subjects import DEFAULT_CONTEXT, QualifiedSubject, context_of

# The schema that was found. The flag is False if the client's own schema is returned, without time and deletion.
Found = tuple[StoredSchema, bool]


def latest_version(state: RegistryState, subject: str) -> StoredSchema | None:
    """Returns the newest version that is not deleted."""
    for schema in reversed(state.versions.get(subject, ())):
        if not schema.is_deleted:
            return schema
    return None


def canonicalize(
    state: RegistryState,
    parser: SchemaParser,
    subject: str,
    request: RegisterRequest,
    config: Json,
    *,
    is_new: bool,
    normalizes: bool,
) -> tuple[RegisterRequest, ParsedSchema] | None:
    """Returns the request with the canonical text, and the schema; None if the request has no text. Raises
    RegistryError if the schema is invalid."""
    if request.text is None or not request.text.strip():
        return None
    mode = mode_in_scope(state, subject)
    if request.id >= 0 and mode != "IMPORT":
        request = replace(request, id=-1)
    parsed = parser.parse_request(state, subject, request, is_new=is_new)
    if not is_importing(mode):
        try:
            parsed.check(is_strict=bool(config.get("validateFields", False)))
            if normalizes:
                parsed = parsed.normalized()
        except (InvalidSchema, RecursionError) as error:
            raise errors.invalid_schema(
                f"Invalid schema {request.shown(subject, has_numbers=True)}, details: {error}"
            ) from error
    return replace(request, type=parsed.type, text=parsed.text, references=parsed.references), parsed


def look_up(
    state: RegistryState,
    parser: SchemaParser,
    subject: str,
    request: RegisterRequest,
    default_level: str,
    *,
    normalizes: bool,
    includes_deleted: bool,
) -> Found | None:
    """Returns the version with this schema, even if its metadata and rules came from the config or from the version
    before."""
    config = config_in_scope(state, subject, default_level)
    found = find_version(
        state, parser, subject, request, config, normalizes=normalizes, includes_deleted=includes_deleted
    )
    previous = latest_version(state, subject)
    if found is not None or previous is None:
        return found
    completed = with_defaults(config, request, previous, new_version=None)
    if completed == request:
        return None
    return find_version(
        state, parser, subject, completed, config, normalizes=normalizes, includes_deleted=includes_deleted
    )


def look_up_in_contexts(
    state: RegistryState,
    parser: SchemaParser,
    subject: str,
    request: RegisterRequest,
    default_level: str,
    *,
    normalizes: bool,
    includes_deleted: bool,
) -> Found | None:
    """Does the same as `look_up`; a subject without a context is looked for in the default one, then in all others."""
    found = look_up(
        state, parser, subject, request, default_level,
        normalizes=normalizes, includes_deleted=includes_deleted,
    )  # fmt: skip
    parsed = QualifiedSubject.parse(subject)
    if found is not None or parsed.context != DEFAULT_CONTEXT:
        return found
    for context in state.contexts:
        qualified = str(QualifiedSubject(context, parsed.name))
        if qualified not in state.versions:
            continue
        try:
            found = look_up(
                state, parser, qualified, request, default_level,
                normalizes=normalizes, includes_deleted=includes_deleted,
            )  # fmt: skip
        except errors.RegistryError:
            continue
        if found is not None:
            return found
    return None


def find_version(
    state: RegistryState,
    parser: SchemaParser,
    subject: str,
    request: RegisterRequest,
    config: Json,
    *,
    normalizes: bool,
    includes_deleted: bool,
    is_latest_only: bool = False,
) -> Found | None:
    canonical = canonicalize(state, parser, subject, request, config, is_new=False, normalizes=normalizes)
    if canonical is None:
        return None
    request, parsed = canonical
    if is_latest_only:
        latest = latest_version(state, subject)
        if latest is not None and is_same_schema(state, parser, subject, request, parsed, latest):
            return latest, True
        return None
    known = version_by_digest(state, subject, request)
    if known is not None and (includes_deleted or not known.is_deleted):
        return known, False
    for each in reversed(state.versions.get(subject, ())):
        if each.is_deleted and not includes_deleted:
            continue
        if is_same_schema(state, parser, subject, request, parsed, each):
            return each, True
    return None


def version_by_digest(state: RegistryState, subject: str, request: RegisterRequest) -> StoredSchema | None:
    """Returns the version of the subject with exactly this text, references, metadata and rules."""
    id = id_by_digest(state, subject, request)
    return None if id is None else state.schema_by_id(id, context_of(subject), subject)


def id_by_digest(state: RegistryState, subject: str, request: RegisterRequest) -> int | None:
    """Returns the id that exactly this schema has in the subject's context."""
    assert request.text is not None
    context = context_of(subject)
    digest = digest_of(request.text, request.references, request.metadata, request.rule_set)
    id = state.ids.get((context, digest))
    return id if id is not None and (context, id) in state.places else None


def is_same_schema(
    state: RegistryState,
    parser: SchemaParser,
    subject: str,
    request: RegisterRequest,
    parsed: ParsedSchema,
    stored: StoredSchema,
) -> bool:
    """True if the client's schema is this version: equal except for `confluent:version`, with the same references, or
    without references because they are written out."""
    if stored.type != parsed.type:
        return False
    try:
        previous = parser.parse_stored(state, stored)
        if not _equal_but_for_version(request, parsed, stored, previous):
            return False
        if not request.references and stored.references:
            return True
        return _real_versions(state, subject, request.references) == _real_versions(
            state, subject, stored.references
        )
    except InvalidSchema:
        return False


def _equal_but_for_version(
    request: RegisterRequest, parsed: ParsedSchema, stored: StoredSchema, previous: ParsedSchema
) -> bool:
    if request.rule_set != stored.rule_set or not are_equivalent(parsed, previous):
        return False
    sent, kept = confluent_version(request.metadata), confluent_version(stored.metadata)
    if (sent is None) == (kept is None):
        return request.metadata == stored.metadata
    if sent is not None and sent != str(stored.version):
        return False
    return with_confluent_version(request.metadata, None) == with_confluent_version(stored.metadata, None)


def _real_versions(state: RegistryState, subject: str, references: tuple[Reference, ...]) -> list[Reference]:
    return [
        Reference(
            each.name, each.subject, find_referenced(state, subject, each, includes_deleted=False).version
        )
        if each.version == -1
        else each
        for each in references
    ]


def with_defaults(
    config: Json, request: RegisterRequest, previous: StoredSchema | None, *, new_version: int | None
) -> RegisterRequest:
    """Returns the request with metadata and rules: defaults of the config, then its own or those of the version before,
    then what the config overrides."""
    metadata, rule_set = request.metadata, request.rule_set
    if previous is not None:
        metadata = previous.metadata if metadata is None else metadata
        rule_set = previous.rule_set if rule_set is None else rule_set
    metadata = merge_metadata(
        merge_metadata(config.get("defaultMetadata"), metadata), config.get("overrideMetadata")
    )
    rule_set = merge_rule_sets(
        merge_rule_sets(config.get("defaultRuleSet"), rule_set), config.get("overrideRuleSet")
    )
    if new_version is not None and (request.version != 0 or confluent_version(metadata) is not None):
        metadata = with_confluent_version(metadata, new_version)
    if metadata is None and rule_set is None:
        return request
    return replace(request, metadata=metadata, rule_set=rule_set)
