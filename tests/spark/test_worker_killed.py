"""A worker of a real Spark cluster loses power in the middle of a batch: every record is there once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.client.sync import Admin
from strandline.testing.clusters import wait_until
from tests.properties.effort import in_soak
from tests.spark.driver import RUN_SECONDS_MAX
from tests.spark.exactly_once import PARTITIONS, assert_exact, fill
from tests.spark.standalone import standalone

REACHED_SECONDS_MAX = 180


@in_soak
@pytest.mark.timeout(1200)  # six JVMs on a machine that may be busy
@pytest.mark.parametrize(
    ("keyed", "held"),
    [
        (False, 33),  # where rows were read
        (True, 93),  # behind a shuffle, which the first batch has found out to be needed
    ],
)
def test_a_worker_that_dies_after_it_has_written_loses_nothing_and_repeats_nothing(
    bootstrap: str, topic: str, admin: Admin, tmp_path: Path, keyed: bool, held: int
) -> None:
    source, target = f"{topic}-in", f"{topic}-out"
    admin.create_topic(source, partitions=2)
    admin.create_topic(target, partitions=PARTITIONS)
    fill(bootstrap, source, range(120), keyed=keyed)
    flag = tmp_path / "held"
    with standalone(tmp_path, workers=2) as spark, (tmp_path / "driver.log").open("w") as log:
        command = [sys.executable, "-m", "tests.spark.driver", bootstrap, source, target, str(tmp_path)]
        driver = subprocess.Popen([*command, f"held:{held}", spark.url], stdout=log, stderr=log)
        try:
            # The rows of one task are in the topic and acknowledged, and the driver does not know it.
            wait_until(lambda: flag.exists() or driver.poll() is not None, REACHED_SECONDS_MAX)
            assert driver.poll() is None, (tmp_path / "driver.log").read_text()[-3000:]
            spark.worker_at(Path(flag.read_text())).kill()
            status = driver.wait(RUN_SECONDS_MAX)
        finally:
            if driver.poll() is None:
                driver.send_signal(signal.SIGKILL)
                driver.wait()
    assert status == 0, (tmp_path / "driver.log").read_text()[-3000:]
    assert_exact(bootstrap, target, 120, "after a worker's death")
