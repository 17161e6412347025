"""Cuts the text of a .proto file into tokens, without comments."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from strandline.registry.formats.parsed import InvalidSchema

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<word>[A-Za-z0-9_.+-]+)
      | (?P<symbol>[{}()\[\]<>=;,:/])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_PLAIN_ESCAPES: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip


class Token(NamedTuple):
    kind: str  # string, word or symbol; end for the token after the last one
    text: str
    position: int


def tokenize(text: str) -> list[Token]:
    tokens = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise InvalidSchema(f"Syntax error {place_of(text, position)}: unexpected {text[position]!r}")
        kind = found.lastgroup
        assert kind is not None
        if kind == "string":
            tokens.append(Token(kind, _unescaped(found.group()[1:-1]), position))
        elif kind != "space":
            tokens.append(Token(kind, found.group(), position))
        position = found.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


def place_of(text: str, position: int) -> str:
    """Returns the line and column of a token, for a message."""
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"in line {line}, column {column}"


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text

    def plain(found: re.Match[str]) -> str:
        code = found.group(1)
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8))
        return _PLAIN_ESCAPES.get(code, code)

    return _ESCAPE.sub(plain, text)
