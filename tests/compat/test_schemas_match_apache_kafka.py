"""Every message is declared as the schemas inside Apache Kafka's own jars declare it, version by version."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from strandline.wire.headers import RequestHeader
from strandline.wire.records import control, metadata, producer_snapshot, quorum_state, transaction_log
from strandline.wire.schema import FieldType, Message, Request, Struct, Versions, parse_versions
from tests.compat.wire import every_request_class, response_class

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

# A version that Kafka knows and calls unstable; the declaration has it, the broker does not offer it.
Layout = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def schemas(kafka_jars: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for jar in sorted(kafka_jars.glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(".json") and ("message/" in name or "metadata/" in name):
                    text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                    schema = json.loads(text)
                    found[schema["name"]] = schema
    return found


def declared() -> list[type[Message]]:
    found: list[type[Message]] = []
    for request in every_request_class():
        found += [request, response_class(request)]
    for module in (control, metadata, producer_snapshot, quorum_state, transaction_log):
        found += [
            cls
            for cls in vars(import_module(module.__name__)).values()
            if isinstance(cls, type) and issubclass(cls, Message) and cls.__module__ == module.__name__
        ]
    return found


@pytest.mark.parametrize("cls", declared(), ids=lambda cls: cls.__name__)
def test_message_is_declared_as_kafka_does(schemas: dict[str, dict[str, Any]], cls: type[Message]) -> None:
    schema = schemas[cls.__name__]
    assert parse_versions(schema["validVersions"]) == cls.VERSIONS
    if issubclass(cls, Request) or "apiKey" in schema:
        assert schema["apiKey"] == cls.API_KEY
    flexible = parse_versions(schema.get("flexibleVersions", "none"))
    structs = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    for version in range(cls.VERSIONS.low, cls.VERSIONS.high + 1):
        assert (version in cls.FLEXIBLE) == (version in flexible), f"version {version}"
        ours = list(our_layout(cls, version))
        assert ours == list(their_layout(schema["fields"], structs, version)), f"version {version}"


def our_layout(cls: type[Struct], version: int) -> Iterator[tuple[Any, ...]]:
    for f in cls.FIELDS:
        if version not in f.versions:
            continue
        tag = f.tag if f.tag is not None and version in f.tagged else None
        yield (
            f.name.rstrip("_"),
            _our_type(f.type, version),
            version in f.nullable,
            tag,
        )


def _our_type(kind: FieldType, version: int) -> Any:
    if kind.name == "array":
        element = kind.element
        return [
            "array",
            element.name if isinstance(element, FieldType) else list(our_layout(element, version)),
        ]
    if kind.name == "struct":
        return list(our_layout(kind.element, version))
    return kind.name


def their_layout(
    fields: list[dict[str, Any]], structs: dict[str, list[dict[str, Any]]], version: int
) -> Iterator[tuple[Any, ...]]:
    for f in fields:
        if version not in parse_versions(f.get("versions", f.get("taggedVersions", "0+"))):
            continue
        tagged: Versions = parse_versions(f.get("taggedVersions"))
        tag = f["tag"] if "tag" in f and version in tagged else None
        nullable = version in parse_versions(f.get("nullableVersions"))
        yield (_snake(f["name"]), _their_type(f, structs, version), nullable, tag)


def _their_type(f: dict[str, Any], structs: dict[str, list[dict[str, Any]]], version: int) -> Any:
    kind = f["type"]
    base = kind.removeprefix("[]")
    inner: Any = base
    if base[0].isupper():
        inner = list(their_layout(f.get("fields") or structs[base], structs, version))
    return ["array", inner] if kind.startswith("[]") else inner


def _snake(name: str) -> str:
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def test_request_header_is_declared_as_kafka_does(schemas: dict[str, dict[str, Any]]) -> None:
    for version in (1, 2):
        theirs = list(their_layout(schemas["RequestHeader"]["fields"], {}, version))
        assert list(our_layout(RequestHeader, version)) == theirs
