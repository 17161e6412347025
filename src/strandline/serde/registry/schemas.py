"""Schemas as they are in a registry: text, type, imports, and their place there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A schema that another one imports under a name."""

    name: str
    subject: str
    version: int

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True, slots=True)
class Schema:
    """The text of a schema, its type, and its imports."""

    text: str
    type: str = AVRO
    references: tuple[SchemaReference, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns the body of a request about the schema; it has no type for AVRO, as old registries expect."""
        body: dict[str, Any] = {"schema": self.text}
        if self.type != AVRO:
            body["schemaType"] = self.type
        if self.references:
            body["references"] = [each.to_json() for each in self.references]
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Schema:
        references = tuple(
            SchemaReference(each["name"], each["subject"], each["version"])
            for each in body.get("references") or ()
        )
        return cls(body["schema"], body.get("schemaType") or AVRO, references)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A schema with its id, GUID, subject and version in a registry, as far as the response had them. `imported` are
    the schemas that it needs, by the names under which they are imported, each after its own imports."""

    schema: Schema
    id: int | None = None
    guid: str | None = None
    subject: str | None = None
    version: int | None = None
    imported: tuple[tuple[str, Schema], ...] = ()
