"""Makes the FileDescriptorProto of a file: the output format `serialized`, in which Python clients read schemas."""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2

from strandline.registry.formats.parsed import InvalidSchema
from strandline.registry.formats.protobuf.elements import (
    SCALARS,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    ProtoOption,
    ReservedValue,
    map_types,
)
from strandline.registry.formats.protobuf.type_scope import TypeScope

_LABELS: Final = {"optional": 1, "required": 2, "repeated": 3}
_TYPE_ENUM: Final = 14
_TYPE_MESSAGE: Final = 11


def write_descriptor(file: ProtoFile, scope: TypeScope, name: str = "default") -> bytes:
    """Returns the descriptor's bytes. Raises InvalidSchema if a type cannot be resolved."""
    made = descriptor_pb2.FileDescriptorProto(name=name)
    if file.package:
        made.package = file.package
    if file.syntax and file.syntax != "proto2":
        made.syntax = file.syntax
    made.dependency.extend([*file.imports, *file.public_imports])
    made.public_dependency.extend(range(len(file.imports), len(made.dependency)))
    writer = _DescriptorWriter(scope, is_proto3=file.syntax == "proto3")
    writer.types(file.types, made.message_type, made.enum_type)
    for extend in file.extends:
        for field in extend.fields:
            writer.field(field, made.extension.add(), None).extendee = writer.full_name(extend.name)
    for service in file.services:
        described = made.service.add(name=service.name)
        _set_options(described, service.options)
        for rpc in service.rpcs:
            method = described.method.add(
                name=rpc.name,
                input_type=writer.full_name(rpc.request),
                output_type=writer.full_name(rpc.response),
                client_streaming=rpc.is_request_stream or None,
                server_streaming=rpc.is_response_stream or None,
            )
            _set_options(method, rpc.options)
    _set_options(made, file.options)
    return bytes(made.SerializeToString(deterministic=True))


class _DescriptorWriter:
    def __init__(self, scope: TypeScope, *, is_proto3: bool) -> None:
        self._scope = scope
        self._is_proto3 = is_proto3

    def full_name(self, name: str) -> str:
        full = self._scope.resolve(name)
        if full is None:
            raise InvalidSchema(f"Could not resolve type: {name}")
        return f".{full}"

    def types(self, types: list[ProtoMessage | ProtoEnum], messages: Any, enums: Any) -> None:
        for each in types:
            if isinstance(each, ProtoEnum):
                self._enum(each, enums.add(name=each.name))
            else:
                with self._scope.inside(each.name):
                    self._message(each, messages.add(name=each.name))

    def _message(self, message: ProtoMessage, made: Any) -> None:
        for field in message.fields:
            self.field(field, made.field.add(), made)
        for number, oneof in enumerate(message.oneofs):
            made.oneof_decl.add(name=oneof.name)
            for field in oneof.fields:
                self.field(field, made.field.add(), made).oneof_index = number
        for each in made.field:
            if each.proto3_optional:  # a oneof of its own tells readers whether the field was set
                each.oneof_index = len(made.oneof_decl)
                made.oneof_decl.add(name=f"_{each.name}")
        self.types(message.types, made.nested_type, made.enum_type)
        for reserved in message.reserved:
            for value in reserved:
                if isinstance(value, str):
                    made.reserved_name.append(value)
                else:
                    start, end = _bounds(value)
                    made.reserved_range.add(start=start, end=end + 1)
        for extensions in message.extensions:
            for value in extensions.values:
                start, end = _bounds(value)
                made.extension_range.add(start=start, end=end + 1)
        for extend in message.extends:
            for field in extend.fields:
                self.field(field, made.extension.add(), None).extendee = self.full_name(extend.name)
        _set_options(made, message.options)

    def _enum(self, enum: ProtoEnum, made: Any) -> None:
        for constant in enum.constants:
            _set_options(made.value.add(name=constant.name, number=constant.tag), constant.options)
        for reserved in enum.reserved:
            for value in reserved:
                if isinstance(value, str):
                    made.reserved_name.append(value)
                else:
                    start, end = _bounds(value)
                    made.reserved_range.add(start=start, end=end)
        _set_options(made, enum.options)

    def field(self, field: ProtoField, made: Any, owner: Any) -> Any:
        made.name, made.number = field.name, field.tag
        made.label = _LABELS[field.label or "optional"]
        made.proto3_optional = self._is_proto3 and field.label == "optional"
        if not made.proto3_optional:
            made.ClearField("proto3_optional")
        key_and_value = map_types(field.type)
        if key_and_value is not None:
            self._map(field, key_and_value, made, owner)
        else:
            self._set_type(made, field.type)
        if field.default is not None:
            made.default_value = field.default
        if field.json_name is not None:
            made.json_name = field.json_name
        _set_options(made, field.options)
        return made

    def _map(self, field: ProtoField, key_and_value: tuple[str, str], made: Any, owner: Any) -> None:
        """Adds the message of a key and a value that a map field repeats."""
        if owner is None:
            raise InvalidSchema(f"the extension {field.name} cannot be a map")
        name = "".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry"
        entry = owner.nested_type.add(name=name)
        entry.options.map_entry = True
        for number, (each, type) in enumerate(zip(("key", "value"), key_and_value, strict=True), 1):
            inner = entry.field.add(name=each, number=number, label=1)
            self._set_type(inner, type)
        made.label, made.type = _LABELS["repeated"], _TYPE_MESSAGE
        made.type_name = f"{self._here()}.{name}"

    def _here(self) -> str:
        package = self._scope.package
        return "." + ".".join([*([package] if package else []), *self._scope.names])

    def _set_type(self, made: Any, type: str) -> None:
        if type in SCALARS:
            made.type = descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{type.upper()}")
            return
        made.type_name = self.full_name(type)
        made.type = _TYPE_ENUM if self._scope.types[made.type_name[1:]].is_enum else _TYPE_MESSAGE


def _bounds(value: ReservedValue) -> tuple[int, int]:
    if isinstance(value, tuple):
        return value
    assert isinstance(value, int)
    return value, value


def _set_options(made: Any, options: list[ProtoOption]) -> None:
    """Sets the options of the language itself. Other options would need the file that defines them."""
    for option in options:
        if option.is_extension:
            continue
        field = made.options.DESCRIPTOR.fields_by_name.get(option.name)
        if field is None or field.message_type is not None:
            continue
        if option.kind == "BOOLEAN":
            setattr(made.options, option.name, option.value == "true")
        elif option.kind == "STRING":
            setattr(made.options, option.name, option.value)
        elif option.kind == "ENUM" and field.enum_type is not None:
            value = field.enum_type.values_by_name.get(option.value)
            if value is not None:
                setattr(made.options, option.name, value.number)
