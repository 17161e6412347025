"""Measures `strandline consume --grep` beside kcat, and commands on many topics: wall time and CPU of each command.

python -m bench.command_line
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from strandline.client import NewTopic
from strandline.client.sync import Admin, Producer
from strandline.testing import running_broker
from tests.oracle.fetch import KCAT

RECORDS = 300_000
SIZE = 1000
NEEDLE_EVERY = 10_000
TOPICS = 10_000
PARTITIONS = 5_000
ROUNDS = 3
OURS = (sys.executable, "-m", "strandline")
# As on a machine of a user: what was imported once is not compiled again.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def timed(*command: str | Path) -> tuple[float, float, int]:
    """Returns the best wall time and CPU of several runs, and the number of lines that were printed."""
    best: tuple[float, float, int] | None = None
    for _ in range(ROUNDS):
        before, began = os.times(), time.perf_counter()
        ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=ENVIRONMENT)
        lines = ran.stdout.count(b"\n")
        wall, after = time.perf_counter() - began, os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        best = (wall, cpu, lines) if best is None or wall < best[0] else best
    assert best is not None
    return best


def show(name: str, figures: tuple[float, float, int]) -> None:
    wall, cpu, lines = figures
    print(f"| {name} | {wall:.2f} s | {cpu:.2f} s | {lines} |", flush=True)


def grep(bootstrap: str, kcat: Path) -> None:
    with Producer(bootstrap_servers=bootstrap, batch_size=262_144, linger_ms=20) as producer:
        filler = os.urandom(SIZE // 2).hex().encode()
        for number in range(RECORDS):
            text = b"needle" if number % NEEDLE_EVERY == 0 else b"straw."
            producer.send("haystack", text + filler[6:], b"%d" % number)
    where = ("-b", bootstrap)
    show("consume --grep needle", timed(*OURS, "consume", "haystack", "--exit", "--grep", "needle", *where))
    everything = f"'{kcat}' -C -q -e -o beginning -t haystack -b {bootstrap}"
    show("kcat -C \\| grep needle", timed("sh", "-c", f"{everything} | grep needle"))
    show("consume", timed(*OURS, "consume", "haystack", "--exit", *where))
    show("kcat -C", timed("sh", "-c", f"{everything} | cat"))


def many(bootstrap: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic("wide", PARTITIONS)], timeout=120)
        for first in range(0, TOPICS, 500):
            admin.create_topics([NewTopic(f"topic-{first + n:05}", 1) for n in range(500)], timeout=120)
    where = ("-b", bootstrap)
    show(f"topics list of {TOPICS:,}", timed(*OURS, "topics", "list", *where))
    show(f"topics describe of {PARTITIONS:,} partitions", timed(*OURS, "topics", "describe", "wide", *where))
    show("topics list --help", timed(*OURS, "topics", "list", "--help"))


def main() -> int:
    kcat = KCAT.locate()
    if kcat is None:
        print("kcat is missing: python -m tests.oracle.fetch")
        return 1
    print("| command | wall | CPU | lines |\n| --- | --- | --- | --- |")
    with running_broker(num_partitions=4) as broker:
        show("topics list of none", timed(*OURS, "topics", "list", "-b", broker.bootstrap))
        grep(broker.bootstrap, kcat)
    with running_broker() as broker:
        many(broker.bootstrap)
    return 0


if __name__ == "__main__":
    sys.exit(main())
