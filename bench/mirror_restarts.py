"""Measures the restart of a mirror that was killed, between two Strandline brokers and between two of Apache Kafka:

    python -m bench.mirror_restarts [--rounds 5]

A round kills MirrorMaker 2 and our mirror, each on both, has records written meanwhile, starts it again, and waits
until all of them are copied. For MirrorMaker 2 the time before it connects to a broker is shown apart: its JVM starts,
and Kafka Connect scans the class path for plugins, twice. Results go to
docs/benchmarks/mirror-restarts.md and mirror-restarts.json.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import Consumer, Producer

from bench import machine
from bench.mirror_processes import OURS, THEIRS, create_topic, ends, start, wait_until, write_config
from bench.results import DIRECTORY, Results
from bench.tables import markdown, paragraph, with_spread
from strandline.testing.process import running_broker
from tests.oracle.apache_kafka import ApacheKafka
from tests.oracle.fetch import JAVA, KAFKA_JARS

PARTITIONS = 3
RECORDS = 300
STRANDLINE, KAFKA = "Strandline", "Apache Kafka"
# Connect commits its progress each minute, but a mirror that was killed at once has none to lose.
SETTLE_SECONDS = 6.0
_CONNECTS = re.compile(r"^(\d\d:\d\d:\d\d\.\d{3}) .*Kafka MirrorMaker starting with", re.MULTILINE)


@contextmanager
def clusters(kind: str, directory: Path) -> Iterator[tuple[str, str]]:
    """Runs two clusters of one node each, and yields their addresses."""
    with ExitStack() as stack:
        if kind == STRANDLINE:
            source, target = (stack.enter_context(running_broker()) for _ in range(2))
            yield source.bootstrap, target.bootstrap
            return
        java, jars = JAVA.locate(), KAFKA_JARS.locate()
        assert java is not None
        assert jars is not None
        nodes = [
            stack.enter_context(ApacheKafka(java=java, jars=jars, directory=directory / name))
            for name in ("source", "target")
        ]
        yield nodes[0].bootstrap, nodes[1].bootstrap


def write(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def measure_restart(mirror: str, source: str, target: str, directory: Path) -> dict[str, float]:
    topic = f"of-{directory.name}"
    copy, share = f"{directory.name}.{topic}", RECORDS // PARTITIONS
    create_topic(source, topic, PARTITIONS)
    write(source, topic)
    config = write_config(directory, source, target, topic)
    consumer = Consumer({"bootstrap.servers": target, "group.id": "bench", "log_level": 0})

    def is_copied(before: list[int]) -> bool:
        return all(
            end >= start + share for start, end in zip(before, ends(consumer, copy, PARTITIONS), strict=True)
        )

    log = directory / "log1"
    process = start(mirror, config, log)
    try:
        wait_until(lambda: is_copied([0] * PARTITIONS), "the first records were not copied", log)
        time.sleep(SETTLE_SECONDS)
        process.kill()
        process.wait()
        before = ends(consumer, copy, PARTITIONS)
        write(source, topic)
        log = directory / "log2"
        begun, begun_at = time.monotonic(), datetime.now().astimezone()
        process = start(mirror, config, log)
        wait_until(lambda: is_copied(before), "the records were not copied after the restart", log)
        figures = {"seconds": time.monotonic() - begun}
    finally:
        process.kill()
        process.wait()
        consumer.close()
    if mirror == THEIRS:
        figures["before_connecting"] = _seconds_before_connecting(log.read_text(errors="replace"), begun_at)
        figures["after_connecting"] = figures["seconds"] - figures["before_connecting"]
    return figures


def _seconds_before_connecting(log: str, begun_at: datetime) -> float:
    found = _CONNECTS.search(log)
    assert found is not None, "the mirror has connected: it has copied"
    at = datetime.strptime(found[1], "%H:%M:%S.%f").time()
    seconds = (datetime.combine(begun_at.date(), at, begun_at.tzinfo) - begun_at) % timedelta(days=1)
    return seconds.total_seconds()


def page(results: Results) -> str:
    run, facts = results.run, results.run["machine"]
    rows = []
    for mirror in (THEIRS, OURS):
        for kind in (STRANDLINE, KAFKA):
            peer = f"{mirror} on {kind}"
            figures = ("seconds", "before_connecting", "after_connecting")
            rows.append([peer, *(with_spread(results.spread("restart", peer, each)) for each in figures)])
    loads = [sample.figures["load"] for sample in results.samples]
    parts = [
        "# Restarts of a mirror\n",
        paragraph(
            f"Made by `python -m bench.mirror_restarts` on {run['date']}, {run['rounds']} rounds, alternating: a",
            f"mirror between two brokers is killed, {RECORDS} records are written, it is started again, and all",
            "of them are copied. Seconds; medians, in brackets the lowest and highest round.",
        ),
        markdown(["", "until all is copied", "before it connects", "after that"], rows),
        paragraph(
            "MirrorMaker 2 spends most of the time before it connects to any broker: its JVM starts, and Kafka Connect",
            "scans the class path for plugins, twice. That needs a processor, so it takes as long as the machine is",
            "busy, whatever the brokers are. A single run on each of them says nothing about the brokers.",
        ),
        paragraph(
            f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, Python",
            f"{facts['python']}, {facts['java']}, Kafka {facts['kafka']}. The load average was {min(loads):.1f} to",
            f"{max(loads):.1f}. Revision {run['revision']}. Every sample is in",
            "[mirror-restarts.json](mirror-restarts.json).",
        ),
    ]
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--page-only", action="store_true", help="make the page again from the stored results"
    )
    options = parser.parse_args()
    file = DIRECTORY / "mirror-restarts.json"
    if not options.page_only:
        java = JAVA.locate()
        if java is None:
            print(f"MirrorMaker 2 cannot run: {JAVA.why_missing}", file=sys.stderr)
            return 1
        with tempfile.TemporaryDirectory(prefix="bench-mirror-") as name:
            root = Path(name)
            machine.freeze_source(root)
            run = {
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "rounds": options.rounds,
                "revision": machine.revision(),
                "machine": machine.facts(root, java),
            }
            results = Results(run=run)
            with (
                clusters(STRANDLINE, root / "strandline") as ours,
                clusters(KAFKA, root / "kafka") as theirs,
            ):
                for number in range(options.rounds):
                    for mirror in (THEIRS, OURS):
                        for kind, pair in ((STRANDLINE, ours), (KAFKA, theirs)):
                            directory = root / f"r{number}{mirror.split()[0].lower()}"
                            directory = directory.with_name(directory.name + kind[0].lower())
                            directory.mkdir()
                            figures = measure_restart(mirror, *pair, directory)
                            figures["load"] = os.getloadavg()[0]
                            results.add("restart", f"{mirror} on {kind}", number, figures)
                            print(number, mirror, kind, figures, file=sys.stderr, flush=True)
        results.write(file)
    text = page(Results.read(file))
    (DIRECTORY / "mirror-restarts.md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
