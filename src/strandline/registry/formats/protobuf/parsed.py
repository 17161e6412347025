"""A Protobuf schema in the registry."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from strandline.registry.formats.parsed import InvalidSchema, ParsedSchema, Reference
from strandline.registry.formats.protobuf.checks import check_file
from strandline.registry.formats.protobuf.comparison import COMPATIBLE, compare_files
from strandline.registry.formats.protobuf.elements import ProtoFile, ProtoMessage
from strandline.registry.formats.protobuf.from_descriptor import read_descriptor
from strandline.registry.formats.protobuf.known_files import known_files
from strandline.registry.formats.protobuf.parser import parse_file
from strandline.registry.formats.protobuf.printer import print_file, print_normal_form
from strandline.registry.formats.protobuf.to_descriptor import write_descriptor
from strandline.registry.formats.protobuf.type_scope import TypeScope


class ProtobufSchema(ParsedSchema):
    type: ClassVar[str] = "PROTOBUF"

    def __init__(
        self,
        file: ProtoFile,
        references: tuple[Reference, ...],
        resolved: Mapping[str, str],
        *,
        is_from_descriptor: bool = False,
    ) -> None:
        super().__init__(references, resolved)
        self.file = file
        self._is_from_descriptor = is_from_descriptor
        self._text = print_file(file)

    @classmethod
    def parse(
        cls, text: str, references: tuple[Reference, ...], resolved: Mapping[str, str]
    ) -> ProtobufSchema:
        file, is_from_descriptor = _read(text)
        return cls(file, references, resolved, is_from_descriptor=is_from_descriptor)

    @property
    def text(self) -> str:
        return self._text

    def scope(self) -> TypeScope:
        by_name = {reference.name: reference for reference in self.references}
        imported = [(_read(text)[0], by_name.get(name)) for name, text in self.resolved.items()]
        known = [(file, None) for name, file in known_files().items() if name not in self.resolved]
        return TypeScope.of(self.file, [*known, *imported])

    @property
    def normal_text(self) -> str:
        return print_normal_form(self.file, self.scope())

    def check(self, *, is_strict: bool) -> None:
        check_file(self.file)
        scope = self.scope()
        print_normal_form(self.file, scope)
        if is_strict:
            write_descriptor(self.file, scope)

    def normalized(self) -> ProtobufSchema:
        return ProtobufSchema(parse_file(self.normal_text), self.sorted_references(), self.resolved)

    def formatted(self, format: str) -> str:
        match format.lower():
            case "serialized":
                return base64.b64encode(write_descriptor(self.file, self.scope())).decode()
            case "ignore_extensions":
                return print_file(self.file, without_extensions=True)
            case _:
                return self.text

    def incompatibilities(self, previous: ParsedSchema, *, is_lenient: bool = False) -> list[str]:
        assert isinstance(previous, ProtobufSchema)
        found = compare_files(previous.file, self.file, previous.scope(), self.scope())
        return [str(each) for each in found if each.type not in COMPATIBLE]

    def has_top_level_field(self, name: str) -> bool:
        first = next((each for each in self.file.types if isinstance(each, ProtoMessage)), None)
        return first is not None and any(field.name == name for field in first.fields)

    def is_equivalent(self, other: ParsedSchema) -> bool:
        """True if both are the same file, although a descriptor has full names where text has short ones."""
        if not isinstance(other, ProtobufSchema):
            return False
        if self.text == other.text:
            return True
        if not (self._is_from_descriptor or other._is_from_descriptor):
            return False
        try:
            return _plain_text(self) == _plain_text(other)
        except InvalidSchema:
            return False


def _read(text: str) -> tuple[ProtoFile, bool]:
    """Returns a file from its text, or from a base64 FileDescriptorProto."""
    try:
        return parse_file(text), False
    except InvalidSchema as error:
        try:
            return read_descriptor(base64.b64decode(text, validate=True)), True
        except (InvalidSchema, binascii.Error, ValueError):
            raise InvalidSchema(f"Could not parse Protobuf - {error}") from None


def _plain_text(schema: ProtobufSchema) -> str:
    """Returns the normal form without JSON names that every reader would choose anyway."""
    file = schema.file
    plain = replace(
        file, types=[_plain(each) if isinstance(each, ProtoMessage) else each for each in file.types]
    )
    return print_normal_form(plain, schema.scope())


def _plain(message: ProtoMessage) -> ProtoMessage:
    return replace(
        message,
        fields=[
            replace(field, json_name=None) if field.json_name == _json_name(field.name) else field
            for field in message.fields
        ],
        types=[_plain(each) if isinstance(each, ProtoMessage) else each for each in message.types],
    )


def _json_name(name: str) -> str:
    return re.sub(r"_+([A-Za-z0-9])", lambda found: found.group(1).upper(), name)
