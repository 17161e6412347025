"""Spark's types as people write them in a schema, read without Spark: `string`, `decimal(9,2)`, `array<int>`.

A column's text is a type, and may end in `not null`: then a record without this column is a dead letter. These mistakes
are found without a JVM.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from strandline.base.numbers import natural
from strandline.pipeline.spec.yaml_lines import nearest

# Spark's own name of each type, by every name that Spark's SQL accepts.
_PRIMITIVES: Final = {
    "bigint": "bigint",
    "binary": "binary",
    "boolean": "boolean",
    "byte": "tinyint",
    "date": "date",
    "double": "double",
    "float": "float",
    "int": "int",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "short": "smallint",
    "smallint": "smallint",
    "string": "string",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "tinyint": "tinyint",
    "variant": "variant",
}
_TOKEN: Final = re.compile(r"\s*(`[^`]+`|\w+|[<>(),:])")
_NOT_NULL: Final = re.compile(r"\s+not\s+null\s*$", re.IGNORECASE)
_DIGITS_MAX: Final = 38  # the most digits of Spark's decimals


class TypeTextError(ValueError):
    """A text is not a type; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a schema."""

    name: str
    type: str
    required: bool


def why_not_in(format: str, type: str) -> str | None:
    """Returns the reason why Spark cannot read a column of a type from a format; None if it can."""
    if format == "json" and any(key != "string" for key in re.findall(r"map<([^,]+),", type)):
        return "the keys of a JSON object are text: use map<string, …>"
    if format == "csv" and type.startswith(("array<", "map<", "struct<")):
        return f"CSV has no {type.partition('<')[0]}: read a string, and convert it in SQL"
    return None


def quoted(name: str) -> str:
    """Returns a column's name in SQL, whatever characters it has."""
    return f"`{name.replace('`', '``')}`"


def column(name: str, text: str) -> Column:
    """Returns the column of a name and a text such as `bigint not null`; raises TypeTextError."""
    not_null = _NOT_NULL.search(text)
    plain = text[: not_null.start()] if not_null else text
    return Column(name=name, type=_TypeParser(plain).whole(), required=not_null is not None)


class _TypeParser:
    """Parses a type by recursive descent over its tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        position = 0
        while text[position:].strip():
            token = _TOKEN.match(text, position)
            if token is None:
                raise TypeTextError(f"{text!r} is not a type: {text[position:].strip()[0]!r} is unexpected")
            self._tokens.append(token[1])
            position = token.end()

    def whole(self) -> str:
        """Returns the type that the whole text stands for, by Spark's own name."""
        type_name = self._type()
        if self._tokens:
            raise TypeTextError(f"{self._text!r} is not a type: {self._tokens[0]!r} is unexpected")
        return type_name

    def _type(self) -> str:
        word = self._take("a type").lower()
        match word:
            case "array":
                self._expect("<")
                inner = self._type()
                self._expect(">")
                return f"array<{inner}>"
            case "map":
                self._expect("<")
                key = self._type()
                self._expect(",")
                value = self._type()
                self._expect(">")
                return f"map<{key},{value}>"
            case "struct":
                return self._struct()
            case "decimal" | "dec" | "numeric":
                return self._decimal()
        if word not in _PRIMITIVES:
            known = (*_PRIMITIVES, "array", "map", "struct", "decimal")
            raise TypeTextError(f"{word!r} is not a type of Spark{nearest(word, known)}")
        return _PRIMITIVES[word]

    def _struct(self) -> str:
        self._expect("<")
        fields = []
        while True:
            name = self._take("a field's name")
            if self._tokens and self._tokens[0] == ":":
                self._tokens.pop(0)
            fields.append(f"{name}:{self._type()}")
            if self._tokens and self._tokens[0] == ",":
                self._tokens.pop(0)
                continue
            self._expect(">")
            return f"struct<{','.join(fields)}>"

    def _decimal(self) -> str:
        if not self._tokens or self._tokens[0] != "(":
            return "decimal(10,0)"
        self._expect("(")
        digits = [self._number()]
        if self._tokens and self._tokens[0] == ",":
            self._tokens.pop(0)
            digits.append(self._number())
        self._expect(")")
        precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
        if not scale <= precision <= _DIGITS_MAX:
            raise TypeTextError(
                f"{self._text!r}: a decimal has at most {_DIGITS_MAX} digits, including those after the point"
            )
        return f"decimal({precision},{scale})"

    def _number(self) -> int:
        word = self._take("a number")
        number = natural(word)
        if number is None:
            raise TypeTextError(f"{self._text!r} is not a type: {word!r} should be a number")
        return number

    def _take(self, what: str) -> str:
        if not self._tokens:
            raise TypeTextError(f"{self._text!r} is not a type: {what} is missing at its end")
        return self._tokens.pop(0)

    def _expect(self, token: str) -> None:
        next_token = self._take(repr(token))
        if next_token != token:
            raise TypeTextError(f"{self._text!r} is not a type: expected {token!r} instead of {next_token!r}")
