"""Reads the Avro schemas of a spec, in the spec or in files beside it, and reports mistakes with their lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from strandline.avro.schema import (
    ArrayType,
    AvroSchemaError,
    AvroSource,
    AvroType,
    EnumType,
    JsonPath,
    MapType,
    PrimitiveType,
    RecordType,
    UnionType,
    read_schema,
)
from strandline.base.numbers import natural
from strandline.pipeline.spec.types import Column
from strandline.pipeline.spec.yaml_lines import Mistakes, Section, Text, line_of, parse, scalar

FRAMINGS: Final = ("none", "registry")
_SPARK_TYPES: Final = {
    "null": "void",
    "int": "int",
    "long": "bigint",
    "bytes": "binary",
    "fixed": "binary",
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _LocatedSchema:
    """A schema and its position. `shift` is the number of lines of the file before the schema's text."""

    file: str
    root: yaml.Node
    shift: int
    schema: RecordType
    text: str

    def line_at(self, way: JsonPath) -> int:
        """Returns the line of the node at the end of a path through the schema."""
        return self.shift + line_of(_node_at(self.root, way))


def read_avro(section: Section) -> tuple[AvroSource | None, tuple[Column, ...]]:
    """Returns the schemas of a `decode` section, and the columns that they give."""
    reader = _schema(section, "schema", is_required=True)
    writer = _schema(section, "writer-schema", is_required=False)
    by_id: list[tuple[int, _LocatedSchema]] | None = None
    if section.choice("framing", FRAMINGS, "none") == "registry":
        by_id = _registry_schemas(section)
        if writer is not None:
            section.wrong("writer-schema", "cannot be combined with framing: registry: use writer-schemas")
    if reader is None:
        return None, ()
    for each in (writer, *(schema for _, schema in by_id or ())):
        if each is not None:
            _check_resolution(section, each, reader)
    avro = AvroSource(
        reader=reader.text,
        writer=None if writer is None else writer.text,
        framed=None if by_id is None else tuple((schema_id, schema.text) for schema_id, schema in by_id),
    )
    return avro, _columns(reader.schema)


def _schema(section: Section, key: str, *, is_required: bool) -> _LocatedSchema | None:
    node, file = section.node(key), section.text(f"{key}-file")
    if node is not None and file is not None:
        section.wrong(key, f"and {key}-file are both given: give only one of them")
    if file is not None:
        return _from_file(section, file)
    if node is None:
        if is_required:
            section.wrong(key, f"is missing: give the Avro schema, or {key}-file: order.avsc")
        return None
    spec = section.mistakes.file
    if isinstance(node, yaml.ScalarNode):
        text = scalar(node)
        return _from_text(section, text, spec, text.line - 1)
    return _read(section, node, spec, 0)


def _registry_schemas(section: Section) -> list[tuple[int, _LocatedSchema]]:
    pairs = section.pairs("writer-schemas")
    if not pairs:
        section.wrong(
            "framing", "registry needs writer-schemas: the schemas by their numbers, such as {7: order.avsc}"
        )
    schemas = []
    for schema_id, file in pairs.items():
        if natural(schema_id) is None:
            section.mistakes.add(
                file.line, f"{section.where}.writer-schemas: {schema_id!r} is not the number of a schema"
            )
            continue
        schema = _from_file(section, file)
        if schema is not None:
            schemas.append((int(schema_id), schema))
    return schemas


def _from_file(section: Section, file: Text) -> _LocatedSchema | None:
    path = Path(section.mistakes.file).parent / file
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        section.mistakes.add(file.line, f"{section.where}: {file} cannot be read: {error}")
        return None
    return _from_text(section, text, str(path), 0)


def _from_text(section: Section, text: str, file: str, shift: int) -> _LocatedSchema | None:
    """Reads a schema from JSON. JSON is YAML except for tabs, which JSON has only between tokens."""
    mistakes = Mistakes(file)
    root = parse(text.replace("\t", " "), mistakes)
    for each in mistakes.noted:
        _add(section, file, each.line + shift, each.text)
    return None if root is None else _read(section, root, file, shift)


def _read(section: Section, root: yaml.Node, file: str, shift: int) -> _LocatedSchema | None:
    loader = yaml.SafeLoader("")
    try:
        plain: Any = loader.construct_document(root)
        return _LocatedSchema(
            file=file,
            root=root,
            shift=shift,
            schema=read_schema(plain),
            text=json.dumps(plain, default=str),
        )
    except AvroSchemaError as error:
        _add(section, file, shift + line_of(_node_at(root, error.path)), f"{section.where}: {error}")
    except yaml.YAMLError as error:
        _add(section, file, shift + line_of(root), f"{section.where}: this is not a schema: {error}")
    finally:
        loader.dispose()
    return None


def _add(section: Section, file: str, line: int, text: str) -> None:
    other = Mistakes(file)
    other.add(line, text)
    section.mistakes.noted += other.noted


def _node_at(node: yaml.Node, way: JsonPath) -> yaml.Node:
    """Returns the deepest existing node on the path."""
    for step in way:
        inside: Sequence[yaml.Node] = ()
        if isinstance(node, yaml.MappingNode):
            inside = [value for key, value in node.value if key.value == step]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            inside = node.value[step : step + 1]
        if not inside:
            break
        node = inside[0]
    return node


def _check_resolution(section: Section, writer: _LocatedSchema, reader: _LocatedSchema) -> None:
    from strandline.avro.program import CannotResolveError, compile_program

    try:
        compile_program(writer.schema, reader.schema)
    except CannotResolveError as error:
        text = f"{section.where}: values of this schema cannot become the columns: {error}"
        _add(section, writer.file, writer.line_at(()), text)


def _columns(schema: RecordType) -> tuple[Column, ...]:
    return tuple(
        Column(name=each.name, type=_spark_type(each.type), required=False) for each in schema.fields
    )


def _spark_type(avro_type: AvroType) -> str:
    match avro_type:
        case PrimitiveType(logical="decimal"):
            return f"decimal({avro_type.precision},{avro_type.scale})"
        case PrimitiveType():
            return _SPARK_TYPES.get(avro_type.logical or "", _SPARK_TYPES.get(avro_type.kind, avro_type.kind))
        case EnumType():
            return "string"
        case UnionType():
            return _spark_type(avro_type.inner)
        case ArrayType():
            return f"array<{_spark_type(avro_type.items)}>"
        case MapType():
            return f"map<string,{_spark_type(avro_type.values)}>"
        case RecordType():
            return f"struct<{','.join(f'{each.name}:{_spark_type(each.type)}' for each in avro_type.fields)}>"
