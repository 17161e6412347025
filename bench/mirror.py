"""Measures our mirror and MirrorMaker 2 in turn, between the same two Strandline brokers:

    python -m bench.mirror [--rounds 5] [--megabytes 400] [--rate 500] [--seconds 20]

A round is, for each of the two: a first copy of a filled topic (MB/s and CPU of the mirror's process, from the first
copied record to the last, so that no start counts), then a steady stream (latency from a record's timestamp until a
consumer at the target has it, with read_committed). Results go to docs/benchmarks/mirror.md and mirror.json.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from bench import machine
from bench.aims import Aim
from bench.measure import cpu_seconds
from bench.mirror_processes import OURS, THEIRS, StepFailedError, create_topic, ends, mirror, wait_until
from bench.results import DIRECTORY, Results
from bench.tables import markdown, paragraph, ratio_text, with_spread
from strandline.testing.process import running_broker
from tests.oracle.fetch import JAVA

PARTITIONS = 6
RECORD_BYTES = 1000
COPY, STREAM = "copy", "stream"
TRIES = 3
FIGURES = (
    (COPY, "mb_s", "first copy, MB/s", Aim(ratio=2.0, more_is_better=True)),
    (COPY, "cpu_s_gb", "CPU seconds for each GB", Aim(ratio=0.5, more_is_better=False)),
    (STREAM, "p50_ms", "latency, median, ms", None),
    (STREAM, "p99_ms", "latency, p99, ms", Aim(ratio=0.5, more_is_better=False)),
)


def fill(bootstrap: str, topic: str, megabytes: int) -> int:
    """Writes the topic, in batches of 64 KiB with lz4; returns the number of records."""
    create_topic(bootstrap, topic, PARTITIONS)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "batch.size": 65_536, "linger.ms": 20, "compression.type": "lz4"}
    )
    count = megabytes * 1_000_000 // RECORD_BYTES
    # Half of a record is random, so that compression finds something and not everything.
    values = [os.urandom(RECORD_BYTES // 2) + b"x" * (RECORD_BYTES // 2) for _ in range(1000)]
    for number in range(count):
        while True:
            try:
                producer.produce(topic, values[number % 1000], partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if not number % 1000:
            producer.poll(0)
    assert producer.flush(120) == 0
    return count


def measure_copy(kind: str, source: str, target: str, count: int, directory: Path) -> dict[str, float]:
    copy, log = f"{directory.name}.filled", directory / "log"
    consumer = Consumer({"bootstrap.servers": target, "group.id": "bench"})

    def end() -> int:
        return sum(ends(consumer, copy, PARTITIONS))

    with mirror(kind, source, target, "filled", directory) as process:
        wait_until(lambda: end() > 0, "no record was copied", log, 0.02)
        begun, used = time.monotonic(), cpu_seconds(process.pid)
        first = end()
        wait_until(lambda: end() >= count, "not everything was copied", log)
        seconds = time.monotonic() - begun
        megabytes = (count - first) * RECORD_BYTES / 1e6
        used = cpu_seconds(process.pid) - used
    consumer.close()
    if megabytes < count * RECORD_BYTES / 2e6:
        raise StepFailedError("more than half was copied before it was looked at: take more --megabytes")
    return {"mb_s": megabytes / seconds, "cpu_s_gb": used / (megabytes / 1000)}


def measure_stream(
    kind: str, source: str, target: str, directory: Path, *, rate: int, seconds: float
) -> dict[str, float]:
    """Returns the latencies of a steady stream, without its first fifth."""
    topic = f"stream-{directory.name}"
    copy, log = f"{directory.name}.{topic}", directory / "log"
    create_topic(source, topic, PARTITIONS)
    settings = {"group.id": "bench", "isolation.level": "read_committed", "fetch.wait.max.ms": 100}
    consumer = Consumer({"bootstrap.servers": target, **settings})
    producer = Producer({"bootstrap.servers": source, "linger.ms": 5})
    latencies: list[float] = []

    def is_warm() -> bool:
        producer.produce(topic, b"warm", partition=0)
        producer.flush(10)
        return sum(ends(consumer, copy, PARTITIONS)) > 0

    with mirror(kind, source, target, topic, directory):
        wait_until(is_warm, "no record was copied", log, 0.5)
        time.sleep(5)
        consumer.assign([TopicPartition(copy, each, OFFSET_END) for each in range(PARTITIONS)])
        consumer.poll(1)
        writing = threading.Thread(target=_stream, args=(producer, topic, rate, seconds))
        writing.start()
        until = time.monotonic() + seconds + 5
        while time.monotonic() < until:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None and message.value() != b"warm":
                latencies.append(time.time() * 1000 - message.timestamp()[1])
        writing.join()
    consumer.close()
    if len(latencies) < rate * seconds * 0.9:
        raise StepFailedError(f"{len(latencies)} of {rate * seconds:g} records arrived")
    kept = sorted(latencies[len(latencies) // 5 :])
    return {"p50_ms": kept[len(kept) // 2], "p99_ms": kept[len(kept) * 99 // 100]}


def _stream(producer: Producer, topic: str, rate: int, seconds: float) -> None:
    begun = time.monotonic()
    value = b"y" * RECORD_BYTES
    for number in range(int(rate * seconds)):
        producer.produce(topic, value, partition=number % PARTITIONS)
        producer.poll(0)
        ahead = begun + number / rate - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
    producer.flush(30)


def measure(results: Results, root: Path, source: str, target: str, options: argparse.Namespace) -> None:
    count = fill(source, "filled", options.megabytes)
    for number in range(options.rounds):
        for kind in (OURS, THEIRS) if number % 2 == 0 else (THEIRS, OURS):
            for step in (COPY, STREAM):
                figures = _step(step, kind, number, root, source, target, count, options)
                figures["load"] = os.getloadavg()[0]
                results.add(step, kind, number, figures)
                shown = ", ".join(f"{name} {value:.1f}" for name, value in figures.items())
                print(f"round {number + 1}, {step}, {kind}: {shown}", file=sys.stderr, flush=True)


def _step(
    step: str,
    kind: str,
    number: int,
    root: Path,
    source: str,
    target: str,
    count: int,
    options: argparse.Namespace,
) -> dict[str, float]:
    """Returns the figures of a step. A step that failed is made again, because a busy machine may starve it."""
    short = "ours" if kind == OURS else "theirs"
    for attempt in range(1, TRIES + 1):
        directory = root / f"{short}{number}{step}{attempt}"
        directory.mkdir()
        try:
            if step == COPY:
                return measure_copy(kind, source, target, count, directory)
            return measure_stream(kind, source, target, directory, rate=options.rate, seconds=options.seconds)
        except StepFailedError as error:
            if attempt == TRIES:
                raise
            print(f"{kind}, {step}: {error}; trying again", file=sys.stderr, flush=True)
    raise AssertionError("the loop returns or raises")


def page(results: Results) -> str:
    run, facts = results.run, results.run["machine"]
    rows = []
    for step, figure, label, aim in FIGURES:
        ratio = results.ratio(step, figure, OURS, THEIRS)
        assert ratio is not None, "every round has both"
        values = [with_spread(results.spread(step, kind, figure)) for kind in (OURS, THEIRS)]
        verdict = "" if aim is None else f"{aim}: {aim.verdict(ratio.median)}"
        rows.append([label, *values, ratio_text(ratio), verdict])
    loads = [sample.figures["load"] for sample in results.samples]
    parts = [
        "# The mirror beside MirrorMaker 2\n",
        paragraph(
            f"Made by `{run['command']}` on {run['date']}, {run['rounds']} rounds, alternating, between two Strandline",
            f"brokers. {PARTITIONS} partitions, records of {RECORD_BYTES} bytes, in batches of 64 KiB with lz4 for the",
            f"copy, {run['rate']} records a second for the latency; MirrorMaker 2 {facts['kafka']} with the heap of",
            "`connect-mirror-maker.sh`. Medians, in brackets the lowest and highest round; × is the median of the",
            "rounds' ratios.",
        ),
        markdown(["", OURS, THEIRS, "ratio", "aim"], rows),
        paragraph(
            "Latency is from a record's timestamp until a consumer with read_committed has it. A record waits for the",
            "commit of its transaction, which MirrorMaker 2 does not have: it may repeat records after a crash.",
            "A transaction is two round trips at the target: the batches, the offsets and the entry of the journal go",
            "together, then the commit. A record waits for at most one transaction before its own: on the simulator,",
            "where nobody waits for a processor, the p99 is less than twice the median.",
            "Batches are passed on as they are, where MirrorMaker 2 decompresses, decodes and encodes each record.",
        ),
        paragraph(
            f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, Python",
            f"{facts['python']}, {facts['java']}. Brokers, mirror and load share them; the load average was",
            f"{min(loads):.1f} to {max(loads):.1f}. Revision {run['revision']}. Every sample is in",
            "[mirror.json](mirror.json).",
        ),
    ]
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--page-only", action="store_true", help="make the page again from mirror.json")
    options = parser.parse_args()
    file = DIRECTORY / "mirror.json"
    if options.page_only:
        (DIRECTORY / "mirror.md").write_text(page(Results.read(file)))
        return 0
    java = JAVA.locate()
    if java is None:
        print(f"MirrorMaker 2 cannot run: {JAVA.why_missing}", file=sys.stderr)
        return 1
    with ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-mirror-"))
        machine.freeze_source(Path(root))
        source, target = (stack.enter_context(running_broker()) for _ in range(2))
        run: dict[str, Any] = {
            "command": "python -m bench.mirror",
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "rounds": options.rounds,
            "rate": options.rate,
            "seconds": options.seconds,
            "megabytes": options.megabytes,
            "revision": machine.revision(),
            "machine": machine.facts(Path(root), java),
        }
        results = Results(run=run)
        measure(results, Path(root), source.bootstrap, target.bootstrap, options)
    results.write(file)
    (DIRECTORY / "mirror.md").write_text(page(results))
    print(page(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
