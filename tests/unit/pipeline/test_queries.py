"""A query that Spark gave up because a Python process came late begins again; others do not."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.pipeline.runtime.progress import QueryProgress
from strandline.pipeline.runtime.queries import RunningQuery


class Failed:
    """A streaming query of Spark that has ended."""

    def __init__(self, error: str) -> None:
        self._error = error

    def exception(self) -> Exception:
        return RuntimeError(self._error)


def running(error: str) -> RunningQuery:
    query: Any = Failed(error)
    return RunningQuery(
        name="topics",
        query=query,
        start=lambda: query,
        progress=QueryProgress("topics", frozenset()),
        gate=None,
    )


def test_a_query_begins_again_when_a_python_process_came_late_but_not_for_ever() -> None:
    query = running("Job aborted: Python worker failed to connect back.")
    assert [query.restart() for _ in range(7)] == [True] * 5 + [False] * 2


@pytest.mark.parametrize("error", ["TakenOverError: another driver has taken over", "AnalysisException: no"])
def test_other_errors_end_a_query(error: str) -> None:
    assert not running(error).restart()
