"""A running pipeline is looked at and stopped from another process, and goes on where it was."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from strandline.client.sync import Admin, Producer
from strandline.pipeline.runtime.runner import Runner
from strandline.pipeline.runtime.stop_request import status, stop
from strandline.pipeline.spec.reader import load
from tests.json_shapes import checked_lines
from tests.spark.topics import rows_of

SPEC = """
pipeline: copy
brokers: {brokers}
checkpoint: checkpoint
trigger: every 1 seconds
sources:
  records:
    topic: {topic}
    max-records-per-batch: 50
    decode: {{format: text}}
sinks:
  - {{from: records, topic: {topic}-out, partitions: 2, value: value}}
"""
WAIT_SECONDS_MAX = 180  # Spark may begin the query several times on a busy machine


def command(action: str, path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as a user does in another shell."""
    line = [sys.executable, "-m", "strandline.cli.main", "pipeline", action, str(path), *more]
    return subprocess.run(line, capture_output=True, text=True, timeout=200, check=False)


def fill(bootstrap: str, topic: str, numbers: range) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, b"key-%d" % number)


def test_stop_ends_after_the_batch_and_the_next_run_goes_on(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=2)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(brokers=bootstrap, topic=topic))
    spec = load(path)
    fill(bootstrap, topic, range(120))
    ended: list[Any] = []
    runner = Runner(spec, spark=spark)
    thread = threading.Thread(target=lambda: ended.append(runner.run()))
    thread.start()
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not sum(runner.totals().get("topics", {}).get("written", {}).values()):
        assert thread.is_alive()
        assert time.monotonic() < deadline, "nothing was written"
        time.sleep(0.1)
    fill(bootstrap, topic, range(120, 240))
    shown = command("status", path, "--json").stdout
    assert checked_lines(shown, ["pipeline", "status", str(path)])[0]["state"] == "running"
    stopped = command("stop", path)
    assert stopped.returncode == 0, stopped.stderr
    thread.join(WAIT_SECONDS_MAX)
    assert [event["event"] for event in ended] == ["stopped"]
    assert status(spec)["state"] == "stopped"
    assert stop(spec, 0) is None
    # Whatever was left is done by the next run, which ends by itself.
    path.write_text(path.read_text().replace("every 1 seconds", "available-now"))
    Runner(load(path), spark=spark).run()
    counted = Counter(int(row.value) for row in rows_of(bootstrap, f"{topic}-out", 2))
    assert counted == Counter(range(240))
