"""A node under mixed load holds as much at the end as in the middle, and stops in order.

The soak runs for an hour (STRANDLINE_LONG_RUN_SECONDS says otherwise) with 5,000 topics, 1,000 groups and 500
connections a second; what is left for `make test` is the same for a few seconds, and looks only at what is countable.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.testing import BrokerProcess
from strandline.testing.clusters import wait_until
from tests.properties.effort import IS_SOAK
from tests.system.long_run.loads import Loads, prepare

GROWTH_MAX = 1.05
# Logs of topics that the loads made, a coordinator's among them; each third connection of a load would be more.
LEFT_MAX = 200
Sample = dict[str, float]
HELD = ("memory", "descriptors", "tasks", "timers")


@dataclass(frozen=True, kw_only=True)
class Size:
    seconds: float
    sampled_every_s: float
    topics: int
    groups: int
    connections_a_second: int


SHORT = Size(seconds=8, sampled_every_s=0.5, topics=100, groups=50, connections_a_second=100)
LONG = Size(
    seconds=float(os.environ.get("STRANDLINE_LONG_RUN_SECONDS", "3600")),
    sampled_every_s=10,
    topics=5000,
    groups=1000,
    connections_a_second=500,
)


class SampledBroker(BrokerProcess):
    """A broker that writes down what it holds."""

    def __init__(self, directory: Path, seconds: float) -> None:
        super().__init__(directory / "data", {"log.retention.check.interval.ms": "5000"})
        self._samples = directory / "samples.jsonl"
        self._seconds = seconds

    def _command(self, *arguments: str) -> list[str]:
        module = "tests.system.long_run.sampled_server"
        return [sys.executable, "-m", module, str(self._samples), str(self._seconds), *arguments]

    def samples(self) -> list[Sample]:
        return [json.loads(line) for line in self._samples.read_text().splitlines()]

    def next_sample(self) -> Sample:
        count = len(self.samples()) if self._samples.exists() else 0
        wait_until(lambda: self._samples.exists() and len(self.samples()) > count, 60)
        return self.samples()[-1]


def held(samples: list[Sample], first: float, last: float, what: str) -> float:
    chosen = [each[what] for each in samples if first <= each["at"] < last]
    assert chosen, f"no sample of {what}"
    return statistics.median(chosen)


@pytest.mark.timeout(LONG.seconds + 600)
def test_nothing_grows_under_mixed_load(tmp_path: Path) -> None:
    size = LONG if IS_SOAK else SHORT
    broker = SampledBroker(tmp_path, size.sampled_every_s)
    broker.start()
    try:
        prepare(broker.bootstrap, size.topics, size.groups)
        before = broker.next_sample()
        loads = Loads(broker.bootstrap, size.connections_a_second)
        began = time.monotonic()
        loads.start()
        while time.monotonic() < began + size.seconds and not loads.errors:
            time.sleep(1.0)
        ended = time.monotonic()
        loads.stop()
        print(json.dumps(loads.done))
        assert loads.errors == []
        assert len(loads.done) == len(loads.names), "each load got something done"
        if IS_SOAK:
            samples, quarter = broker.samples(), (ended - began) / 4
            figures = {
                what: (
                    held(samples, began + quarter, began + 2 * quarter, what),
                    held(samples, began + 3 * quarter, ended, what),
                )
                for what in HELD
            }
            print(json.dumps(figures))
            assert {what: (a, b) for what, (a, b) in figures.items() if b > GROWTH_MAX * a} == {}
        wait_until(lambda: is_back(broker.next_sample(), before), 90)
        stopping = time.monotonic()
        assert broker.stop() == 0
        print(f"stopped in {time.monotonic() - stopping:.1f} s")
        assert "clean=True" in broker.log_text
        assert "never awaited" not in broker.log_text
        assert "Traceback" not in broker.log_text
    finally:
        broker.kill()


def is_back(now: Sample, before: Sample) -> bool:
    """Returns True if all resources of the connections are free. The logs of the loads' own topics stay open."""
    return all(now[what] <= before[what] + LEFT_MAX for what in ("descriptors", "tasks", "timers"))
