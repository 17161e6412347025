"""Reads options: their names, and values of every kind."""

from __future__ import annotations

import re
from typing import Any, Final

from strandline.registry.formats.parsed import InvalidSchema
from strandline.registry.formats.protobuf.elements import ProtoOption, ProtoPrimitive
from strandline.registry.formats.protobuf.token_stream import TokenStream

_NUMBER: Final = re.compile(r"[+-]?(\d|\.\d|inf\b|nan\b)")
_DEPTH_MAX: Final = 50


def read_bracketed_options(tokens: TokenStream) -> list[ProtoOption]:
    """Returns options in brackets, such as `[a = 1, (b).c = "x"]`; an empty list if the next token is not a bracket."""
    options: list[ProtoOption] = []
    if not tokens.take("["):
        return options
    while True:
        options.append(read_option(tokens))
        if tokens.take("]"):
            return options
        tokens.expect(",")


def read_option(tokens: TokenStream) -> ProtoOption:
    """Returns an option `name = value`; the token after it is not read."""
    is_extension = tokens.take("(")
    name = tokens.word()
    path: list[str] = []
    if is_extension:
        name = name.removeprefix(".")
        tokens.expect(")")
        if tokens.peek.startswith("."):
            path = tokens.word()[1:].split(".")
            while tokens.take("("):  # an extension of the option's own message
                path[-1:] = [f"({tokens.word()})"]
                tokens.expect(")")
    tokens.expect("=")
    kind, value = _value(tokens, 0)
    for part in reversed(path):
        kind, value = "OPTION", ProtoOption(part, kind, value)
    return ProtoOption(name, kind, value, is_extension)


def _value(tokens: TokenStream, depth: int) -> tuple[str, Any]:
    if depth > _DEPTH_MAX:
        raise InvalidSchema(f"an option is nested more than {_DEPTH_MAX} deep")
    if tokens.take("{"):
        return "MAP", _message(tokens, "}", depth)
    if tokens.take("<"):
        return "MAP", _message(tokens, ">", depth)
    if tokens.take("["):
        values: list[Any] = []
        while not tokens.take("]"):
            kind, value = _value(tokens, depth + 1)
            values.append(_inner(kind, value))
            tokens.take(",")
        return "LIST", values
    if tokens.peek_kind == "string":
        return "STRING", tokens.string()
    word = tokens.word()
    if word in ("-", "+"):
        word += tokens.word()
    if word in ("true", "false"):
        return "BOOLEAN", word
    return ("NUMBER" if _NUMBER.match(word) else "ENUM"), word


def _message(tokens: TokenStream, end: str, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    while not tokens.take(end):
        if tokens.take("["):
            key = f"[{tokens.word()}"
            while tokens.take("/"):
                key += f"/{tokens.word()}"
            tokens.expect("]")
            key += "]"
        else:
            key = tokens.word()
        tokens.take(":")
        kind, value = _value(tokens, depth + 1)
        value = _inner(kind, value)
        if key in made:
            known = made[key]
            made[key] = [*(known if isinstance(known, list) else [known]), *_listed(value)]
        else:
            made[key] = value
        if not tokens.take(","):
            tokens.take(";")
    return made


def _inner(kind: str, value: Any) -> Any:
    return ProtoPrimitive(kind, value) if kind in ("BOOLEAN", "NUMBER", "ENUM") else value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
