"""The audit at fifty million records, in a JVM of one gigabyte: planted anomalies are found.

Runs with STRANDLINE_SOAK=1. STRANDLINE_AUDIT_RECORDS is another number of records.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.client.sync import Admin, Producer
from strandline.testing import running_broker

RECORDS = int(os.environ.get("STRANDLINE_AUDIT_RECORDS", "50000000"))
PARTITIONS = 8
CHUNK = 400_000
KEYS = 100_000
LOST, DUPLICATED = 12_345, 54_321

pytestmark = pytest.mark.skipif(
    os.environ.get("STRANDLINE_SOAK") != "1", reason="long: set STRANDLINE_SOAK=1"
)


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    with running_broker(data_dir=tmp_path / "broker") as broker:
        yield broker.bootstrap


def numbers_from(start: int) -> Iterator[range]:
    for first in range(start, RECORDS, CHUNK):
        yield range(first, min(first + CHUNK, RECORDS))


def produce(bootstrap: str, topic: str) -> None:
    """Every number once, in order, into partition number % 8; one of them twice."""
    import pyarrow as pa

    with Producer(bootstrap_servers=bootstrap) as producer:
        for numbers in numbers_from(0):
            values = pa.array(numbers, pa.int64()).cast(pa.string()).cast(pa.binary())
            places = pa.array([number % PARTITIONS for number in numbers], pa.int32())
            sent = producer.send_table(
                topic, pa.table({"value": values, "partition": places}), partition="partition"
            )
            producer.flush()
            sent.check()
        producer.send_and_wait(topic, b"%d" % DUPLICATED, partition=0)


def write_ledger(directory: Path, topic: str) -> None:
    """Writes the ledger of acknowledged records, with one that was never written, as if it were lost."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    directory.mkdir()
    for index, numbers in enumerate(numbers_from(0)):
        found = np.arange(numbers.start, numbers.stop, dtype=np.int64)
        ids = np.where(found == LOST, RECORDS + LOST, found)
        table = pa.table(
            {
                "id": ids,
                "topic": pa.array([topic] * len(found)).dictionary_encode(),
                "partition": (found % PARTITIONS).astype(np.int32),
                "offset": found // PARTITIONS,
                "key": found % KEYS,
                "sequence": found,
            }
        )
        pq.write_table(table, directory / f"{index:05}.parquet")


@pytest.mark.timeout(7200)
def test_fifty_million_records_in_a_gigabyte(bootstrap: str, topic: str, tmp_path: Path) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=PARTITIONS)
    produce(bootstrap, topic)
    write_ledger(tmp_path / "ledger", topic)
    command = [sys.executable, "-m", "strandline.cli.main", "pipeline", "audit", str(tmp_path / "ledger")]
    command += ["--bootstrap-server", bootstrap, "--json", "--spark", "spark.driver.memory=1g"]
    command += ["--spark", f"spark.local.dir={tmp_path}", "--master", "local[2]"]
    began = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    assert ran.returncode == 1, ran.stderr[-3000:]
    report = json.loads(ran.stdout)
    print(f"{RECORDS:,} records audited in {seconds:.0f} s: {RECORDS / seconds:,.0f}/s")
    assert (report["acknowledged"], report["read"]) == (RECORDS, RECORDS + 1)
    found = {name: report[name] for name in ("lost", "duplicated", "misplaced", "reordered", "unexpected")}
    assert found == {"lost": 1, "duplicated": 1, "misplaced": 0, "reordered": 0, "unexpected": 1}
