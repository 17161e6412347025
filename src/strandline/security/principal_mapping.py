"""`ssl.principal.mapping.rules` (KIP-371): rules that turn a certificate's distinguished name into a user's name.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,DEFAULT

The first rule whose pattern matches the whole name is used: `$1` stands for the first group, `/L` and `/U` make the
result lower and upper case. DEFAULT leaves the name unchanged. A name that no rule matches is refused.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_RULE: Final = re.compile(
    r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)).*?(?=,\s*(?:RULE:|DEFAULT)|$)",
    re.DOTALL,
)
_SEPARATOR: Final = re.compile(r"\s*,?\s*")
_GROUP: Final = re.compile(r"\$(\d)")


class NoRuleMatches(ValueError):
    """No rule matches the name of a certificate."""


class MappingRule(NamedTuple):
    pattern: re.Pattern[str] | None  # None stands for DEFAULT
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        mapped = _GROUP.sub(lambda group: match.group(int(group[1])) or "", self.replacement)
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped


def parse_rules(text: str) -> tuple[MappingRule, ...]:
    """Returns the rules of the setting; raises ValueError for a rule that is malformed."""
    rules: list[MappingRule] = []
    position = 0
    text = text.strip()
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None or match.end() == position:
            raise ValueError(
                f"ssl.principal.mapping.rules: {text[position:]!r} is no rule; write DEFAULT or "
                "RULE:pattern/replacement/ with an L or a U at the end"
            )
        default, pattern, replacement, case = match.groups()
        rules.append(MappingRule(None) if default else _rule(pattern, replacement, case))
        position = _SEPARATOR.match(text, match.end()).end()  # type: ignore[union-attr]
    return tuple(rules) or (MappingRule(None),)


def _rule(pattern: str, replacement: str, case: str) -> MappingRule:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"ssl.principal.mapping.rules: {pattern!r} is no pattern: {error}") from None
    highest = max((int(number) for number in _GROUP.findall(replacement)), default=0)
    if highest > compiled.groups:
        raise ValueError(f"ssl.principal.mapping.rules: {pattern!r} has no group {highest}")
    return MappingRule(compiled, replacement, case)


def map_name(rules: tuple[MappingRule, ...], name: str) -> str:
    """Returns the user's name; raises NoRuleMatches if no rule matches."""
    for rule in rules:
        mapped = rule.apply(name)
        if mapped is not None:
            return mapped
    raise NoRuleMatches(f"no rule of ssl.principal.mapping.rules matches {name}")
