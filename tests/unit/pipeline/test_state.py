"""The state in a checkpoint: one process at a time, and what others learn of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from strandline.pipeline.runtime.state import AlreadyRunningError, NotLocalError, StateDirectory
from strandline.pipeline.runtime.stop_request import status, stop
from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.spec import Spec
from tests.unit.pipeline.specs import SPEC


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    return load(path)


def test_a_checkpoint_belongs_to_one_run_at_a_time(spec: Spec) -> None:
    with StateDirectory(spec).locked():
        other = StateDirectory(spec)
        assert other.is_running()
        with pytest.raises(AlreadyRunningError), other.locked():
            pass
    assert not StateDirectory(spec).is_running()


def test_a_run_that_ended_without_a_word_has_died(spec: Spec) -> None:
    assert status(spec)["state"] == "never ran"
    directory = StateDirectory(spec)
    with directory.locked():
        directory.write({"pipeline": "orders", "state": "running", "pid": 1})
        assert status(spec)["state"] == "running"
    assert status(spec)["state"] == "died"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"state": 5}', b"\xff\xfe"])
def test_a_state_that_is_damaged_is_told_and_does_not_hide_whether_it_runs(
    spec: Spec, content: bytes
) -> None:
    directory = StateDirectory(spec)
    with directory.locked():
        (directory.path / "state.json").write_bytes(content)
        assert status(spec)["state"] == "running"
    found = status(spec)
    assert (found["pipeline"], found["state"]) == ("orders", "died")
    assert "state.json is damaged" in found["error"]


def test_a_stop_waits_for_the_end_and_is_forgotten_by_the_next_run(spec: Spec) -> None:
    assert stop(spec, 0) is None
    directory = StateDirectory(spec)
    with directory.locked():
        assert not directory.is_stop_requested()
        assert stop(spec, 0) is False
        assert directory.is_stop_requested()
    with directory.locked():
        assert not directory.is_stop_requested()


def test_a_checkpoint_elsewhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    spec = dataclasses.replace(
        load(path), checkpoint="s3a://bucket/orders"
    )  # a spec that was not read from a file
    with pytest.raises(NotLocalError):
        StateDirectory(spec)


@pytest.mark.parametrize("name", ["a#b", "a?b", "a b"])
def test_the_state_is_in_the_checkpoint_whatever_its_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("checkpoint: checkpoint", f'checkpoint: "{name}"'))
    assert StateDirectory(load(path)).path.parent == tmp_path / name
