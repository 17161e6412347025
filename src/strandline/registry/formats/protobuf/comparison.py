"""Compares two Protobuf schemas by field numbers (tags), because names are not on the wire.

| change | verdict, and why |
| --- | --- |
| a field, a message, an enum or a constant is added | compatible: readers skip tags that they do not know |
| a field is removed or renamed | compatible: tags identify fields |
| a required field is added or removed | incompatible: readers refuse messages without it |
| a message is removed, or the package changes | incompatible: readers find a type by its name |
| a type changes within its group of encodings | compatible: int32, int64, uint32, uint64, bool and enums are varints |
| a type changes to another encoding | incompatible: the bytes are read wrongly |
| a number becomes repeated or the other way round | incompatible: repeated numbers are packed |
| text or bytes become repeated or the other way round | compatible: they are never packed |
| a field of a oneof is removed | incompatible: readers cannot know that another field was chosen |
| a field is moved into an existing oneof, or several fields into one oneof | incompatible: they exclude each other now
  |
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from strandline.registry.formats.protobuf.elements import (
    SCALARS,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    ProtoOneOf,
    map_types,
)
from strandline.registry.formats.protobuf.type_scope import TypeScope

COMPATIBLE: Final = frozenset(
    (
        "MESSAGE_ADDED", "MESSAGE_MOVED", "ENUM_ADDED", "ENUM_REMOVED", "ENUM_CONST_ADDED",
        "ENUM_CONST_CHANGED", "ENUM_CONST_REMOVED", "FIELD_ADDED", "FIELD_REMOVED", "FIELD_NAME_CHANGED",
        "FIELD_STRING_OR_BYTES_LABEL_CHANGED", "ONEOF_ADDED", "ONEOF_REMOVED", "ONEOF_FIELD_ADDED",
        "ONEOF_FIELD_MOVED_TO_TOP_LEVEL",
    )
)  # fmt: skip
_ENCODINGS: Final = {
    "int32": "varint", "int64": "varint", "uint32": "varint", "uint64": "varint", "bool": "varint",
    "sint32": "zigzag", "sint64": "zigzag", "string": "bytes", "bytes": "bytes", "fixed32": "fixed32",
    "sfixed32": "fixed32", "fixed64": "fixed64", "sfixed64": "fixed64", "float": "float", "double": "double",
}  # fmt: skip
_DESCRIPTIONS: Final = {
    "PACKAGE_CHANGED":
        "The package at '{}' in the %s schema does not match the package in the %s schema",
    "MESSAGE_REMOVED":
        "The %s schema is missing a MESSAGE type at path '{}' in the %s schema",
    "FIELD_KIND_CHANGED":
        "The type of a field at path '{}' in the %s schema does not match the %s schema",
    "FIELD_SCALAR_KIND_CHANGED":
        "The kind of a SCALAR field at path '{}' in the %s schema does not match its kind in the %s schema",
    "FIELD_NAMED_TYPE_CHANGED":
        "The type of a MESSAGE field at path '{}' in the %s schema does not match its type in the %s schema",
    "FIELD_NUMERIC_LABEL_CHANGED":
        "The label for a NUMERIC field at path '{}' in the %s schema does not match its label in the %s schema",
    "REQUIRED_FIELD_ADDED":
        "A required field  at path '{}' in the %s schema is missing in the %s schema",
    "REQUIRED_FIELD_REMOVED":
        "The %s schema is missing a required field at path: '{}' in the %s schema",
    "ONEOF_FIELD_REMOVED":
        "The %s schema is missing a oneof field at path '{}' in the %s schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF":
        "Multiple fields in the oneof at path '{}' in the %s schema are outside a oneof in the %s schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF":
        "A field in the oneof at path '{}' in the %s schema is outside an existing oneof in the %s schema",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProtoDifference:
    type: str
    path: str

    def __str__(self) -> str:
        description = _DESCRIPTIONS.get(self.type, "").replace("{}", self.path)
        return f'{{errorType:"{self.type}", description:"{description}"}}'


def compare_files(
    original: ProtoFile, update: ProtoFile, original_scope: TypeScope, update_scope: TypeScope
) -> list[ProtoDifference]:
    """Returns the differences of `update` from `original`, with their paths."""
    comparison = _ProtoComparison(original_scope, update_scope, [], set())
    if original.package != update.package:
        comparison.add("PACKAGE_CHANGED")
    comparison.compare_types(original.types, update.types)
    return comparison.differences


class _ProtoComparison:
    def __init__(
        self, original: TypeScope, update: TypeScope, path: list[str], open_messages: set[int]
    ) -> None:
        self._original = original
        self._update = update
        self._path = path
        self._open = (
            open_messages  # the messages that are being compared, because a message may contain itself
        )
        self.differences: list[ProtoDifference] = []

    @contextmanager
    def _at(self, *tokens: str) -> Iterator[None]:
        self._path += tokens
        try:
            yield
        finally:
            del self._path[-len(tokens) :]

    def add(self, type: str, *tokens: str) -> None:
        self.differences.append(ProtoDifference(type, "#/" + "/".join((*self._path, *tokens))))

    def compare_types(
        self, original: list[ProtoMessage | ProtoEnum], update: list[ProtoMessage | ProtoEnum]
    ) -> None:
        old_messages = [each for each in original if isinstance(each, ProtoMessage)]
        new_messages = [each for each in update if isinstance(each, ProtoMessage)]
        old = {each.name: (number, each) for number, each in enumerate(old_messages)}
        new = {each.name: (number, each) for number, each in enumerate(new_messages)}
        for name in dict.fromkeys((*old, *new)):
            self._compare_message_named(name, old.get(name), new.get(name))
        old_enums = {each.name: each for each in original if isinstance(each, ProtoEnum)}
        new_enums = {each.name: each for each in update if isinstance(each, ProtoEnum)}
        for name in dict.fromkeys((*old_enums, *new_enums)):
            with self._at(name):
                if name not in new_enums or name not in old_enums:
                    self.add("ENUM_REMOVED" if name in old_enums else "ENUM_ADDED")
                else:
                    self._compare_enums(old_enums[name], new_enums[name])

    def _compare_message_named(
        self, name: str, old: tuple[int, ProtoMessage] | None, new: tuple[int, ProtoMessage] | None
    ) -> None:
        with self._at(name), self._original.inside(name), self._update.inside(name):
            if new is None or old is None:
                found = old or new
                assert found is not None
                if not found[1].is_map_entry:
                    self.add("MESSAGE_REMOVED" if new is None else "MESSAGE_ADDED")
                return
            self._compare_messages(old[1], new[1])
            if old[0] != new[0]:
                self.add("MESSAGE_MOVED")

    def _compare_enums(self, original: ProtoEnum, update: ProtoEnum) -> None:
        old = {each.tag: each.name for each in original.constants}
        new = {each.tag: each.name for each in update.constants}
        for tag in dict.fromkeys((*old, *new)):
            if tag not in new or tag not in old:
                self.add("ENUM_CONST_REMOVED" if tag in old else "ENUM_CONST_ADDED", str(tag))
            elif old[tag] != new[tag]:
                self.add("ENUM_CONST_CHANGED", str(tag))

    def _compare_messages(self, original: ProtoMessage, update: ProtoMessage) -> None:
        if id(original) in self._open:
            return
        self._open.add(id(original))
        old, new = _Members(original), _Members(update)
        self._compare_oneofs(old, new, update.oneofs)
        for tag in sorted({*old.fields, *new.fields}):
            self._compare_member(old, new, tag)
        self.compare_types(original.types, update.types)
        self._open.discard(id(original))

    def _compare_oneofs(self, old: _Members, new: _Members, oneofs: list[ProtoOneOf]) -> None:
        for oneof in oneofs:
            groups = set()
            moved_count = 0
            for field in oneof.fields:
                if field.tag in old.oneof_of:
                    groups.add(f"oneof {old.oneof_of[field.tag]}")
                elif field.tag in old.fields:
                    groups.add(f"field {field.tag}")
                    moved_count += 1
            if len(groups) > 1:
                is_several = moved_count > 1
                type = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if is_several else "FIELD_MOVED_TO_EXISTING_ONEOF"
                self.add(type, oneof.name)
        for name in sorted({*old.oneofs, *new.oneofs}):
            if name not in new.oneofs:
                self.add("ONEOF_REMOVED", name)
            elif name not in old.oneofs:
                self.add("ONEOF_ADDED", name)

    def _compare_member(self, old: _Members, new: _Members, tag: int) -> None:
        before, after = old.fields.get(tag), new.fields.get(tag)
        old_oneof, new_oneof = old.oneof_of.get(tag), new.oneof_of.get(tag)
        if after is None:
            assert before is not None
            if old_oneof is None:
                required = before.label == "required"
                self.add("REQUIRED_FIELD_REMOVED" if required else "FIELD_REMOVED", str(tag))
            elif old_oneof in new.oneofs or any(each in new.fields for each in old.oneofs[old_oneof]):
                self.add("ONEOF_FIELD_REMOVED", old_oneof, str(tag))
        elif before is None:
            if new_oneof is None:
                required = after.label == "required"
                self.add("REQUIRED_FIELD_ADDED" if required else "FIELD_ADDED", str(tag))
            else:
                self.add("ONEOF_FIELD_ADDED", new_oneof, str(tag))
        else:
            if old_oneof is not None and new_oneof is None:
                self.add("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", str(tag))
            place = (str(tag),) if new_oneof is None else (new_oneof, str(tag))
            with self._at(*place):
                if before.name != after.name:
                    self.add("FIELD_NAME_CHANGED")
                self._compare_field_types(before.label, after.label, before.type, after.type)

    def _compare_field_types(self, old_label: str | None, new_label: str | None, old: str, new: str) -> None:
        old, new = _written_out(self._original, old), _written_out(self._update, new)
        old_kind, new_kind = _kind(self._original, old), _kind(self._update, new)
        if old_kind != new_kind:
            self.add("FIELD_KIND_CHANGED")
        elif old_kind == "scalar":
            self._compare_scalars(old_label, new_label, old, new)
        elif old_kind == "map":
            old_map, new_map = map_types(old), map_types(new)
            assert old_map is not None
            assert new_map is not None
            self._compare_field_types(None, None, old_map[0], new_map[0])
            self._compare_field_types(None, None, old_map[1], new_map[1])
        else:
            self._compare_named_types(old, new)

    def _compare_scalars(self, old_label: str | None, new_label: str | None, old: str, new: str) -> None:
        encoding = _ENCODINGS.get(old, "varint")  # an enum is a varint
        if encoding != _ENCODINGS.get(new, "varint"):
            self.add("FIELD_SCALAR_KIND_CHANGED")
        elif old_label is not None and new_label is not None and old_label != new_label:
            is_text = encoding == "bytes"
            self.add("FIELD_STRING_OR_BYTES_LABEL_CHANGED" if is_text else "FIELD_NUMERIC_LABEL_CHANGED")

    def _compare_named_types(self, old: str, new: str) -> None:
        old_entry, new_entry = self._original.find(old), self._update.find(new)
        if old_entry is None or new_entry is None:
            if old != new:
                self.add("FIELD_NAMED_TYPE_CHANGED")
            return
        old_name = _local_name(self._original.resolve(old), old_entry.package)
        new_name = _local_name(self._update.resolve(new), new_entry.package)
        if old_name != new_name:
            self.add("FIELD_NAMED_TYPE_CHANGED")
            return
        if old_entry.reference is not None and new_entry.reference is not None:
            old_place = old_entry.reference.subject, old_entry.reference.version
            if old_place == (new_entry.reference.subject, new_entry.reference.version):
                return  # both are local and are compared by themselves, or both are of the same imported schema
        names = old_name.split(".")
        inner = _ProtoComparison(
            self._original.moved(old_entry.package, names),
            self._update.moved(new_entry.package, names),
            list(names),
            self._open,
        )
        assert isinstance(old_entry.type, ProtoMessage)
        assert isinstance(new_entry.type, ProtoMessage)
        inner._compare_messages(old_entry.type, new_entry.type)
        self.differences += inner.differences
        if any(each.type not in COMPATIBLE for each in inner.differences):
            self.add("FIELD_NAMED_TYPE_CHANGED")


class _Members:
    """The fields of a message by tag, and the oneofs that they are in."""

    def __init__(self, message: ProtoMessage) -> None:
        self.fields: dict[int, ProtoField] = {field.tag: field for field in message.fields}
        self.oneofs: dict[str, list[int]] = {}
        self.oneof_of: dict[int, str] = {}
        for oneof in message.oneofs:
            self.oneofs[oneof.name] = [field.tag for field in oneof.fields]
            for field in oneof.fields:
                self.fields[field.tag] = field
                self.oneof_of[field.tag] = oneof.name


def _written_out(scope: TypeScope, type: str) -> str:
    """Returns the type of a field; `map<…>` for the message that stands for a map."""
    if type in SCALARS or type.startswith("map<"):
        return type
    entry = scope.find(type)
    return type if entry is None or entry.map_type is None else entry.map_type


def _kind(scope: TypeScope, type: str) -> str:
    if type in SCALARS:
        return "scalar"
    if type.startswith("map<"):
        return "map"
    entry = scope.find(type)
    return "scalar" if entry is not None and entry.is_enum else "message"


def _local_name(full: str | None, package: str) -> str:
    assert full is not None
    return full.removeprefix(f"{package}.") if package else full
