"""The tokens of a .proto file, read one after the other."""

from __future__ import annotations

from strandline.registry.formats.parsed import InvalidSchema
from strandline.registry.formats.protobuf.lexer import place_of, tokenize


class TokenStream:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._next = 0

    @property
    def is_at_end(self) -> bool:
        return self._tokens[self._next].kind == "end"

    @property
    def peek(self) -> str:
        return self._tokens[self._next].text

    @property
    def peek_kind(self) -> str:
        return self._tokens[self._next].kind

    @property
    def peek_after(self) -> str:
        """The token after the next one."""
        place = min(self._next + 1, len(self._tokens) - 1)
        return self._tokens[place].text

    def word(self) -> str:
        """Returns the next token, which must be a word or a semicolon that stands alone."""
        token = self._tokens[self._next]
        if token.kind != "word" and token.text != ";":
            raise self.error(
                "unexpected end of the file" if token.kind == "end" else f"unexpected {token.text!r}"
            )
        self._next += 1
        return token.text

    def string(self) -> str:
        """Returns one string; adjacent strings are joined."""
        if self.peek_kind != "string":
            raise self.error("expected a string")
        parts = []
        while self.peek_kind == "string":
            parts.append(self._tokens[self._next].text)
            self._next += 1
        return "".join(parts)

    def integer(self) -> int:
        return self.as_integer(self.word())

    def as_integer(self, text: str) -> int:
        sign = -1 if text.startswith("-") else 1
        digits = text.lstrip("+-")
        try:
            if digits[:2].lower() == "0x":
                return sign * int(digits, 16)
            if len(digits) > 1 and digits[0] == "0":
                return sign * int(digits, 8)
            return sign * int(digits)
        except ValueError:
            raise self.error(f"expected an integer but was {text}") from None

    def take(self, text: str) -> bool:
        """True if this was the next token; then it is read."""
        token = self._tokens[self._next]
        if token.text != text or token.kind == "string":
            return False
        self._next += 1
        return True

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise self.error(f"expected {text!r}")

    def error(self, message: str) -> InvalidSchema:
        position = self._tokens[min(self._next, len(self._tokens) - 1)].position
        return InvalidSchema(f"Syntax error {place_of(self._text, position)}: {message}")
