"""The driver dies by `kill -9` in the middle of a copy from topic to topic, several times: every record is there once.

One kill here; with STRANDLINE_SOAK=1 three at chosen points, and at least fifty at random points, by a seed that
a failure prints.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.client.sync import Admin
from tests.properties.effort import in_soak
from tests.spark.driver import RUN_SECONDS_MAX
from tests.spark.exactly_once import PARTITIONS, assert_exact, fill

STEPS = ("begin", "write", "mark", "commit")
SOAK_KILLS = 50
# In a task of the first batch; then with rows and marker written but not committed; then committed, while Spark does
# not know it yet.
THREE_KILLS = ("task:33", "after:mark:1", "after:commit:2")


def run_driver(bootstrap: str, source: str, target: str, directory: Path, point: str) -> int:
    """Runs the driver, and returns its exit status: -9 if it was killed."""
    command = [sys.executable, "-m", "tests.spark.driver", bootstrap, source, target, str(directory), point]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS_MAX + 120, check=False)
    assert ran.returncode in (0, -signal.SIGKILL), f"at {point}:\n{ran.stderr[-3000:]}"
    return ran.returncode


@pytest.mark.timeout(3000)  # four JVMs one after the other, on a machine that may be busy
@pytest.mark.parametrize(
    ("points", "keyed"),
    [
        (("after:commit:1",), False),
        pytest.param(THREE_KILLS, False, marks=in_soak),
        pytest.param(THREE_KILLS, True, marks=in_soak),
    ],
    ids=["committed", "three", "three, keyed"],
)
def test_kills_lose_nothing_and_repeat_nothing(
    bootstrap: str, topic: str, admin: Admin, tmp_path: Path, points: tuple[str, ...], keyed: bool
) -> None:
    source, target = f"{topic}-in", f"{topic}-out"
    admin.create_topic(source, partitions=2)
    admin.create_topic(target, partitions=PARTITIONS)
    fill(bootstrap, source, range(180), keyed=keyed)
    for point in points:
        assert run_driver(bootstrap, source, target, tmp_path, point) == -signal.SIGKILL, point
    assert run_driver(bootstrap, source, target, tmp_path, "-") == 0
    assert_exact(bootstrap, target, 180, f"after {len(points)} kills")


@in_soak
@pytest.mark.timeout(7200)
def test_fifty_kills_lose_nothing_and_repeat_nothing(
    bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    seed = int(os.environ.get("STRANDLINE_SEED", "0")) or random.randrange(1 << 30)
    chance = random.Random(seed)
    source, target = f"{topic}-in", f"{topic}-out"
    admin.create_topic(source, partitions=2)
    admin.create_topic(target, partitions=PARTITIONS)
    kills, count = 0, 0
    while kills < SOAK_KILLS:
        fill(bootstrap, source, range(count, count + 120), keyed=chance.random() < 0.5)
        count += 120
        point = f"{chance.choice(('before', 'after'))}:{chance.choice(STEPS)}:{chance.randint(1, 2)}"
        if chance.random() < 0.25:
            point = f"task:{chance.randrange(count - 120, count)}"
        kills += run_driver(bootstrap, source, target, tmp_path, point) == -signal.SIGKILL
    assert run_driver(bootstrap, source, target, tmp_path, "-") == 0
    assert_exact(bootstrap, target, count, f"seed {seed}, {kills} kills")
