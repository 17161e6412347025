"""Regular expressions of subscriptions. They are RE2's, whose time is linear for every expression, unlike Python's
own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from strandline.base.errors import ErrorCode, KafkaError


def _quiet(options: Any) -> Any:
    options.log_errors = False  # it would write to the standard error of the process
    return options


def matching_topics(regex: str, names: Iterable[str]) -> frozenset[str]:
    """Returns the topics whose whole name matches; raises INVALID_REGULAR_EXPRESSION."""
    import re2  # imported on first use: few groups subscribe this way

    try:
        compiled = re2.compile(regex, _quiet(re2.Options()))
    except re2.error as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex {regex!r} is not a valid regular expression: {error}.",
        ) from error
    return frozenset(name for name in names if compiled.fullmatch(name))
