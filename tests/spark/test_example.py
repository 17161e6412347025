"""The shipped example does what its guide shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_tour.py"
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "spark.md"


def test_the_tour_prints_what_the_guide_shows(
    spark: Any, bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("spark_tour", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.tour(spark, bootstrap, tmp_path)
    printed = capsys.readouterr().out.splitlines()
    assert "batches: [400, 400, 200]" in printed
    assert "big orders: 200" in printed
    # Spark may tell the source of the last batch or not, so the group's line is not compared.
    shown = [line for line in printed if line and not line.startswith("the group sees")]
    guide = GUIDE.read_text()
    assert [line for line in shown if line not in guide] == []
