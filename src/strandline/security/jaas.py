"""Reads `sasl.jaas.config`: the class of a login module, a flag, and options.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

The class only says which mechanism the options are for. Errors never show the text: it holds passwords.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s=;"']+)|([=;]))""", re.DOTALL
)
_SHAPE: Final = 'write it as LoginModule required name="value" ... ;'


@dataclass(frozen=True, slots=True, kw_only=True)
class JaasEntry:
    """One login module with its options, whose values `repr` does not show."""

    module: str
    options: Mapping[str, str] = field(repr=False)

    def users(self) -> dict[str, str]:
        """Returns the passwords of options such as user_alice="secret", by user name."""
        return {
            name.removeprefix("user_"): value
            for name, value in self.options.items()
            if name.startswith("user_")
        }


def parse_jaas(key: str, text: str) -> JaasEntry:
    """Returns the only entry of a setting; raises ValueError, without the text, if there is not exactly one."""
    entry, position = _entry(key, text)
    if text[position:].strip():
        raise ValueError(f"{key} must have exactly one login module; {_SHAPE}")
    return entry


def _entry(key: str, text: str) -> tuple[JaasEntry, int]:
    tokens, position = _tokens(key, text)
    if len(tokens) < 2 or tokens[1].lower() not in _FLAGS:
        raise ValueError(f"{key} must name a login module and then one of {', '.join(_FLAGS)}; {_SHAPE}")
    pairs = tokens[2:]
    if len(pairs) % 3 or any(equals != "=" for equals in pairs[1::3]):
        raise ValueError(f"{key} has an option that is not name=value; {_SHAPE}")
    return JaasEntry(module=tokens[0], options=dict(zip(pairs[::3], pairs[2::3], strict=True))), position


def _tokens(key: str, text: str) -> tuple[list[str], int]:
    """Returns the words up to the semicolon, and the position after it."""
    tokens: list[str] = []
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"{key} does not end with a semicolon, or a quotation mark is missing; {_SHAPE}")
        position = match.end()
        double, single, bare, mark = match.groups()
        if mark == ";":
            return tokens, position
        quoted = double if double is not None else single
        tokens.append(bare or mark or re.sub(r"\\(.)", r"\1", quoted or "", flags=re.DOTALL))
