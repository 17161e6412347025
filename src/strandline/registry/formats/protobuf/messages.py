"""Python's classes for the messages of a schema, to decode data with it."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from strandline.registry.formats.parsed import InvalidSchema, ParsedSchema
from strandline.registry.formats.protobuf.known_files import known_files
from strandline.registry.formats.protobuf.parsed import ProtobufSchema
from strandline.registry.formats.protobuf.to_descriptor import write_descriptor

_FILE = "schema.proto"


def message_classes(schema: ParsedSchema) -> dict[tuple[int, ...], Any]:
    """Returns a class for each message, by its index in the file, or the indexes of the messages around it and its
    own."""
    assert isinstance(schema, ProtobufSchema)
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()

    def add(name: str, each: ProtobufSchema) -> None:
        if name in added:
            return
        added.add(name)
        for imported in (*each.file.imports, *each.file.public_imports):
            if imported in schema.resolved:
                add(
                    imported,
                    ProtobufSchema.parse(schema.resolved[imported], each.references, schema.resolved),
                )
            elif imported in known_files():
                add(imported, ProtobufSchema(known_files()[imported], (), {}))
        described = descriptor_pb2.FileDescriptorProto()
        described.ParseFromString(write_descriptor(each.file, each.scope(), name))
        pool.Add(described)

    try:
        add(_FILE, schema)
        found = pool.FindFileByName(_FILE)
    except (TypeError, KeyError) as error:
        raise InvalidSchema(f"the schema cannot be used to decode: {error}") from None
    classes: dict[tuple[int, ...], Any] = {}

    def visit(descriptor: Any, path: tuple[int, ...]) -> None:
        classes[path] = message_factory.GetMessageClass(descriptor)
        for number, inner in enumerate(descriptor.nested_types):
            visit(inner, (*path, number))

    for number, descriptor in enumerate(found.message_types_by_name.values()):
        visit(descriptor, (number,))
    return classes
