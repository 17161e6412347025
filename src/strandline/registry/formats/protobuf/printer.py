"""Prints a .proto file as Confluent's registry does: this text is what is stored and hashed.

Comments are dropped. Messages come before enums, and fields before oneofs. The normal form also resolves every name to
a full one, sorts parts whose order does not matter, and drops parts without a meaning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strandline.registry.formats.parsed import InvalidSchema
from strandline.registry.formats.protobuf.elements import (
    SCALARS,
    TAG_MAX,
    ProtoConstant,
    ProtoEnum,
    ProtoExtend,
    ProtoExtensions,
    ProtoField,
    ProtoFile,
    ProtoGroup,
    ProtoMessage,
    ProtoOneOf,
    ProtoOption,
    ProtoRpc,
    ProtoService,
    ReservedValue,
    map_types,
)
from strandline.registry.formats.protobuf.option_printer import OptionPrinter, indented
from strandline.registry.formats.protobuf.type_scope import TypeScope

_NUMBERS: Final = SCALARS - {"bool", "string"}


def print_file(file: ProtoFile, *, without_extensions: bool = False) -> str:
    return _ProtoPrinter(None, without_extensions).file(file)


def print_normal_form(file: ProtoFile, scope: TypeScope) -> str:
    """Returns the normal form of a file. Raises InvalidSchema if a type cannot be resolved."""
    return _ProtoPrinter(scope, False).file(file)


class _ProtoPrinter:
    def __init__(self, scope: TypeScope | None, without_extensions: bool) -> None:
        self._scope = scope  # only in the normal form
        self._without_extensions = without_extensions
        self._options = OptionPrinter(scope, without_extensions)

    def file(self, file: ProtoFile) -> str:
        made = []
        is_normal = self._scope is not None
        if file.syntax is not None and (not is_normal or file.syntax != "proto2"):
            word = "syntax" if file.syntax.startswith("proto") else "edition"
            made.append(f'{word} = "{file.syntax}";\n')
        if file.package is not None:
            made.append(f"package {file.package};\n")
        if file.imports or file.public_imports:
            made.append("\n")
            for word, names in (("import", file.imports), ("import public", file.public_imports)):
                listed = sorted(set(names)) if is_normal else names
                made += [f'{word} "{name}";\n' for name in listed]
        options = self._options.statements(file.options)
        if options:
            made.append("\n" + options)
        types = self._types(file.types)
        if types:
            made.append("\n" + types)
        if file.extends and not self._without_extensions:
            made.append("\n" + "".join(self._extend(each) for each in self._grouped(file.extends)))
        if file.services:
            made.append("\n" + "".join(self._service(each) for each in file.services))
        return "".join(made)

    def _types(self, types: list[ProtoMessage | ProtoEnum]) -> str:
        shown = types
        if self._scope is not None:
            shown = [each for each in types if not (isinstance(each, ProtoMessage) and each.is_map_entry)]
        messages = [self._message(each) for each in shown if isinstance(each, ProtoMessage)]
        return "".join(messages + [self._enum(each) for each in shown if isinstance(each, ProtoEnum)])

    def _message(self, message: ProtoMessage) -> str:
        if self._scope is None:
            return self._message_body(message)
        with self._scope.inside(message.name):
            return self._message_body(message)

    def _message_body(self, message: ProtoMessage) -> str:
        made = [f"message {message.name} {{"]
        if message.reserved:
            made.append("\n" + self._reserved(message.reserved))
        options = self._options.statements(message.options)
        if options:
            made.append("\n" + indented(options))
        if message.fields:
            made.append("\n" + indented(self._fields(message.fields)))
        if message.oneofs:
            made.append("\n" + indented("".join(self._oneof(each) for each in self._oneofs(message))))
        if message.groups:
            made.append("\n" + indented(self._groups(message.groups)))
        if message.extensions and not self._without_extensions:
            made.append("\n" + indented("".join(self._extensions(message.extensions))))
        if message.extends and not self._without_extensions:
            extends = "".join(self._extend(each) for each in self._grouped(message.extends))
            made.append("\n" + indented(extends))
        types = self._types(message.types)
        if types:
            made.append("\n" + indented(types))
        return "".join(made) + "}\n"

    def _fields(self, fields: list[ProtoField]) -> str:
        return "".join(self._field(field) for field in self._by_tag(fields))

    def _by_tag(self, fields: list[ProtoField]) -> list[ProtoField]:
        return fields if self._scope is None else sorted(fields, key=lambda field: field.tag)

    def _field(self, field: ProtoField) -> str:
        label, type = field.label, field.type
        if self._scope is not None:
            type = self._resolved_type(self._scope, type)
            if type.startswith("map<"):
                label = None
        options = list(field.options)
        if field.default is not None:
            options.append(ProtoOption("default", _default_kind(type), field.default))
        if field.json_name is not None:
            options.append(ProtoOption("json_name", "STRING", field.json_name))
        shown = self._options.bracketed(options)
        label = "" if label is None else f"{label} "
        return f"{label}{type} {field.name} = {field.tag}{shown};\n"

    def _resolved_type(self, scope: TypeScope, type: str) -> str:
        if type in SCALARS:
            return type
        if not type.startswith("map<"):
            type = self._resolved(scope, type)
            entry = scope.types.get(type[1:])
            if entry is None or entry.map_type is None:
                return type
            type = entry.map_type
        key_and_value = map_types(type)
        assert key_and_value is not None
        key, value = key_and_value
        full = scope.resolve(value)
        if full is None and value not in SCALARS:
            raise InvalidSchema(f"Could not resolve type: {value}")
        return f"map<{key}, {value if full is None else '.' + full}>"

    def _resolved(self, scope: TypeScope, name: str) -> str:
        full = scope.resolve(name)
        if full is None:
            raise InvalidSchema(f"Could not resolve type: {name}")
        return f".{full}"

    def _oneofs(self, message: ProtoMessage) -> Iterable[ProtoOneOf]:
        if self._scope is None:
            return message.oneofs
        filled = [each for each in message.oneofs if each.fields]
        return sorted(filled, key=lambda each: min(field.tag for field in each.fields))

    def _oneof(self, oneof: ProtoOneOf) -> str:
        made = [f"oneof {oneof.name} {{"]
        options = self._options.statements(oneof.options)
        if options:
            made.append("\n" + indented(options))
        if oneof.fields:
            made.append("\n" + indented(self._fields(oneof.fields)))
        if oneof.groups:
            made.append("\n" + indented(self._groups(oneof.groups)))
        return "".join(made) + "}\n"

    def _groups(self, groups: list[ProtoGroup]) -> str:
        ordered = groups if self._scope is None else sorted(groups, key=lambda group: group.tag)
        made = []
        for group in ordered:
            label = "" if group.label is None else f"{group.label} "
            fields = "\n" + indented(self._fields(group.fields)) if group.fields else ""
            made.append(f"{label}group {group.name} = {group.tag} {{{fields}}}\n")
        return "".join(made)

    def _extend(self, extend: ProtoExtend) -> str:
        fields = "\n" + indented(self._fields(extend.fields)) if extend.fields else ""
        return f"extend {extend.name} {{{fields}}}\n"

    def _grouped(self, extends: list[ProtoExtend]) -> list[ProtoExtend]:
        """Returns the extensions; in the normal form those of the same message are together."""
        if self._scope is None:
            return extends
        by_name: dict[str, ProtoExtend] = {}
        for extend in extends:
            name = self._resolved(self._scope, extend.name)
            by_name.setdefault(name, ProtoExtend(name)).fields.extend(extend.fields)
        return list(by_name.values())

    def _enum(self, enum: ProtoEnum) -> str:
        made = [f"enum {enum.name} {{"]
        if enum.reserved:
            made.append("\n" + self._reserved(enum.reserved))
        elif enum.options or enum.constants:
            made.append("\n")
        made.append(indented(self._options.statements(enum.options)))
        constants: list[ProtoConstant] = enum.constants
        if self._scope is not None:
            constants = sorted(constants, key=lambda each: (each.tag, each.name))
        shown = [f"{each.name} = {each.tag}{self._options.bracketed(each.options)};\n" for each in constants]
        return "".join(made) + indented("".join(shown)) + "}\n"

    def _reserved(self, reserved: list[list[ReservedValue]]) -> str:
        listed = self._one_by_one(reserved)
        return indented("".join(f"reserved {', '.join(map(self._range, each))};\n" for each in listed))

    def _extensions(self, extensions: list[ProtoExtensions]) -> Iterable[str]:
        ordered = extensions
        if self._scope is not None:
            singles = [ProtoExtensions([value], each.options) for each in extensions for value in each.values]
            ordered = sorted(singles, key=lambda each: _start(each.values[0]))
        for each in ordered:
            shown = ", ".join(map(self._range, each.values))
            yield f"extensions {shown}{self._options.bracketed(each.options)};\n"

    def _one_by_one(self, reserved: list[list[ReservedValue]]) -> list[list[ReservedValue]]:
        if self._scope is None:
            return reserved
        values = [value for each in reserved for value in each]
        return [[value] for value in sorted(values, key=lambda value: (_start(value), str(value)))]

    def _range(self, value: ReservedValue) -> str:
        if isinstance(value, str):
            return f'"{value}"'
        if isinstance(value, int):
            return str(value)
        start, end = value
        if self._scope is not None and start == end:
            return str(start)
        return f"{start} to {end if end < TAG_MAX else 'max'}"

    def _service(self, service: ProtoService) -> str:
        made = [f"service {service.name} {{"]
        options = self._options.statements(service.options)
        if options:
            made.append("\n" + indented(options))
        if service.rpcs:
            made.append("\n" + indented("".join(self._rpc(rpc) for rpc in service.rpcs)))
        return "".join(made) + "}\n"

    def _rpc(self, rpc: ProtoRpc) -> str:
        request, response = rpc.request, rpc.response
        if self._scope is not None:
            request, response = self._resolved(self._scope, request), self._resolved(self._scope, response)
        streams = "stream " if rpc.is_request_stream else "", "stream " if rpc.is_response_stream else ""
        options = self._options.statements(rpc.options)
        body = f" {{\n{indented(options)}}}" if options else ""
        return f"rpc {rpc.name} ({streams[0]}{request}) returns ({streams[1]}{response}){body};\n"


def _start(value: ReservedValue) -> int:
    if isinstance(value, str):
        return 2**31 - 1
    return value if isinstance(value, int) else value[0]


def _default_kind(type: str) -> str:
    if type == "bool":
        return "BOOLEAN"
    if type == "string":
        return "STRING"
    return "NUMBER" if type in _NUMBERS else "ENUM"
