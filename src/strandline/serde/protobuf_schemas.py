"""Turns the descriptors of Python's message classes into schemas of a registry, and schemas into classes.

A registry returns a file's descriptor for `format=serialized`, so that `.proto` text need not be read.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from importlib import import_module
from typing import Any, Final

from strandline.serde.errors import UnusableSchema
from strandline.serde.registry.schemas import RegisteredSchema

SERIALIZED: Final = "serialized"
# Files that every registry has, and that are not registered. The files of Confluent have options and two types.
_KNOWN_PREFIXES: Final = ("google/protobuf/", "google/type/", "confluent/")
_MAIN: Final = "schema.proto"


def is_known_file(name: str) -> bool:
    """True for a file that every registry has."""
    return name.startswith(_KNOWN_PREFIXES)


def descriptor_text(file: Any) -> str:
    """Returns the text that is registered for a file: its descriptor in base64."""
    return b64encode(file.serialized_pb).decode()


def message_path(descriptor: Any) -> tuple[int, ...]:
    """Returns the indexes that lead from the file to a message, the outermost message first."""
    path: list[int] = []
    while descriptor.containing_type is not None:
        siblings = descriptor.containing_type.nested_types
        path.append([each.full_name for each in siblings].index(descriptor.full_name))
        descriptor = descriptor.containing_type
    path.append(list(descriptor.file.message_types_by_name).index(descriptor.name))
    return tuple(reversed(path))


def message_classes(registered: RegisteredSchema) -> dict[tuple[int, ...], Any]:
    """Returns Python's classes for all messages of a file, by their paths. The schema must be in the format SERIALIZED.
    Raises UnusableSchema."""
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    imported = dict(registered.imported)
    added: set[str] = set()

    def add(name: str, text: str) -> None:
        if name in added:
            return
        added.add(name)
        file = _file_of(text)
        file.name = name
        for each in list(file.dependency):
            if each in imported:
                add(each, imported[each].text)
            elif not _add_known(pool, each, added):
                _drop_import(file, each)
        pool.Add(file)

    try:
        add(_MAIN, registered.schema.text)
        found = pool.FindFileByName(_MAIN)
    except (TypeError, KeyError) as error:
        raise UnusableSchema(f"the schema is not a usable Protobuf file: {error}") from error
    classes: dict[tuple[int, ...], Any] = {}

    def visit(descriptor: Any, path: tuple[int, ...]) -> None:
        classes[path] = message_factory.GetMessageClass(descriptor)
        for number, inner in enumerate(descriptor.nested_types):
            visit(inner, (*path, number))

    for number, descriptor in enumerate(found.message_types_by_name.values()):
        visit(descriptor, (number,))
    return classes


def _file_of(text: str) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        return FileDescriptorProto.FromString(b64decode(text, validate=True))
    except (ValueError, DecodeError):
        raise UnusableSchema(
            "the registry gives Protobuf schemas as text only: give the deserializer a message class"
        ) from None


def _add_known(pool: Any, name: str, added: set[str]) -> bool:
    """Adds a file that comes with Python's protobuf packages, and its imports; returns False if no package has it."""
    if name in added:
        return True
    module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
    if not name.startswith("google/"):
        return False
    try:
        descriptor = import_module(module).DESCRIPTOR
    except ImportError:
        return False
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    added.add(name)
    for each in descriptor.dependencies:
        _add_known(pool, each.name, added)
    file = FileDescriptorProto()
    descriptor.CopyToProto(file)
    pool.Add(file)
    return True


def _drop_import(file: Any, name: str) -> None:
    """Removes an import that cannot be found. If the file uses one of its types, the pool refuses the file."""
    at = list(file.dependency).index(name)
    del file.dependency[at]
    for numbers in (file.public_dependency, file.weak_dependency):
        kept = [each - (each > at) for each in numbers if each != at]
        del numbers[:]
        numbers.extend(kept)
