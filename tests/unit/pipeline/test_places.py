"""Directories that a pipeline cannot write are found before it runs, with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.pipeline.runtime.places import check_places
from strandline.pipeline.runtime.runner import Runner
from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.yaml_lines import SpecError
from tests.unit.pipeline.specs import SPEC


def spec_with(directory: Path, checkpoint: str, parquet: str = "out") -> Path:
    lines = [
        f"checkpoint: {checkpoint}" if line.startswith("checkpoint:") else line for line in SPEC.splitlines()
    ]
    path = directory / "spec.yaml"
    path.write_text(
        "\n".join(lines).replace("topic: big-orders", f"parquet: {parquet}").replace("    key: id", "")
    )
    return path


def test_places_that_can_be_made_are_fine_and_nothing_is_left(tmp_path: Path) -> None:
    check_places(load(spec_with(tmp_path, "new/checkpoint", "new/out")))
    assert [each.name for each in tmp_path.iterdir()] == ["spec.yaml"]


def test_a_checkpoint_and_a_sink_that_cannot_be_made_are_told_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = spec_with(tmp_path, "/proc/nope/checkpoint", "file/below")
    for check in (check_places, lambda spec: Runner(spec).run()):
        with pytest.raises(SpecError) as raised:
            check(load(path))
        checkpoint, sink = raised.value.mistakes
        assert path.read_text().splitlines()[checkpoint.line - 1].startswith("checkpoint:")
        assert "checkpoint: /proc/nope/checkpoint cannot be written: /proc" in checkpoint.text
        assert "sink parquet: file/below cannot be written" in sink.text
        assert "is not a directory; choose a directory" in sink.text
        assert "Errno" not in str(raised.value)
