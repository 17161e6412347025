"""Checkpoints, tables and commit markers that 0.1.0 wrote: today's pipeline goes on where it was, exactly once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from strandline.client.sync import Admin, Producer
from strandline.testing import running_broker
from tests.spark.topics import rows_of
from tests.upgrade.old_revision import V0_1_0, source_of

pytest.importorskip("pyspark")

RUN_SECONDS_MAX = 600
pytestmark = [pytest.mark.xdist_group("spark-drivers"), pytest.mark.timeout(1300)]
SPEC = """
pipeline: upgraded
brokers: {brokers}
checkpoint: checkpoint
retry: {{backoff: [1 second]}}
spark:
  master: local[2]
  settings:
    spark.sql.shuffle.partitions: "2"
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
sources:
  orders:
    topic: orders
    decode: {{format: json, schema: {{id: bigint not null, at: timestamp}}}}
    rules:
      - {{name: small, check: id < 1000, retry: true}}
    watermark: {{column: at, delay: 1 hour}}
    dedupe: [id]
  names:
    topic: names
    decode: {{format: json, schema: {{id: bigint not null, name: string}}}}
sinks:
  - {{from: orders, topic: out, key: id, partitions: 2}}
  - {{from: names, table: table, key: id}}
  - {{from: names, parquet: parquet}}
"""


def put(bootstrap: str, topic: str, values: Iterable[Mapping[str, Any]]) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for value in values:
            producer.send(topic, json.dumps(value).encode(), str(value["id"]).encode())


def orders(ids: Iterable[int]) -> list[dict[str, Any]]:
    return [{"id": each, "at": "2026-01-01T00:00:00Z"} for each in ids]


def run(spec: Path, source: Path | None = None) -> None:
    """Runs the pipeline to its end, with the Strandline of a directory or with today's."""
    path = os.pathsep.join(filter(None, (str(source or ""), os.environ.get("PYTHONPATH"))))
    ran = subprocess.run(
        [sys.executable, "-m", "strandline.cli.main", "pipeline", "run", str(spec)],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
        cwd=spec.parent,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def forget_last_batch(checkpoint: Path) -> None:
    """As if the driver had died after its sinks had committed a batch and before Spark noted that."""
    for commits in checkpoint.glob("queries/*/commits"):
        last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)


def test_a_pipeline_of_0_1_0_goes_on_without_losing_or_repeating_a_row(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    with running_broker() as broker:
        bootstrap = broker.bootstrap
        with Admin(bootstrap_servers=bootstrap) as admin:
            for name in ("orders", "names"):
                admin.create_topic(name, partitions=2)
        spec = tmp_path / "spec.yaml"
        spec.write_text(SPEC.format(brokers=bootstrap))
        put(bootstrap, "orders", orders([*range(100), 5000]))
        put(bootstrap, "names", [{"id": each, "name": "old"} for each in range(20)])
        run(spec, source_of(V0_1_0))
        assert len(rows_of(bootstrap, "out", 2)) == 100
        assert rows_of(bootstrap, "orders.dlq", 2) == [], "it is to be tried again"
        forget_last_batch(tmp_path / "checkpoint")
        put(bootstrap, "orders", orders(range(50, 150)))
        put(bootstrap, "names", [{"id": each, "name": "new"} for each in range(10)])
        run(spec)
        written = Counter(json.loads(row.value)["id"] for row in rows_of(bootstrap, "out", 2))
        assert written == Counter(range(150))
        (dead,) = rows_of(bootstrap, "orders.dlq", 2)
        assert json.loads(dead.value)["id"] == 5000
    current = json.loads((tmp_path / "table" / "current.json").read_text())
    table = pq.read_table(tmp_path / "table" / current["version"]).to_pylist()
    assert Counter(row["name"] for row in table) == {"new": 10, "old": 10}
    assert pq.read_table(tmp_path / "parquet").num_rows == 30
