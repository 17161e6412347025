"""Parses the text of a .proto file of proto2, proto3 or an edition.

It is as lenient as the parser of Confluent's registry: it checks the grammar, and other modules check tags and names.
"""

from __future__ import annotations

import re
from typing import Final

from strandline.registry.formats.parsed import InvalidSchema
from strandline.registry.formats.protobuf.elements import (
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
)
from strandline.registry.formats.protobuf.options import read_bracketed_options, read_option
from strandline.registry.formats.protobuf.token_stream import TokenStream

DEPTH_MAX: Final = 100  # the most levels of nested messages
_LABELS: Final = ("optional", "required", "repeated")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def parse_file(text: str) -> ProtoFile:
    """Returns the file of a text. Raises InvalidSchema with the line and column."""
    return _ProtoParser(TokenStream(text)).file()


class _ProtoParser:
    def __init__(self, tokens: TokenStream) -> None:
        self._tokens = tokens
        self._depth = 0

    def file(self) -> ProtoFile:
        made = ProtoFile()
        tokens = self._tokens
        while not tokens.is_at_end:
            match tokens.word():
                case "syntax":
                    tokens.expect("=")
                    made.syntax = tokens.string()
                    if made.syntax not in ("proto2", "proto3"):
                        raise tokens.error(f"unexpected syntax: {made.syntax}")
                    tokens.expect(";")
                case "edition":
                    tokens.expect("=")
                    made.syntax = tokens.string()
                    tokens.expect(";")
                case "package":
                    made.package = tokens.word()
                    tokens.expect(";")
                case "import":
                    self._import(made)
                case "option":
                    made.options.append(self._option())
                case "message":
                    made.types.append(self._message())
                case "enum":
                    made.types.append(self._enum())
                case "service":
                    made.services.append(self._service())
                case "extend":
                    made.extends.append(self._extend())
                case ";":
                    pass
                case other:
                    raise tokens.error(f"unexpected label: {other}")
        return made

    def _import(self, made: ProtoFile) -> None:
        tokens = self._tokens
        if tokens.take("public"):
            made.public_imports.append(tokens.string())
        else:
            tokens.take("weak")
            made.imports.append(tokens.string())
        tokens.expect(";")

    def _option(self) -> ProtoOption:
        option = read_option(self._tokens)
        self._tokens.expect(";")
        return option

    def _name(self) -> str:
        name = self._tokens.word()
        if _NAME.match(name) is None:
            raise self._tokens.error(f"{name!r} is not a name")
        return name

    def _message(self) -> ProtoMessage:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise InvalidSchema(f"messages are nested more than {DEPTH_MAX} deep")
        made = ProtoMessage(self._name())
        tokens = self._tokens
        tokens.expect("{")
        while not tokens.take("}"):
            self._message_part(made)
        self._depth -= 1
        return made

    def _message_part(self, made: ProtoMessage) -> None:
        tokens = self._tokens
        word = tokens.word()
        is_field = tokens.peek_kind == "word" and tokens.peek_after in ("=",)
        if word in ("message", "enum", "oneof", "extend") and not is_field:
            match word:
                case "message":
                    made.types.append(self._message())
                case "enum":
                    made.types.append(self._enum())
                case "oneof":
                    made.oneofs.append(self._oneof())
                case _:
                    made.extends.append(self._extend())
        elif word == "option":
            # The word is never the type of a field, even before a name and `=`, as in protoc.
            made.options.append(self._option())
        elif word == "reserved" and not is_field:
            made.reserved.append(self._reserved())
        elif word == "extensions" and not is_field:
            values = self._ranges()
            options = read_bracketed_options(tokens)
            tokens.expect(";")
            made.extensions.append(ProtoExtensions(values, options))
        elif word != ";":
            member = self._member(word)
            (made.groups if isinstance(member, ProtoGroup) else made.fields).append(member)  # type: ignore[arg-type]

    def _member(self, word: str) -> ProtoField | ProtoGroup:
        label = None
        if word in _LABELS and self._tokens.peek_after != "=":
            label, word = word, self._tokens.word()
        if word == "group" and self._tokens.peek_after == "=":
            return self._group(label)
        return self._field(label, word)

    def _field(self, label: str | None, type: str) -> ProtoField:
        tokens = self._tokens
        if type == "map" and tokens.take("<"):
            key = tokens.word()
            tokens.expect(",")
            value = tokens.word()
            tokens.expect(">")
            type = f"map<{key}, {value}>"
        if not re.match(r"\.?[A-Za-z_]", type):
            raise tokens.error(f"{type!r} is not a type")
        name = self._name()
        tokens.expect("=")
        tag = tokens.integer()
        made = ProtoField(name, type, tag, label)
        for option in read_bracketed_options(tokens):
            if option.name == "default" and not option.is_extension:
                made.default = str(option.value)
            elif option.name == "json_name" and not option.is_extension:
                made.json_name = str(option.value)
            else:
                made.options.append(option)
        tokens.expect(";")
        return made

    def _group(self, label: str | None) -> ProtoGroup:
        tokens = self._tokens
        name = self._name()
        tokens.expect("=")
        made = ProtoGroup(name, tokens.integer(), label, [])
        tokens.expect("{")
        while not tokens.take("}"):
            member = self._member(tokens.word())
            if isinstance(member, ProtoGroup):
                raise tokens.error("a group inside of a group is not supported")
            made.fields.append(member)
        return made

    def _oneof(self) -> ProtoOneOf:
        tokens = self._tokens
        made = ProtoOneOf(self._name())
        tokens.expect("{")
        while not tokens.take("}"):
            word = tokens.word()
            if word == "option":
                made.options.append(self._option())
            elif word != ";":
                member = self._member(word)
                (made.groups if isinstance(member, ProtoGroup) else made.fields).append(member)  # type: ignore[arg-type]
        return made

    def _extend(self) -> ProtoExtend:
        tokens = self._tokens
        made = ProtoExtend(tokens.word())
        tokens.expect("{")
        while not tokens.take("}"):
            word = tokens.word()
            if word == ";":
                continue
            member = self._member(word)
            if isinstance(member, ProtoField):
                made.fields.append(member)
        return made

    def _enum(self) -> ProtoEnum:
        tokens = self._tokens
        made = ProtoEnum(self._name())
        tokens.expect("{")
        while not tokens.take("}"):
            word = tokens.word()
            if word == "option" and tokens.peek != "=":
                made.options.append(self._option())
            elif word == "reserved" and tokens.peek != "=":
                made.reserved.append(self._reserved())
            elif word != ";":
                tokens.expect("=")
                constant = ProtoConstant(word, tokens.integer())
                constant.options = read_bracketed_options(tokens)
                tokens.expect(";")
                made.constants.append(constant)
        return made

    def _reserved(self) -> list[ReservedValue]:
        values = self._ranges()
        self._tokens.expect(";")
        return values

    def _ranges(self) -> list[ReservedValue]:
        """Returns tags, ranges of tags and names, separated by commas."""
        tokens = self._tokens
        values: list[ReservedValue] = []
        while True:
            if tokens.peek_kind == "string":
                values.append(tokens.string())
            else:
                word = tokens.word()
                if _NAME.match(word) is not None:  # in editions reserved names are not quoted
                    values.append(word)
                elif tokens.take("to"):
                    end = tokens.word()
                    values.append(
                        (tokens.as_integer(word), TAG_MAX if end == "max" else tokens.as_integer(end))
                    )
                else:
                    values.append(tokens.as_integer(word))
            if not tokens.take(","):
                return values

    def _service(self) -> ProtoService:
        tokens = self._tokens
        made = ProtoService(self._name())
        tokens.expect("{")
        while not tokens.take("}"):
            match tokens.word():
                case "option":
                    made.options.append(self._option())
                case "rpc":
                    made.rpcs.append(self._rpc())
                case ";":
                    pass
                case other:
                    raise tokens.error(f"unexpected {other} in a service")
        return made

    def _rpc(self) -> ProtoRpc:
        tokens = self._tokens
        name = self._name()
        is_request_stream, request = self._rpc_type()
        if tokens.word() != "returns":
            raise tokens.error("expected 'returns'")
        is_response_stream, response = self._rpc_type()
        made = ProtoRpc(name, request, response, is_request_stream, is_response_stream)
        if tokens.take("{"):
            while not tokens.take("}"):
                word = tokens.word()
                if word == "option":
                    made.options.append(self._option())
                elif word != ";":
                    raise tokens.error(f"unexpected {word} in an rpc")
            tokens.take(";")
        else:
            tokens.expect(";")
        return made

    def _rpc_type(self) -> tuple[bool, str]:
        tokens = self._tokens
        tokens.expect("(")
        name = tokens.word()
        is_stream = name == "stream" and tokens.peek != ")"
        if is_stream:
            name = tokens.word()
        tokens.expect(")")
        return is_stream, name
