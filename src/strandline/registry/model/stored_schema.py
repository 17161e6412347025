"""A version of a subject: a schema with its id and everything that responses tell about it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from strandline.registry.formats.parsed import Reference
from strandline.registry.model.rules import Json, hashed_metadata, hashed_rule_set


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchema:
    subject: str
    version: int
    id: int
    type: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Json | None = None
    rule_set: Json | None = None
    is_deleted: bool = False
    timestamp_ms: int | None = None
    digest: bytes  # MD5 over the text and everything else that distinguishes schemas

    @property
    def guid(self) -> str:
        return guid_of(self.digest)

    def to_json(self, *, is_brief: bool = False) -> dict[str, Any]:
        """Returns the schema as the REST interface returns it. With `is_brief` the time of writing and the deletion are
        left out."""
        made: dict[str, Any] = {
            "subject": self.subject,
            "version": self.version,
            "id": self.id,
            "guid": self.guid,
        }
        made |= described(self.type, self.references, self.metadata, None)
        made["schema"] = self.text
        if not is_brief:
            if self.timestamp_ms is not None:
                made["ts"] = self.timestamp_ms
            made["deleted"] = self.is_deleted
        if self.rule_set is not None:
            made["ruleSet"] = self.rule_set
        return made


def described(
    type: str, references: Iterable[Reference], metadata: Json | None, rule_set: Json | None
) -> dict[str, Any]:
    """Returns the attributes that every response about a schema has; references only where there are some."""
    made: dict[str, Any] = {"schemaType": type}
    listed = [reference.to_json() for reference in references]
    if listed:
        made["references"] = listed
    if metadata is not None:
        made["metadata"] = metadata
    if rule_set is not None:
        made["ruleSet"] = rule_set
    return made


def digest_of(
    text: str, references: Iterable[Reference], metadata: Json | None, rule_set: Json | None
) -> bytes:
    """Returns the MD5 that is equal for equal schemas, the same bytes as Confluent's."""
    md5 = hashlib.md5(text.encode(), usedforsecurity=False)
    for reference in references:
        md5.update(reference.name.encode())
        md5.update(reference.subject.encode())
        md5.update(reference.version.to_bytes(4, "big", signed=True))
    if metadata is not None:
        md5.update(b"\1")
        for part in hashed_metadata(metadata):
            md5.update(part)
    if rule_set is not None:
        md5.update(b"\1")
        for part in hashed_rule_set(rule_set):
            md5.update(part)
    return md5.digest()


def guid_of(digest: bytes) -> str:
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def digest_from_guid(guid: str) -> bytes | None:
    """Returns the MD5 of a guid, with or without hyphens; None if the text is not a guid."""
    text = guid.replace("-", "")
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        return None
    return digest if len(digest) == 16 else None
