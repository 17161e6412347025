"""How the cost of five operations grows with the size of what they work on: `python -m bench.complexity`

Kafka's books say O(1), O(log n) or O(n). Each operation is measured at 1, 10, 100 and 1,000 segments, partitions or
members, and the page sets the measured growth beside the claim.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench import machine
from bench.complexity_page import render
from bench.group_members import ClassicMember
from bench.groups import SETTINGS
from bench.results import DIRECTORY, Results
from strandline.client.sync import Admin
from strandline.controller import brokers
from strandline.node.disk import RealDisk
from strandline.storage.log import Log
from strandline.testing import running_broker
from tests.batches import batch
from tests.record_times import recent_ms
from tests.unit.controller.plans import Cluster, topic
from tests.unit.storage.logs import Store, append

FILE = "complexity.json"
NOW_MS = recent_ms()
SIZES = (1, 10, 100, 1000)
STEPS = 2000  # of what takes microseconds
REBALANCES = 5
RECORD_BYTES = 1000
BATCHES_PER_SEGMENT = 64
SEGMENT_BYTES = BATCHES_PER_SEGMENT * 1100
_US = 1e6
_GROUP_SECONDS_MAX = 120.0


def built_log(directory: Path, segments: int) -> Log:
    """Returns a log of so many segments, which later appends do not roll. Its times grow with its offsets, as those of
    a producer do."""
    small = Store(directory, RealDisk(), segment_bytes=SEGMENT_BYTES)
    log = small.open()
    while len(log.segments) < segments or log.active.size < SEGMENT_BYTES // 2:
        append(log, batch(size=RECORD_BYTES, timestamp=NOW_MS + log.log_end_offset), now_ms=NOW_MS)
    large = Store(directory, RealDisk(), segment_bytes=1 << 30)
    return large.open(clean=True, recovery_point=log.log_end_offset)


def microseconds(step: Callable[[int], object], arguments: list[int]) -> float:
    """Returns the median time of the steps."""
    for each in arguments[: len(arguments) // 10]:  # opens files, fills caches
        step(each)
    gc.collect()
    gc.disable()
    try:
        took = []
        for each in arguments:
            begun_s = time.perf_counter()
            step(each)
            took.append(time.perf_counter() - begun_s)
    finally:
        gc.enable()
    return median(took) * _US


def measure_log(directory: Path, segments: int, seed: int) -> dict[str, float]:
    log = built_log(directory, segments)
    end = log.log_end_offset
    offsets = random.Random(seed).choices(range(end), k=STEPS)

    def read(offset: int) -> None:
        found = log.read(offset, end, 1, whole_first_batch=True)
        assert found is not None
        assert found.file.read_at(found.position, found.size)

    def by_time(offset: int) -> None:
        found = log.offset_by_time(NOW_MS + offset, 0)
        assert found is not None
        assert found[1] == offset

    figures = {"read": microseconds(read, offsets), "by_time": microseconds(by_time, offsets)}
    data = batch(size=RECORD_BYTES, timestamp=NOW_MS + end)
    figures["append"] = microseconds(lambda _: append(log, data, now_ms=NOW_MS), offsets)
    assert log.log_end_offset > end
    return figures


def measure_elections(partitions: int) -> dict[str, float]:
    """Fences a broker that leads all partitions, so that the controller plans and applies a new leader for each."""
    took = []
    for _ in range(max(3, 300 // partitions)):
        cluster = Cluster(None, None, None)
        cluster.create(topic(assignments=dict.fromkeys(range(partitions), (1, 2, 3))))
        begun_s = time.perf_counter()
        cluster.commit(brokers.plan_fence(cluster.image, 1, cluster.rules))
        took.append(time.perf_counter() - begun_s)
        assert {each.leader for each in cluster.image.topics["t"].partitions.values()} == {2}
    whole = median(took) * _US
    return {"elections": whole, "election": whole / partitions}


async def measure_rebalance(bootstrap: str, group: str, members: int) -> dict[str, float]:
    """Measures the time from the leader's request until the last member has its assignment in the next generation."""
    everyone = [ClassicMember(bootstrap, group, "t", members) for _ in range(members)]
    await asyncio.gather(*(each.connect() for each in everyone))
    await asyncio.gather(*(each.join() for each in everyone))
    took = []
    for _ in range(REBALANCES):
        await settle(everyone)
        leader = next(each for each in everyone if each.leads)
        begun_s = time.perf_counter()
        await asyncio.gather(leader.join(), *(each.follow() for each in everyone if each is not leader))
        took.append(time.perf_counter() - begun_s)
    await settle(everyone)
    assert sorted(part for each in everyone for part in each.held) == list(range(members))
    await asyncio.gather(*(each.leave() for each in everyone))
    whole = median(took) * _US
    return {"rebalance": whole, "rebalance_member": whole / members}


async def settle(members: list[ClassicMember]) -> None:
    """Waits until no member has a rebalance before it."""
    async with asyncio.timeout(_GROUP_SECONDS_MAX):
        while True:
            settled = await asyncio.gather(*(each.is_settled() for each in members))
            if all(settled):
                return
            late = [each for each, is_settled in zip(members, settled, strict=True) if not is_settled]
            await asyncio.gather(*(each.join() for each in late))


def measure_groups(results: Results, round_number: int) -> None:
    # All members are in the first generation, and only that one waits.
    settings = {key.replace(".", "_"): value for key, value in SETTINGS.items()}
    settings["group_initial_rebalance_delay_ms"] = "1000"
    for members in SIZES:
        with running_broker(**settings) as broker:
            with Admin(bootstrap_servers=broker.bootstrap) as admin:
                admin.create_topic("t", partitions=members)
            figures = asyncio.run(measure_rebalance(broker.bootstrap, f"g{members}", members))
        note(results, round_number, members, figures)


def note(results: Results, round_number: int, size: int, figures: dict[str, float]) -> None:
    results.add(str(size), "strandline", round_number, {**figures, "load": os.getloadavg()[0]})
    print(round_number, size, figures, file=sys.stderr, flush=True)


def measure(rounds: int) -> Results:
    run = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "rounds": rounds,
        "sizes": SIZES,
        "revision": machine.revision(),
        "record_bytes": RECORD_BYTES,
        "batches_per_segment": BATCHES_PER_SEGMENT,
    }
    results = Results(run=run)
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="bench-complexity-") as name:
            run["machine"] = machine.plain_facts(Path(name))
            for size in SIZES:
                note(results, number, size, measure_log(Path(name) / str(size), size, number))
        for size in SIZES:
            note(results, number, size, measure_elections(size))
        measure_groups(results, number)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--page-only", action="store_true", help="make the page again from the stored results"
    )
    options = parser.parse_args()
    if not options.page_only:
        measure(options.rounds).write(DIRECTORY / FILE)
    text = render(Results.read(DIRECTORY / FILE))
    (DIRECTORY / "complexity.md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
