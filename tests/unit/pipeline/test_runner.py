"""How a run ends that does not go well: others learn why, and everything that was started is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline.pipeline.plan.spark_errors import root_reason_of
from strandline.pipeline.runtime import runner
from strandline.pipeline.runtime.stop_request import status
from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.spec import Spec
from strandline.pipeline.spec.yaml_lines import Mistake, SpecError
from tests.unit.pipeline.specs import SPEC


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    return load(path)


def test_a_run_that_is_refused_has_failed_and_says_why(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Spec) -> None:
        raise SpecError([Mistake(file=spec.file, line=2, text="brokers: nobody responds")])

    monkeypatch.setattr(runner, "check_topics", refuse)
    events: list[dict[str, Any]] = []
    with pytest.raises(SpecError):
        runner.run(spec, on_event=events.append)
    assert [event["event"] for event in events] == ["starting", "failed"]
    found = status(spec)
    assert found["state"] == "failed"
    assert found["error"] == f"{spec.file}:2: brokers: nobody responds"


def test_a_spark_that_has_given_up_is_told_with_where_to_look() -> None:
    said = (
        "An error occurred while calling o26.newSession.\n: java.lang.IllegalStateException: "
        "Cannot call methods on a stopped SparkContext.\nThis stopped SparkContext was created at:\n"
    )
    assert "check that the master is running" in root_reason_of(RuntimeError(said))


class Query:
    def __init__(self, name: str, stopped: list[str]) -> None:
        self.name = name
        self._stopped = stopped

    def stop(self) -> None:
        self._stopped.append(self.name)
        raise RuntimeError(f"{self.name} does not stop")


def test_queries_and_session_are_stopped_even_if_one_of_them_fails(
    spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []
    monkeypatch.setattr(runner, "check_topics", lambda _: None)
    monkeypatch.setattr(runner, "create_topics", lambda _: [])
    monkeypatch.setattr(runner, "session_of", lambda _: Query("spark", stopped))
    monkeypatch.setattr(runner, "start_queries", lambda *_: [Query("a", stopped), Query("b", stopped)])
    monkeypatch.setattr(runner.Runner, "totals", lambda _: {})
    monkeypatch.setattr(runner.Runner, "_watch", lambda *_: {"event": "finished"})
    with pytest.raises(RuntimeError):
        runner.run(spec)
    assert sorted(stopped) == ["a", "b", "spark"]
    assert status(spec)["state"] == "failed"
