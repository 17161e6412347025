"""Checks of a file that go beyond its grammar; each looks at one message."""

from __future__ import annotations

from typing import Final

from strandline.registry.formats.parsed import InvalidSchema
from strandline.registry.formats.protobuf.elements import ProtoEnum, ProtoFile, ProtoMessage, map_types

_NO_KEYS: Final = ("float", "double", "bytes")


def check_file(file: ProtoFile) -> None:
    """Raises InvalidSchema for duplicate names, and for fields that are not valid in Protobuf."""
    _check_names(file.types, file.package or "the file")
    for each in file.types:
        if isinstance(each, ProtoMessage):
            _check_message(each, is_proto3=file.syntax == "proto3")


def _check_message(message: ProtoMessage, *, is_proto3: bool) -> None:
    for field in message.fields:
        if is_proto3 and field.label == "required":
            raise InvalidSchema(
                f"'required' label forbidden in proto3 field declarations: {message.name}.{field.name}"
            )
        key = map_types(field.type)
        if key is not None and key[0] in _NO_KEYS:
            raise InvalidSchema(f"map key must be non-byte, non-floating point scalar: {key[0]}")
    for oneof in message.oneofs:
        for field in oneof.fields:
            if field.label is not None:
                raise InvalidSchema(f"a field of a oneof has no label: {message.name}.{field.name}")
    _check_names(message.types, message.name)
    for each in message.types:
        if isinstance(each, ProtoMessage):
            _check_message(each, is_proto3=is_proto3)


def _check_names(types: list[ProtoMessage | ProtoEnum], where: str) -> None:
    seen: set[str] = set()
    for each in types:
        if each.name in seen:
            raise InvalidSchema(f"{each.name} is defined twice in {where}")
        seen.add(each.name)
