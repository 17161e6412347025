"""Delta and the console as sinks, in a `pipeline run` of its own, as Delta belongs to a session's start; and Iceberg,
which has no package for this Spark yet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest

from strandline.client.sync import Admin, Producer
from strandline.pipeline.document import SpecError
from strandline.pipeline.reading import load
from strandline.pipeline.validating import validate
from tests.oracle.fetch import DELTA_JARS, ICEBERG_JARS
from tests.oracle.require import require

SPEC = """
pipeline: lakes
brokers: {brokers}
checkpoint: checkpoint
spark:
  master: local[2]
  settings:
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
    spark.databricks.delta.snapshotPartitions: 1
    spark.jars: {jars}
    spark.sql.extensions: io.delta.sql.DeltaSparkSessionExtension
    spark.sql.catalog.spark_catalog: org.apache.spark.sql.delta.catalog.DeltaCatalog
sources:
  orders:
    topic: {topic}
    decode: {{format: text}}
transforms:
  - name: rows
    sql: SELECT CAST(value AS INT) AS id, CAST(value AS INT) % 2 AS half FROM orders
sinks:
  - {{from: rows, delta: delta, partition-by: half}}
  - {{from: rows, console: anything}}
"""
RECORDS = 20


def delta_rows(table: Path) -> list[int]:
    """What the table's log says is there, read without Delta."""
    files: set[str] = set()
    for path in sorted((table / "_delta_log").glob("*.json")):
        for action in map(json.loads, path.read_text().splitlines()):
            if "add" in action:
                files.add(unquote(action["add"]["path"]))
            if "remove" in action:
                files.discard(unquote(action["remove"]["path"]))
    return [number for name in files for number in pq.read_table(table / name)["id"].to_pylist()]


@pytest.mark.oracle
@pytest.mark.skipif(os.environ.get("STRANDLINE_SOAK") != "1", reason="long: set STRANDLINE_SOAK=1")
def test_delta_gets_every_record_once_and_the_console_shows_them(
    bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    jars = sorted(require(DELTA_JARS).glob("*.jar"))
    admin.create_topic(topic, partitions=2)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(RECORDS):
            producer.send(topic, b"%d" % number, b"%d" % number)
    path = tmp_path / "spec.yaml"
    names = ",".join(map(str, jars))
    path.write_text(SPEC.format(brokers=bootstrap, topic=topic, jars=names))
    command = [sys.executable, "-m", "strandline.cli.main", "pipeline", "run", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert Counter(delta_rows(tmp_path / "delta")) == Counter(range(RECORDS))
    assert {each.name for each in (tmp_path / "delta").glob("half=*")} == {"half=0", "half=1"}
    shown = [line.split("|")[1].strip() for line in ran.stdout.splitlines() if line.count("|") == 3]
    assert Counter(int(each) for each in shown if each.isdigit()) == Counter(range(RECORDS))


@pytest.mark.oracle
def test_a_package_for_another_spark_is_told_of(spark: Any, tmp_path: Path) -> None:
    require(ICEBERG_JARS)
    path = tmp_path / "spec.yaml"
    path.write_text(
        SPEC.format(brokers="localhost:1", topic="any", jars="any").replace("delta: delta", "iceberg: t")
    )
    with pytest.raises(SpecError, match=r"iceberg is for another version than Spark 4.*runtime-4\.\d_2\.13"):
        validate(load(path), with_brokers=False, spark=spark)
