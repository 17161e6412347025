"""Reads a FileDescriptorProto, the binary form of a .proto file, which Python clients register as base64."""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

from strandline.registry.formats.parsed import InvalidSchema
from strandline.registry.formats.protobuf.elements import (
    ProtoConstant,
    ProtoEnum,
    ProtoExtend,
    ProtoExtensions,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    ProtoOneOf,
    ProtoOption,
    ProtoRpc,
    ProtoService,
    ReservedValue,
)

_LABELS: Final = {1: "optional", 2: "required", 3: "repeated"}


def read_descriptor(data: bytes) -> ProtoFile:
    """Returns the file of a descriptor. Raises InvalidSchema if the bytes are not a descriptor of a file."""
    descriptor = descriptor_pb2.FileDescriptorProto()
    try:
        descriptor.ParseFromString(data)
    except DecodeError as error:
        raise InvalidSchema(f"not a FileDescriptorProto: {error}") from None
    if not descriptor.name and not descriptor.message_type and not descriptor.enum_type:
        raise InvalidSchema("not a FileDescriptorProto: it names no file and no type")
    return file_from_descriptor(descriptor)


def file_from_descriptor(descriptor: Any) -> ProtoFile:
    is_proto3 = descriptor.syntax == "proto3"
    public = set(descriptor.public_dependency)
    return ProtoFile(
        syntax=descriptor.syntax or None,
        package=descriptor.package or None,
        imports=[name for number, name in enumerate(descriptor.dependency) if number not in public],
        public_imports=[name for number, name in enumerate(descriptor.dependency) if number in public],
        options=_options(descriptor.options),
        types=[
            *(_message(each, is_proto3) for each in descriptor.message_type),
            *(_enum(each) for each in descriptor.enum_type),
        ],
        services=[_service(each) for each in descriptor.service],
        extends=_extends(descriptor.extension, is_proto3),
    )


def _message(descriptor: Any, is_proto3: bool) -> ProtoMessage:
    oneofs = [ProtoOneOf(each.name, options=_options(each.options)) for each in descriptor.oneof_decl]
    fields = []
    for each in descriptor.field:
        if each.HasField("oneof_index") and not each.proto3_optional:
            field = _field(each, is_proto3)
            field.label = None
            oneofs[each.oneof_index].fields.append(field)
        else:
            fields.append(_field(each, is_proto3))
    reserved: list[list[ReservedValue]] = [[(each.start, each.end - 1)] for each in descriptor.reserved_range]
    return ProtoMessage(
        descriptor.name,
        fields=fields,
        oneofs=[each for each in oneofs if each.fields],
        types=[
            *(_message(each, is_proto3) for each in descriptor.nested_type),
            *(_enum(each) for each in descriptor.enum_type),
        ],
        options=_options(descriptor.options),
        reserved=reserved + [[name] for name in descriptor.reserved_name],
        extensions=[ProtoExtensions([(each.start, each.end - 1)]) for each in descriptor.extension_range],
        extends=_extends(descriptor.extension, is_proto3),
    )


def _field(descriptor: Any, is_proto3: bool) -> ProtoField:
    label: str | None = _LABELS[descriptor.label]
    if is_proto3 and label != "repeated" and not descriptor.proto3_optional:
        label = None
    type_names = descriptor_pb2.FieldDescriptorProto.Type.Name
    has_default = descriptor.HasField("default_value") and not is_proto3
    return ProtoField(
        descriptor.name,
        descriptor.type_name or type_names(descriptor.type).removeprefix("TYPE_").lower(),
        descriptor.number,
        label,
        options=_options(descriptor.options),
        default=descriptor.default_value if has_default else None,
        json_name=descriptor.json_name if descriptor.HasField("json_name") else None,
    )


def _extends(fields: Any, is_proto3: bool) -> list[ProtoExtend]:
    by_name: dict[str, ProtoExtend] = {}
    for each in fields:
        extend = by_name.setdefault(each.extendee, ProtoExtend(each.extendee))
        extend.fields.append(_field(each, is_proto3))
    return list(by_name.values())


def _enum(descriptor: Any) -> ProtoEnum:
    reserved: list[list[ReservedValue]] = [[(each.start, each.end)] for each in descriptor.reserved_range]
    return ProtoEnum(
        descriptor.name,
        constants=[
            ProtoConstant(each.name, each.number, _options(each.options)) for each in descriptor.value
        ],
        options=_options(descriptor.options),
        reserved=reserved + [[name] for name in descriptor.reserved_name],
    )


def _service(descriptor: Any) -> ProtoService:
    return ProtoService(
        descriptor.name,
        rpcs=[
            ProtoRpc(
                each.name,
                each.input_type,
                each.output_type,
                each.client_streaming,
                each.server_streaming,
                _options(each.options),
            )
            for each in descriptor.method
        ],
        options=_options(descriptor.options),
    )


def _options(options: Any) -> list[ProtoOption]:
    """Returns the options of the language itself. Other options are unknown bytes here, and are left out."""
    made = []
    for field, value in options.ListFields():
        if field.is_extension or not isinstance(value, bool | int | float | str):
            continue
        if field.enum_type is not None:
            made.append(ProtoOption(field.name, "ENUM", field.enum_type.values_by_number[value].name))
        elif isinstance(value, bool):
            made.append(ProtoOption(field.name, "BOOLEAN", "true" if value else "false"))
        elif isinstance(value, str):
            made.append(ProtoOption(field.name, "STRING", value))
        else:
            made.append(ProtoOption(field.name, "NUMBER", str(value)))
    return made
