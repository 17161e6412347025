"""Our mirror beside MirrorMaker 2, alternating, between the same two Strandline brokers: `python -m bench.mirror`.

A round is, for each of the two: a first copy of a filled topic (MB/s and CPU of the mirror's process, from the first
copied record to the last, so that no start counts), then a steady stream (latency from a record's timestamp until a
consumer at the target has it, with read_committed). A table for docs/benchmarks/mirror.md is printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.measure import cpu_seconds
from strandline.testing.process import running_broker
from tests.oracle.fetch import JAVA, KAFKA_MIRROR_JARS

PARTITIONS = 6
RECORD_BYTES = 1000
OURS, THEIRS = "strandline mirror", "MirrorMaker 2"


def fill(bootstrap: str, topic: str, megabytes: int) -> int:
    """Writes the topic, in batches of 64 KiB with lz4; returns the number of records."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
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


def end_offsets(consumer: Consumer, topic: str) -> int:
    """The sum of the partitions' ends; 0 while there is no such topic."""
    if topic not in consumer.list_topics(timeout=30).topics:
        return 0
    return sum(
        consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=30)[1]
        for each in range(PARTITIONS)
    )


@contextmanager
def mirror(kind: str, source: str, target: str, topics: str, directory: Path) -> Iterator[int]:
    """Runs one of the two between the clusters; yields its process id."""
    # Aliases of their own, so that each round begins from nothing.
    alias = directory.name
    lines = {
        "clusters": f"{alias},target",
        f"{alias}.bootstrap.servers": source,
        "target.bootstrap.servers": target,
        f"{alias}->target.enabled": "true",
        f"{alias}->target.topics": topics,
        "replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "emit.heartbeats.enabled": "false",
        "refresh.topics.interval.seconds": "5",
        f"target->{alias}.enabled": "false",
    }
    config = directory / "mirror.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    command = [sys.executable, "-m", "strandline.cli.main", "mirror", "--config", str(config)]
    if kind == THEIRS:
        java, jars = JAVA.locate(), KAFKA_MIRROR_JARS.locate()
        assert java is not None
        # What connect-mirror-maker.sh passes.
        options = ["-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        command = [str(java), *options, "-cp", f"{jars}/*", "org.apache.kafka.connect.mirror.MirrorMaker"]
        command += [str(config), "--clusters", "target"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def measure_copy(kind: str, source: str, target: str, count: int, directory: Path) -> dict[str, float]:
    copy = f"{directory.name}.filled"
    consumer = Consumer({"bootstrap.servers": target, "group.id": "bench"})
    with mirror(kind, source, target, "filled", directory) as pid:
        begun = deadline = time.monotonic() + 120
        while not end_offsets(consumer, copy):
            assert time.monotonic() < deadline, (directory / "log").read_text(errors="replace")[-3000:]
            time.sleep(0.02)
        begun, used = time.monotonic(), cpu_seconds(pid)
        first = end_offsets(consumer, copy)
        while end_offsets(consumer, copy) < count:
            time.sleep(0.05)
        seconds = time.monotonic() - begun
        megabytes = (count - first) * RECORD_BYTES / 1e6
        used = cpu_seconds(pid) - used
    consumer.close()
    return {"mb_s": megabytes / seconds, "cpu_s_gb": used / (megabytes / 1000)}


def measure_latency(
    kind: str, source: str, target: str, directory: Path, *, rate: int, seconds: float
) -> dict[str, float]:
    """Latencies of a steady stream, without its first fifth."""
    topic = f"stream-{directory.name}"
    copy = f"{directory.name}.{topic}"
    admin = AdminClient({"bootstrap.servers": source})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    settings = {"group.id": "bench", "isolation.level": "read_committed", "fetch.wait.max.ms": 100}
    consumer = Consumer({"bootstrap.servers": target, **settings})
    producer = Producer({"bootstrap.servers": source, "linger.ms": 5})
    latencies: list[float] = []
    with mirror(kind, source, target, topic, directory):
        deadline = time.monotonic() + 120
        while not end_offsets(consumer, copy):
            assert time.monotonic() < deadline, (directory / "log").read_text(errors="replace")[-3000:]
            producer.produce(topic, b"warm", partition=0)
            producer.flush(10)
            time.sleep(0.5)
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
    kept = sorted(latencies[len(latencies) // 5 :])
    assert len(kept) > 100, f"{len(kept)} records of {kind} arrived"
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {OURS: [], THEIRS: []}
    with (
        tempfile.TemporaryDirectory(prefix="bench-mirror-") as root,
        running_broker() as source,
        running_broker() as target,
    ):
        count = fill(source.bootstrap, "filled", options.megabytes)
        for number in range(options.rounds):
            for kind in (OURS, THEIRS) if number % 2 == 0 else (THEIRS, OURS):
                figures: dict[str, float] = {}
                short = "ours" if kind == OURS else "theirs"
                for what in ("copy", "stream"):
                    directory = Path(root) / f"{short}{number}{what}"
                    directory.mkdir()
                    if what == "copy":
                        figures |= measure_copy(kind, source.bootstrap, target.bootstrap, count, directory)
                    else:
                        figures |= measure_latency(
                            kind,
                            source.bootstrap,
                            target.bootstrap,
                            directory,
                            rate=options.rate,
                            seconds=options.seconds,
                        )
                found[kind].append(figures)
                print(kind, {name: round(value, 1) for name, value in figures.items()}, flush=True)
    print(
        f"\n| median of {options.rounds} | MB/s | CPU s per GB | p50 ms | p99 ms |\n| --- | ---: | ---: | ---: | ---: |"
    )
    for kind, rows in found.items():
        medians = [
            statistics.median(row[name] for row in rows) for name in ("mb_s", "cpu_s_gb", "p50_ms", "p99_ms")
        ]
        print(f"| {kind} | " + " | ".join(f"{value:.1f}" for value in medians) + " |")


if __name__ == "__main__":
    main()
