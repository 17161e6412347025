"""Shapes of JSON that several actions of `strandline pipeline` print."""

from __future__ import annotations

from typing import Any, Final

_COUNTS: Final = {"<topic>": "number"}
_BATCH: Final[dict[str, Any]] = {
    "records": _COUNTS,
    "written": _COUNTS,
    "retried": _COUNTS,
    "dead_letters": _COUNTS,
    "records_per_second": "number",
    "lag": "number?",
}
# The totals of a query since the pipeline began.
TOTALS_SHAPE: Final = {**_BATCH, "batches": "number", "last_batch": "number?", "last_seconds": "number?"}
# `event` is starting, topic created, started, batch, restarted, stopping, stopped, finished or failed; the fields after
# it depend on that.
EVENT_SHAPE: Final[dict[str, Any]] = {
    "at": "text",
    "pipeline": "text",
    "event": "text",
    "topic?": "text",
    "query?": "text",
    "error?": "text",
    "batch?": "number",
    "seconds?": "number",
    **{f"{key}?": value for key, value in _BATCH.items()},
    "queries?": "any",
}
