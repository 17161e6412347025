"""The shipped tour prints what its guide shows, on Apache Kafka: source and sinks work there as with Strandline."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.oracle.apache_kafka import ApacheKafka
from tests.spark.topics import rows_of

pytestmark = pytest.mark.oracle

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_tour.py"
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "spark.md"


def tour_of() -> ModuleType:
    spec = importlib.util.spec_from_file_location("spark_tour", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tour_prints_the_output_in_the_guide(
    spark: Any, apache: ApacheKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tour = tour_of()
    tour.tour(spark, apache.bootstrap, tmp_path / "checkpoint")
    printed = capsys.readouterr().out.splitlines()
    assert "batches: [400, 400, 200]" in printed
    assert "big orders: 200" in printed
    # Spark may tell the source of the last batch or not, so the group's line is not compared.
    shown = [line for line in printed if line and not line.startswith("the group sees")]
    guide = GUIDE.read_text()
    assert [line for line in shown if line not in guide] == []
    assert len(rows_of(apache.bootstrap, tour.BIG, 2)) == 200
