r"""Java's .properties format, as server.properties is written.

A line is `key=value`, `key: value` or `key value`; blanks before the key and around the separator are ignored. `#` and
`!` begin a comment line. A line that ends in an odd number of backslashes goes on in the next, whose leading blanks are
dropped. `\t`, `\n`, `\r`, `\f` and `\uXXXX` mean what they do in Java; before any other character the backslash only
takes away that character's special meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {character: f"\\{letter}" for letter, character in _ESCAPES.items()} | {"\\": "\\\\"}


class Property(NamedTuple):
    key: str
    value: str
    line: int


class MalformedProperties(ValueError):
    """The text is not in the format: only a malformed \\uXXXX can cause that."""


def parse_properties(text: str) -> list[Property]:
    """Returns every setting of the text in order, with the line on which it begins; of a repeated key only the last."""
    found: dict[str, Property] = {}
    for line, content in _logical_lines(text):
        key, value = _split(content)
        name = _unescape(key, line)
        found.pop(name, None)
        found[name] = Property(name, _unescape(value, line), line)
    return list(found.values())


def render_properties(settings: Mapping[str, str]) -> str:
    """Returns a text in ASCII from which `parse_properties` and Java read the same settings; raises ValueError if there
    is none."""
    return "".join(f"{_escape(key, '=: #!')}={_escape(value, '')}\n" for key, value in settings.items())


def _escape(text: str, special: str) -> str:
    escaped = "".join(_escape_character(character, special) for character in text)
    # Blanks before a value are ignored.
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escape_character(character: str, special: str) -> str:
    if character in special:
        return f"\\{character}"
    if " " <= character <= "~" and character != "\\":
        return character
    if character in _ESCAPED:
        return _ESCAPED[character]
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Returns lines with their continuations joined, without blank lines and comments."""
    logical: list[tuple[int, str]] = []
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    begun: tuple[int, str] | None = None
    for number, raw in enumerate(lines, start=1):
        content = raw.lstrip(_BLANKS)
        if begun is None and (not content or content[0] in "#!"):
            continue
        first, before = begun or (number, "")
        backslashes = len(content) - len(content.rstrip("\\"))
        if backslashes % 2:
            begun = (first, before + content[:-1])
            continue
        begun = None
        logical.append((first, before + content))
    if begun is not None:
        logical.append(begun)  # The text ended in a backslash, which then continues nothing.
    return [(line, content) for line, content in logical if content]


def _split(content: str) -> tuple[str, str]:
    """Returns key and value, both still escaped."""
    at = 0
    while at < len(content) and content[at] not in "=:" + _BLANKS:
        at += 2 if content[at] == "\\" else 1
    rest = content[at:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return content[:at], rest


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\" or at + 1 == len(text):
            parts.append(text[at])
            at += 1
        elif text[at + 1] == "u":
            parts.append(_unicode(text[at + 2 : at + 6], line))
            at += 6
        else:
            parts.append(_ESCAPES.get(text[at + 1], text[at + 1]))
            at += 2
    # Characters outside the first plane are written as two escapes, which only together are a character.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unicode(digits: str, line: int) -> str:
    if len(digits) != 4 or not set(digits) <= set("0123456789abcdefABCDEF"):
        raise MalformedProperties(
            f"line {line}: \\u must be followed by four hexadecimal digits, not {digits!r}"
        )
    return chr(int(digits, 16))
