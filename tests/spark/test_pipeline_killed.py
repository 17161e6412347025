"""`pipeline run` dies by `kill -9` in a batch; run again, it has written every row of its sources once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from strandline.client.sync import Admin, Producer
from strandline.pipeline.runtime.stop_request import status
from strandline.pipeline.spec.reader import load
from tests.json_shapes import checked_lines
from tests.spark.topics import rows_of

SPEC = """
pipeline: mortal
brokers: {brokers}
checkpoint: checkpoint
dead-letters: {topic}.dlq
spark:
  master: local[2]
  settings: {{spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC}}
sources:
  live:
    topic: {topic}
    max-records-per-batch: 20
    decode: {{format: json, schema: {{id: bigint not null}}}}
  history:
    files: history/*.csv
    max-files-per-batch: 1
    decode: {{format: csv, schema: {{id: bigint not null}}}}
transforms:
  - name: both
    sql: SELECT id FROM live UNION ALL SELECT id FROM history
  - {{name: mortal, python: 'mortality:die_once', inputs: both}}
sinks:
  - {{from: mortal, topic: {topic}-out, partitions: 2}}
"""
# Looked for beside the spec. The second batch of the first run has its rows, letters and marker written when the
# process dies: all of it must be taken back.
MORTALITY = """
import os, signal
from pathlib import Path
from strandline.spark.sink.batch_transaction import BatchTransaction

FLAG = Path(__file__).with_name("died")
commit = BatchTransaction.commit
commits = []


def die_before_the_second(self):
    commits.append(self)
    if len(commits) == 2 and not FLAG.exists():
        FLAG.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    commit(self)


def die_once(rows):
    BatchTransaction.commit = die_before_the_second
    return rows
"""


def run(path: Path) -> int:
    arguments = ["pipeline", "run", str(path), "--json"]
    command = [sys.executable, "-m", "strandline.cli.main", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode in (0, -signal.SIGKILL), ran.stderr[-3000:]
    events = [event["event"] for event in checked_lines(ran.stdout, arguments)]
    assert "finished" in events or ran.returncode != 0
    return ran.returncode


@pytest.mark.timeout(1200)  # two JVMs one after the other, on a machine that may be busy
def test_a_run_that_was_killed_in_a_batch_is_finished_exactly_by_the_next(
    bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=2)
    (tmp_path / "history").mkdir()
    for number in range(2):
        ids = range(1000 + number * 10, 1010 + number * 10)
        lines = "".join(f"{each}\n" for each in ids)
        (tmp_path / "history" / f"{number}.csv").write_text(f"{lines}bad {number}\n")
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(40):
            producer.send(topic, b'{"id": %d}' % number if number % 20 else b"bad", b"%d" % number)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(brokers=bootstrap, topic=topic))
    (tmp_path / "mortality.py").write_text(MORTALITY)

    assert run(path) == -signal.SIGKILL
    assert status(load(path))["state"] == "died"
    before = len(rows_of(bootstrap, f"{topic}-out", 2))
    assert run(path) == 0
    out = Counter(json.loads(row.value)["id"] for row in rows_of(bootstrap, f"{topic}-out", 2))
    assert before < out.total()
    assert out == Counter([*(number for number in range(40) if number % 20), *range(1000, 1020)])
    letters = Counter(row.value for row in rows_of(bootstrap, f"{topic}.dlq", 2))
    assert letters == Counter({b"bad": 2, b"bad 0": 1, b"bad 1": 1})
