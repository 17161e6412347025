"""The records of `_schemas`, in Confluent's format: JSON keys with a type, JSON values, tombstones to delete."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from strandline.registry.formats.parsed import Reference
from strandline.registry.model.rules import Json, read_metadata, read_rule_set
from strandline.registry.model.stored_schema import StoredSchema, digest_of

DEFAULT_TENANT: Final = "default"
NOOP_KEY: Final = b'{"keytype":"NOOP","magic":0}'


class UnreadableRecord(Exception):
    """A record of `_schemas` has an unknown form. It is skipped and counted, as in Confluent's registry."""


@dataclass(frozen=True, slots=True)
class SchemaRecord:
    """A version of a subject; `schema` is None where it is deleted for good."""

    subject: str
    version: int
    schema: StoredSchema | None


@dataclass(frozen=True, slots=True)
class SubjectConfigRecord:
    subject: str | None
    config: Json | None


@dataclass(frozen=True, slots=True)
class SubjectModeRecord:
    subject: str | None
    mode: str | None


@dataclass(frozen=True, slots=True)
class DeleteSubjectRecord:
    """The record that soft-deletes every version up to this one."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ClearSubjectRecord:
    """The record that removes the soft-deleted versions of a subject or a context at the beginning of an import."""

    subject: str | None


@dataclass(frozen=True, slots=True)
class ContextRecord:
    context: str
    exists: bool


@dataclass(frozen=True, slots=True)
class NoopRecord:
    """A record that Confluent's registry writes to find the end of the topic, ignoring its value. Ours writes the
    highest ids of contexts whose highest id was deleted for good: compaction would forget these ids, and they would be
    given out again.
    """

    id_floors: tuple[tuple[str, int], ...] = ()  # by context


RegistryRecord = (
    SchemaRecord
    | SubjectConfigRecord
    | SubjectModeRecord
    | DeleteSubjectRecord
    | ClearSubjectRecord
    | ContextRecord
    | NoopRecord
)


def encode_record(record: RegistryRecord) -> tuple[bytes, bytes | None]:
    """Returns key and value of a record of `_schemas`."""
    match record:
        case SchemaRecord(subject, version, schema):
            key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
            return _json(key), None if schema is None else _json(_schema_value(schema))
        case SubjectConfigRecord(subject, config):
            return _subject_key("CONFIG", subject), _subject_value(subject, config)
        case SubjectModeRecord(subject, mode):
            return _subject_key("MODE", subject), _subject_value(subject, mode and {"mode": mode})
        case DeleteSubjectRecord(subject, version):
            value = {"subject": subject, "version": version}
            return _subject_key("DELETE_SUBJECT", subject), _json(value)
        case ClearSubjectRecord(subject):
            return _subject_key("CLEAR_SUBJECT", subject), _subject_value(subject, {})
        case ContextRecord(context, exists):
            names = {"tenant": DEFAULT_TENANT, "context": context}
            return _json({"keytype": "CONTEXT", **names, "magic": 0}), _json(names) if exists else None
        case NoopRecord(floors):
            return NOOP_KEY, _json({"maxIds": dict(floors)}) if floors else None


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _subject_key(type: str, subject: str | None) -> bytes:
    named = {} if subject is None else {"subject": subject}
    return _json({"keytype": type, **named, "magic": 0})


def _subject_value(subject: str | None, value: Any) -> bytes | None:
    if value is None:
        return None
    return _json(value if subject is None else {"subject": subject, **value})


def _schema_value(schema: StoredSchema) -> Json:
    value: Json = {"subject": schema.subject, "version": schema.version, "id": schema.id}
    if schema.type != "AVRO":
        value["schemaType"] = schema.type
    if schema.references:
        value["references"] = [reference.to_json() for reference in schema.references]
    if schema.metadata is not None:
        value["metadata"] = schema.metadata
    if schema.rule_set is not None:
        value["ruleSet"] = schema.rule_set
    return value | {"schema": schema.text, "deleted": schema.is_deleted}


def decode_record(key: bytes | None, value: bytes | None, timestamp_ms: int | None) -> RegistryRecord:
    """Returns the record of a key and a value. Raises UnreadableRecord if it is not a record of a registry."""
    try:
        read_key = json.loads((key or b"null").decode())
        read_value = json.loads(value.decode()) if value else None
        return _decoded(read_key, read_value, timestamp_ms)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UnreadableRecord(f"{type(error).__name__}: {error}") from error


def _decoded(key: Any, value: Any, timestamp_ms: int | None) -> RegistryRecord:
    subject = key.get("subject")
    match key["keytype"]:
        case "SCHEMA":
            schema = None if value is None else _decoded_schema(value, timestamp_ms)
            return SchemaRecord(str(subject), int(key["version"]), schema)
        case "CONFIG":
            return SubjectConfigRecord(subject, None if value is None else _decoded_config(value))
        case "MODE":
            return SubjectModeRecord(subject, None if value is None else str(value["mode"]))
        case "DELETE_SUBJECT":
            if value is None:
                return NoopRecord()
            return DeleteSubjectRecord(str(value["subject"]), int(value["version"]))
        case "CLEAR_SUBJECT":
            return NoopRecord() if value is None else ClearSubjectRecord(subject)
        case "CONTEXT":
            return ContextRecord(str(key["context"]), value is not None)
        case "NOOP":
            floors = {} if value is None else value.get("maxIds", {})
            return NoopRecord(tuple((str(context), int(id)) for context, id in floors.items()))
        case other:
            raise ValueError(f"keytype {other!r} is unknown")


def _decoded_schema(value: Json, timestamp_ms: int | None) -> StoredSchema:
    references = tuple(
        Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
        for each in value.get("references") or ()
    )
    metadata, rule_set = read_metadata(value.get("metadata")), read_rule_set(value.get("ruleSet"))
    text = str(value["schema"])
    return StoredSchema(
        subject=str(value["subject"]),
        version=int(value["version"]),
        id=int(value["id"]),
        type=str(value.get("schemaType") or "AVRO"),
        text=text,
        references=references,
        metadata=metadata,
        rule_set=rule_set,
        is_deleted=bool(value.get("deleted", False)),
        timestamp_ms=timestamp_ms,
        digest=digest_of(text, references, metadata, rule_set),
    )


def _decoded_config(value: Json) -> Json:
    config = {key: each for key, each in value.items() if key != "subject" and each is not None}
    for key in ("defaultMetadata", "overrideMetadata"):
        if key in config:
            config[key] = read_metadata(config[key])
    for key in ("defaultRuleSet", "overrideRuleSet"):
        if key in config:
            config[key] = read_rule_set(config[key])
    return config
