"""The example of Spark Declarative Pipelines: Strandline's source works in Spark's own engine for tables.

It needs more than `strandline[spark]`: `test_other_versions` installs `pyspark[pipelines]` and runs this in the soak.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from strandline.client.sync import Producer
from strandline.spark.runtime.java import use_java
from strandline.testing import running_broker

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMAND = Path(sys.executable).with_name("spark-pipelines")
RUN_SECONDS_MAX = 500
RECORDS = 100
ORDER = '{"order_id": "o-%d", "customer_id": "c", "amount": "%d.50", "at": "2026-01-01T%02d:00:00Z"}'


def run(directory: Path, bootstrap: str) -> None:
    environment = {
        **os.environ,
        "BROKERS": bootstrap,
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": str(use_java()),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [COMMAND, "run", "--spec", directory / "spark-pipeline.yml"]
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
        cwd=directory,
        env=environment,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]


@pytest.mark.skipif(os.environ.get("STRANDLINE_SOAK") != "1", reason="long: set STRANDLINE_SOAK=1")
def test_declared_tables_are_made_from_a_topic(tmp_path: Path) -> None:
    pytest.importorskip("grpc_status", reason="needs pyspark[pipelines]")
    directory = tmp_path / "declarative"
    shutil.copytree(EXAMPLES / "declarative", directory)
    spec = directory / "spark-pipeline.yml"
    text = spec.read_text()
    assert "file:///tmp/strandline-declarative" in text
    spec.write_text(text.replace("file:///tmp/strandline-declarative", tmp_path.as_uri()))
    with running_broker() as broker:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(RECORDS):
                producer.send("orders", (ORDER % (number, number, number % 4)).encode())
            producer.send("orders", b"no order")
        run(directory, broker.bootstrap)
    orders = pq.read_table(directory / "spark-warehouse" / "orders")
    assert sorted(orders["order_id"].to_pylist()) == sorted(f"o-{number}" for number in range(RECORDS))
    revenue = pq.read_table(directory / "spark-warehouse" / "revenue")
    assert revenue.num_rows == 4
    assert pc.sum(revenue["revenue"]).as_py() == sum(number + Decimal("0.5") for number in range(RECORDS))
