"""Finds the sentence in an error of Spark that a person needs."""

from __future__ import annotations

import re
from typing import Any, Final

# The beginning of py4j's text, before Java's.
_CALLING: Final = re.compile(r"\AAn error occurred while calling [^\n]*\n: (?:[\w.$]+: )?")
# Spark's text to its callers after it has given up, for example a minute after its master stopped responding.
_ENDED: Final = "Cannot call methods on a stopped SparkContext"
_WHY_ENDED: Final = (
    "Spark has ended by itself, as it does if its master does not respond or ends the application: check that the "
    "master is running and has the given address"
)


def reason_of(error: BaseException) -> str:
    """Returns the part of a streaming query's error that a person needs: the last line of a Python error, otherwise the
    first line."""
    text = _CALLING.sub("", str(error))
    if _ENDED in text:
        return _WHY_ENDED
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [line for line in lines if "Error: " in line and not line.startswith(("at ", "File "))]
    return (python or lines or [type(error).__name__])[-1 if python else 0]


def root_reason_of(error: BaseException) -> str:
    """Returns the same part of the root cause, if Spark has wrapped one error in another."""
    return reason_of(root_cause(error))


def root_cause(error: BaseException) -> BaseException:
    """Returns the error that Spark has wrapped, perhaps several times; the error itself if it is not wrapped."""
    cause: Any = error
    while getattr(cause, "_cause", None) is not None:
        cause = cause._cause
    return cause  # type: ignore[no-any-return]
