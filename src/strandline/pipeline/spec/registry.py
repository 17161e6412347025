"""Reads how a source or a sink uses a schema registry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from strandline.pipeline.spec.yaml_lines import Section, scalar
from strandline.serde.registry.settings import read_registry_settings

REGISTRY: Final = "registry"
REGISTRY_FORMATS: Final = {"avro": "AVRO", "json": "JSON", "protobuf": "PROTOBUF"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryUse:
    """A registry's settings, a subject in it, and a schema if one is given: the reader's schema of a source, or the
    schema that a sink registers."""

    settings: Mapping[str, str] = field(repr=False)
    subject: str
    schema: str | None
    schema_type: str
    message: str | None

    def options(self) -> dict[str, str]:
        """Returns the options of the source format."""
        options = {"registry": json.dumps(dict(self.settings)), "registry.schemaType": self.schema_type}
        named = {"subject": self.subject, "schema": self.schema, "message": self.message}
        return options | {f"registry.{name}": value for name, value in named.items() if value is not None}


def read_registry(section: Section, format: str, topics: Sequence[str]) -> RegistryUse | None:
    """Returns the use of a registry by a section with the key `registry`, and reports the mistakes in it."""
    url = section.text(REGISTRY, required=True)
    settings = {
        "url": str(url or ""),
        **{key: str(text) for key, text in section.pairs("registry-settings").items()},
    }
    subject, message = section.text("subject"), section.text("message")
    schema = _schema_text(section)
    if subject is None and len(topics) != 1:
        section.wrong("subject", "is missing: several topics have no common subject")
    if message is not None and format != "protobuf":
        section.wrong("message", "is for protobuf")
    try:
        read_registry_settings(settings)
    except ValueError as error:
        section.wrong(REGISTRY, f"is invalid: {error}")
        return None
    return RegistryUse(
        settings=settings,
        subject=str(subject) if subject is not None else f"{topics[0] if topics else ''}-value",
        schema=schema,
        schema_type=REGISTRY_FORMATS[format],
        message=None if message is None else str(message),
    )


def _schema_text(section: Section) -> str | None:
    """Returns the text of `schema`, which may be YAML, or the text of `schema-file`."""
    node, file = section.node("schema"), section.text("schema-file")
    if node is not None and file is not None:
        section.wrong("schema", "and schema-file are both given: give only one of them")
    if file is not None:
        try:
            return (Path(section.mistakes.file).parent / file).read_text()
        except (OSError, UnicodeDecodeError) as error:
            section.mistakes.add(file.line, f"{section.where}: {file} cannot be read: {error}")
            return None
    if node is None:
        return None
    if isinstance(node, yaml.ScalarNode):
        return str(scalar(node))
    plain: Any = yaml.SafeLoader("").construct_document(node)
    return json.dumps(plain, default=str)
