"""The sentence in an error of Spark that a person needs."""

from __future__ import annotations

import re
from typing import Any, Final

# The beginning of py4j's text, before Java's.
_CALLING: Final = re.compile(r"\AAn error occurred while calling [^\n]*\n: (?:[\w.$]+: )?")
# Spark's text to its callers when it has given up, as it does a minute after its master did not answer.
_ENDED: Final = "Cannot call methods on a stopped SparkContext"
_WHY_ENDED: Final = (
    "Spark has ended by itself, as when its master does not answer or ends the application: see whether the master is "
    "up and has the address that was given"
)


def reason_of(error: BaseException) -> str:
    """Returns the part of a streaming query's error that a person needs: of a Python error its last line, else the
    first."""
    text = _CALLING.sub("", str(error))
    if _ENDED in text:
        return _WHY_ENDED
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [line for line in lines if "Error: " in line and not line.startswith(("at ", "File "))]
    return (python or lines or [type(error).__name__])[-1 if python else 0]


def root_reason_of(error: BaseException) -> str:
    """Returns the same for the root cause, where Spark wraps one error into another."""
    return reason_of(root_cause(error))


def root_cause(error: BaseException) -> BaseException:
    """Returns the error that Spark has wrapped, perhaps several times; the error itself where it wraps none."""
    cause: Any = error
    while getattr(cause, "_cause", None) is not None:
        cause = cause._cause
    return cause  # type: ignore[no-any-return]
