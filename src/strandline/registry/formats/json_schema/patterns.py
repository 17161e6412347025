"""Regular expressions of schemas: checked when a schema is registered, matched in linear time or not at all."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import re2

from strandline.registry.formats.parsed import InvalidSchema

_LENGTH_MAX: Final = 10_000


def check_pattern(pattern: str) -> None:
    """Raises InvalidSchema if a text is not a pattern. A pattern that needs a backtracking engine is accepted."""
    if len(pattern) > _LENGTH_MAX:
        raise InvalidSchema(f"a pattern has more than {_LENGTH_MAX} characters")
    if _compiled(pattern) is not None:
        return
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidSchema(f"the pattern {pattern[:100]!r} is no regular expression: {error}") from None


def matches(pattern: str, name: str) -> bool:
    """True if the pattern is found in a name. A pattern that needs backtracking is not tried, because that could take
    for ever."""
    compiled = _compiled(pattern)
    return compiled is not None and compiled.search(name) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None
