"""Delta, Iceberg and the console as sinks, in a `pipeline run` of its own, as packages belong to a session's start.

Each with the Spark that its newest package is for: Delta with 4.2, Iceberg with 4.1, which `test_other_versions` has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pyspark
import pytest

from strandline.client.sync import Admin, Producer
from strandline.pipeline.runtime.validation import validate
from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.yaml_lines import SpecError
from tests.oracle.fetch import DELTA_JARS, ICEBERG_JARS
from tests.oracle.require import require

DELTA = """
    spark.sql.extensions: io.delta.sql.DeltaSparkSessionExtension
    spark.sql.catalog.spark_catalog: org.apache.spark.sql.delta.catalog.DeltaCatalog
    spark.databricks.delta.snapshotPartitions: 1
"""
ICEBERG = """
    spark.sql.extensions: org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions
    spark.sql.catalog.lake: org.apache.iceberg.spark.SparkCatalog
    spark.sql.catalog.lake.type: hadoop
    spark.sql.catalog.lake.warehouse: {warehouse}
"""
SPEC = """
pipeline: lakes
brokers: {brokers}
checkpoint: checkpoint
spark:
  master: local[2]
  settings:
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
    spark.jars: {jars}
    {settings}
sources:
  orders:
    topic: {topic}
    decode: {{format: text}}
transforms:
  - name: rows
    sql: SELECT CAST(value AS INT) AS id, CAST(value AS INT) % 2 AS half FROM orders
sinks:
  - {{from: rows, {sink}, partition-by: half}}
  - {{from: rows, console: anything}}
"""
RECORDS = 20
SPARK = pyspark.__version__.rpartition(".")[0]
soak = pytest.mark.skipif(os.environ.get("STRANDLINE_SOAK") != "1", reason="long: set STRANDLINE_SOAK=1")


@pytest.fixture
def run_into(bootstrap: str, topic: str, admin: Admin, tmp_path: Path) -> Callable[..., str]:
    """Runs the pipeline over numbers, each time over more of them; what it printed."""

    def run(first: int, sink: str, jars: Path, settings: str) -> str:
        if first == 0:
            admin.create_topic(topic, partitions=2)
        with Producer(bootstrap_servers=bootstrap) as producer:
            for number in range(first, first + RECORDS):
                producer.send(topic, b"%d" % number, b"%d" % number)
        path = tmp_path / "spec.yaml"
        names = ",".join(map(str, sorted(jars.glob("*.jar"))))
        path.write_text(
            SPEC.format(brokers=bootstrap, topic=topic, jars=names, settings=settings.strip(), sink=sink)
        )
        command = [sys.executable, "-m", "strandline.cli.main", "pipeline", "run", str(path)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
        assert ran.returncode == 0, ran.stderr[-3000:]
        return ran.stdout

    return run


def delta_rows(table: Path) -> list[int]:
    """Returns the rows that the table's log lists, read without Delta."""
    files: set[str] = set()
    for path in sorted((table / "_delta_log").glob("*.json")):
        for action in map(json.loads, path.read_text().splitlines()):
            if "add" in action:
                files.add(unquote(action["add"]["path"]))
            if "remove" in action:
                files.discard(unquote(action["remove"]["path"]))
    return [number for name in files for number in pq.read_table(table / name)["id"].to_pylist()]


@pytest.mark.oracle
@pytest.mark.skipif(SPARK != "4.2", reason="the package is for Spark 4.2")
@soak
def test_delta_gets_every_record_once_and_the_console_shows_them(
    run_into: Callable[..., str], tmp_path: Path
) -> None:
    printed = run_into(0, "delta: delta", require(DELTA_JARS), DELTA)
    assert Counter(delta_rows(tmp_path / "delta")) == Counter(range(RECORDS))
    assert {each.name for each in (tmp_path / "delta").glob("half=*")} == {"half=0", "half=1"}
    shown = [line.split("|")[1].strip() for line in printed.splitlines() if line.count("|") == 3]
    assert Counter(int(each) for each in shown if each.isdigit()) == Counter(range(RECORDS))


@pytest.mark.oracle
@pytest.mark.skipif(SPARK != "4.1", reason="the package is for Spark 4.1")
@soak
def test_iceberg_gets_every_record_once_also_in_a_second_run(
    run_into: Callable[..., str], tmp_path: Path
) -> None:
    for first in (0, RECORDS):
        settings = ICEBERG.format(warehouse=tmp_path / "warehouse")
        run_into(first, "iceberg: lake.db.numbers", require(ICEBERG_JARS), settings)
    files = list((tmp_path / "warehouse" / "db" / "numbers" / "data").glob("half=*/*.parquet"))
    found = [number for path in files for number in pq.ParquetFile(path).read()["id"].to_pylist()]
    assert Counter(found) == Counter(range(2 * RECORDS))
    assert {path.parent.name for path in files} == {"half=0", "half=1"}


@pytest.mark.oracle
@pytest.mark.skipif(SPARK in ("4.0", "4.1"), reason="the package can be loaded")
def test_a_package_for_another_spark_is_an_error(spark: Any, tmp_path: Path) -> None:
    require(ICEBERG_JARS)
    path = tmp_path / "spec.yaml"
    path.write_text(
        SPEC.format(brokers="localhost:1", topic="any", jars=tmp_path, settings="", sink="iceberg: t")
    )
    with pytest.raises(SpecError, match=r"iceberg is for another version than Spark 4.*runtime-4\.\d_2\.13"):
        validate(load(path), with_brokers=False, spark=spark)
