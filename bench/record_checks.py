"""Measures the cost of checking every record: `python -m bench.record_checks`, `--rounds N`.

Four brokers take the same records in turn, and each is paused while another is measured: Strandline with checks of
headers only, with the kernel, and without it; Apache Kafka. The CPU time of the broker's process is compared by round.
Then one client sends bombs, and another one measures how long a Produce of one record takes meanwhile. Writes
docs/benchmarks/record-checks.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from statistics import median, quantiles

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.measure import cpu_seconds
from bench.payloads import compressible, incompressible
from bench.peers import KafkaPeer, Peer, StrandlinePeer
from tests.batches import batch
from tests.compat.test_record_validation import produce as produce_batch
from tests.compat.wire import WireClient
from tests.hostile_batches import bomb_of_bytes, bomb_of_records
from tests.oracle.fetch import JAVA, KAFKA_JARS
from tests.oracle.require import require

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "record-checks.md"
HEADER, KERNEL, PYTHON, KAFKA = "header only", "kernel", "Python", "Apache Kafka"
# Codec, bytes of a record, records in one measurement.
WORKLOADS = (
    ("none", 1000, 150_000),
    ("none", 100, 2_000_000),
    ("lz4", 1000, 100_000),
    ("zstd", 1000, 100_000),
)
RECORDS = {100: incompressible(100), 1000: compressible(1000)}
PINGS = 400
VALIDATION = {"strandline.record.validation": "header"}
METHOD = (
    "In each round every broker took the same records from librdkafka (orders in JSON of 1000 bytes, random ones of "
    "100; 4 partitions, idempotent, linger.ms 5), one right after the other, and the order changed from round to "
    "round. Headers only, as 0.1.0 did, is `strandline.record.validation=header`. Seconds of the "
    "broker's CPU time for a million records, medians; ratios are medians of the rounds, with the lowest and the "
    "highest."
)
BOMBS = (
    "Produce requests of one record, 2 ms apart, on a connection of their own; milliseconds, half of them and 99 of "
    "100. The bombs are gzip batches of 300 MB of zeros and of 2,000,000 records, sent without a pause by another "
    "process. All of them share the cores."
)
PARTITIONS = 4


def without_kernel(home: Path) -> Path:
    """Makes a directory to import Strandline from, in which the kernel cannot be imported."""
    home.mkdir(parents=True)
    (home / "strandline").symlink_to(ROOT / "src" / "strandline")
    (home / "strandline_kernel.py").write_text("raise ImportError('left out for this measurement')\n")
    return home


def produce(peer: Peer, codec: str, records: list[bytes], count: int) -> float:
    """Returns the CPU seconds of the broker for a million records."""
    producer = Producer(
        {
            "bootstrap.servers": peer.bootstrap,
            "compression.type": codec,
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 10_000_000,
        }
    )
    for number in range(1000):
        producer.produce("t", records[number % len(records)], partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    before = cpu_seconds(peer.pid)
    for number in range(count):
        producer.produce("t", records[number % len(records)], partition=number % PARTITIONS)
    assert producer.flush(120) == 0
    return (cpu_seconds(peer.pid) - before) / count * 1e6


def send_bombs(bootstrap: str, bombs: list[bytes]) -> None:
    """Sends the bombs in turn, until the process is ended."""
    with WireClient(bootstrap) as client:
        while True:
            for bomb in bombs:
                produce_batch(client, "t", bomb)


def pings(peer: Peer, bombs: list[bytes]) -> tuple[float, float]:
    """Returns the median and the 99th percentile, in milliseconds, of Produce requests while another client sends
    bombs."""
    sender = multiprocessing.get_context("spawn").Process(target=send_bombs, args=(peer.bootstrap, bombs))
    if bombs:
        sender.start()
        time.sleep(1)  # it starts an interpreter
    took = []
    with WireClient(peer.bootstrap) as client:
        for _ in range(PINGS):
            begun = time.perf_counter()
            produce_batch(client, "t", batch(1, timestamp=int(time.time() * 1000)))
            took.append((time.perf_counter() - begun) * 1000)
            time.sleep(0.002)
    if bombs:
        assert sender.is_alive()
        sender.kill()
        sender.join()
    return median(took), quantiles(took, n=100)[98]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strandline-checks-")))
        source = ROOT / "src"
        peers: dict[str, Peer] = {
            HEADER: StrandlinePeer(home / "header", name=HEADER, source=source, more=VALIDATION),
            KERNEL: StrandlinePeer(home / "kernel", name=KERNEL, source=source),
            PYTHON: StrandlinePeer(home / "python", name=PYTHON, source=without_kernel(home / "shadow")),
            KAFKA: KafkaPeer(home / "kafka", java=require(JAVA), jars=require(KAFKA_JARS)),
        }
        for peer in peers.values():
            peer.start()
            stack.callback(peer.stop)
            admin = AdminClient({"bootstrap.servers": peer.bootstrap})
            for future in admin.create_topics([NewTopic("t", PARTITIONS, 1)]).values():
                future.result(60)
            # Before it is measured: a JVM compiles what it runs often.
            for codec, size, count in WORKLOADS:
                produce(peer, codec, RECORDS[size], count)
            peer.pause()
        figures = measure(peers, options.rounds)
        calm = {name: alone(peer, []) for name, peer in peers.items() if name != HEADER}
        bombs = [bomb_of_bytes(300), bomb_of_records(2_000_000, ascending=True)]
        stormy = {name: alone(peer, bombs) for name, peer in peers.items() if name != HEADER}
        for peer in peers.values():
            peer.resume()
    PAGE.write_text(page(figures, calm, stormy, options.rounds))


def alone(peer: Peer, bombs: list[bytes]) -> tuple[float, float]:
    peer.resume()
    found = pings(peer, bombs)
    peer.pause()
    return found


Figures = dict[tuple[str, int], dict[str, list[float]]]


def measure(peers: dict[str, Peer], rounds: int) -> Figures:
    figures: Figures = {}
    for number in range(rounds):
        names = list(peers) if number % 2 else list(reversed(peers))
        for codec, size, count in WORKLOADS:
            for name in names:
                peers[name].resume()
                figures.setdefault((codec, size), {}).setdefault(name, []).append(
                    produce(peers[name], codec, RECORDS[size], count)
                )
                peers[name].pause()
        print(f"round {number + 1} of {rounds}", flush=True)
    return figures


def page(
    figures: Figures,
    calm: dict[str, tuple[float, float]],
    stormy: dict[str, tuple[float, float]],
    rounds: int,
) -> str:
    names = (HEADER, KERNEL, PYTHON, KAFKA)
    lines = [
        "# The cost of checking every record",
        "",
        "<!-- Written by `python -m bench.record_checks`. -->",
        "",
        f"Measured on {date.today()} with {os.cpu_count()} cores, in {rounds} rounds. {METHOD}",
        "",
        "| codec, bytes | "
        + " | ".join(names)
        + " | kernel : header only | kernel : Kafka | Python : Kafka |",
        "| --- |" + " ---: |" * 7,
    ]
    for (codec, size), found in figures.items():
        cells = [f"{median(found[name]):.2f}" for name in names]
        cells += [ratio(found, *pair) for pair in ((KERNEL, HEADER), (KERNEL, KAFKA), (PYTHON, KAFKA))]
        lines.append(f"| {codec}, {size} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "## While another client sends bombs",
        "",
        f"{PINGS} {BOMBS}",
        "",
        "| broker | calm, p50 | calm, p99 | bombs, p50 | bombs, p99 |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name in calm:
        lines.append(
            f"| {name} | " + " | ".join(f"{each:.2f}" for each in (*calm[name], *stormy[name])) + " |"
        )
    return "\n".join(lines) + "\n"


def ratio(found: dict[str, list[float]], over: str, under: str) -> str:
    ratios = [a / b for a, b in zip(found[over], found[under], strict=True)]
    return f"**{median(ratios):.2f}×** ({min(ratios):.2f}–{max(ratios):.2f})"


if __name__ == "__main__":
    main()
