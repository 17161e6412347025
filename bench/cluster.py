"""Measures three nodes beside three of Apache Kafka: `python -m bench.cluster`, `--rounds N`, `--mb N`, `--partitions
N`.

Two clusters do not fit on a small machine at once, so they take turns: in each round one after the other is started,
measured and stopped, and the order alternates. Every figure is of RF=3, min ISR 2, acks=all.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench import cluster_page, machine, payloads
from bench.clients import Work
from bench.cluster_partitions import many_partitions
from bench.librdkafka import Librdkafka
from bench.measure import OthersMeter, cpu_seconds, memory
from bench.results import DIRECTORY, Results
from bench.trios import KafkaTrio, StrandlineTrio, Trio, until
from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.record_batch import Record, build_batch
from tests.compat.wire import WireClient
from tests.oracle.fetch import JAVA as JAVA_ORACLE
from tests.oracle.fetch import KAFKA_JARS

PARTITIONS = 6
RECORD_BYTES = 1000
LATENCY_WRITES = 1000
LATENCY_PAUSE_S = 0.002
WARM_UP_MB = 60


def create(trio: Trio, topic: str, partitions: int, leader: int | None = None) -> None:
    admin = AdminClient({"bootstrap.servers": trio.bootstrap, "log_level": 0})
    if leader is None:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=3)
    else:
        others = [node for node in (1, 2, 3) if node != leader]
        new = NewTopic(topic, num_partitions=partitions, replica_assignment=[[leader, *others]] * partitions)
    admin.create_topics([new])[topic].result(60)
    until(lambda: trio.is_in_sync(topic, partitions), f"{topic} in sync")


def throughput(trio: Trio, topic: str, megabytes: int, values: Path) -> dict[str, float]:
    create(trio, topic, PARTITIONS)
    work = Work(
        bootstrap=trio.bootstrap,
        topic=topic,
        partitions=PARTITIONS,
        record_count=megabytes * 1000,
        record_bytes=RECORD_BYTES,
        payloads=values,
        codec="none",
    )
    before_s = sum(map(cpu_seconds, trio.pids()))
    others = OthersMeter(*trio.pids())
    done = Librdkafka().produce(work)
    used_s = sum(map(cpu_seconds, trio.pids())) - before_s
    size = done.record_count * RECORD_BYTES
    return {
        "mb_per_s": size / 1e6 / done.elapsed_s,
        "cpu_s_per_gb": used_s / (megabytes / 1000),
        "others_cores": others.read(),
    }


def latency(trio: Trio, topic: str) -> dict[str, float]:
    """Measures one write at a time on one connection to the leader: the time that replication itself takes."""
    create(trio, topic, 1, leader=1)
    took_ms = []
    with WireClient(trio.address(1)) as client:
        for _ in range(LATENCY_WRITES):
            begun_s = time.perf_counter()
            write_once(client, topic)
            took_ms.append((time.perf_counter() - begun_s) * 1000)
            time.sleep(LATENCY_PAUSE_S)
    took_ms.sort()
    return {"p50_ms": took_ms[len(took_ms) // 2], "p99_ms": took_ms[len(took_ms) * 99 // 100]}


def write_once(client: WireClient, topic: str) -> None:
    batch = build_batch([Record(0, int(time.time() * 1000), None, bytes(RECORD_BYTES))])
    data = (PartitionProduceData(index=0, records=batch),)
    request = ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=(TopicProduceData(name=topic, partition_data=data),)
    )
    answer = client.call(request, 11)
    code = answer.responses[0].partition_responses[0].error_code  # type: ignore[attr-defined]
    assert code == 0, code


class Writer:
    """Writes with librdkafka's defaults except for quick retries, and notes when writes were acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 0,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        self._topic = topic
        self.sent: dict[int, float] = {}
        self.acknowledged: dict[int, float] = {}
        self.failed = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._ends.is_set():
            self.sent[number] = time.monotonic()
            self._producer.produce(self._topic, str(number), partition=0, on_delivery=self._told)
            number += 1
            self._producer.poll(0.001)
            time.sleep(0.001)

    def _told(self, error: object, message: Message) -> None:
        if error is None:
            self.acknowledged[int(message.value() or b"0")] = time.monotonic()
        else:
            self.failed += 1

    def first_after(self, moment: float) -> float | None:
        """Returns when the first write that was begun after a moment was acknowledged."""
        later = [at for number, at in list(self.acknowledged.items()) if self.sent[number] > moment]
        return min(later, default=None)

    def stop(self) -> None:
        self._ends.set()
        self._thread.join()
        self._producer.flush(60)


def failover(trio: Trio, topic: str, *, of_controller: bool) -> dict[str, float]:
    controller = trio.controller()
    dead = controller if of_controller else next(node for node in (1, 2, 3) if node != controller)
    survivors = [node for node in (1, 2, 3) if node != dead]
    create(trio, topic, 1, leader=dead)
    writer = Writer(trio.bootstrap, topic)
    try:
        until(lambda: len(writer.acknowledged) > 200, "writes")
        killed_wall_s, killed_s = time.time(), time.monotonic()
        trio.kill(dead)

        def knows(node: int) -> bool:
            found = trio.partitions(topic, node)
            return bool(found) and found[0].leader_id not in (dead, -1)

        elected_s = until(lambda: any(knows(node) for node in survivors), "a new leader")
        known_s = until(lambda: all(knows(node) for node in survivors), "the new leader on all nodes")
        until(lambda: writer.first_after(killed_s) is not None, "an acknowledged write")
        acknowledged_s = writer.first_after(killed_s)
        assert acknowledged_s is not None
    finally:
        writer.stop()
    assert writer.failed == 0, writer.failed
    figures = {
        "elected_ms": (elected_s - killed_s) * 1000,
        "known_ms": (known_s - killed_s) * 1000,
        "acknowledged_ms": (acknowledged_s - killed_s) * 1000,
    }
    detected_ms = detection_ms(trio, survivors, killed_wall_s)
    if detected_ms is not None:
        figures["detected_ms"] = detected_ms
    trio.start_again(dead)
    until(lambda: trio.is_in_sync(topic, 1), "the killed node is back")
    return figures


def detection_ms(trio: Trio, survivors: list[int], killed_wall_s: float) -> float | None:
    """Returns when the first survivor logged that the node is gone; only Strandline's log is read."""
    begun = datetime.fromtimestamp(killed_wall_s, UTC)
    found = []
    for node in survivors:
        for line in trio.log_text(node).splitlines():
            if "is gone" not in line or len(line) < 13 or line[12] != "Z":
                continue
            at = datetime.strptime(line[:12], "%H:%M:%S.%f").replace(
                year=begun.year, month=begun.month, day=begun.day, tzinfo=UTC
            )
            after_s = (at - begun).total_seconds()
            if after_s > -0.01:
                found.append(after_s * 1000)
    return min(found, default=None)


def start_up(trio: Trio, topic: str) -> dict[str, float]:
    """Measures the start of a cluster that was stopped cleanly, until every node shows every replica in sync."""
    begun_s = time.monotonic()
    trio.start()
    ready_s = time.monotonic()
    full_s = until(lambda: trio.is_in_sync(topic, PARTITIONS), "full in-sync sets")
    return {"ready_ms": (ready_s - begun_s) * 1000, "in_sync_ms": (full_s - begun_s) * 1000}


def measure(trio: Trio, number: int, megabytes: int, partitions: int, values: Path, results: Results) -> None:
    def add(scenario: str, figures: dict[str, float]) -> None:
        results.add(scenario, trio.name, number, figures)
        shown = {key: round(value, 2) for key, value in figures.items()}
        print(f"  round {number + 1} {scenario:<22} {trio.name:<11} {shown}", flush=True)

    trio.start()
    # Kafka compiles while it runs; both are shown every kind of work before they are measured.
    throughput(trio, "warm", WARM_UP_MB, values)
    latency(trio, "warm-latency")
    add("produce", throughput(trio, "produce", megabytes, values))
    add("latency", latency(trio, "latency"))
    used = [memory(pid) for pid in trio.pids()]
    add(
        "memory",
        {
            "pss_mb": sum(m.pss_bytes for m in used) / 1e6,
            "rss_mb": sum(m.rss_bytes for m in used) / 1e6,
        },
    )
    add("failover", failover(trio, "failover", of_controller=False))
    add("failover-controller", failover(trio, "failover-controller", of_controller=True))
    trio.stop()
    add("start", start_up(trio, "produce"))
    if partitions:
        add("many", many_partitions(trio, "many", partitions))
    trio.stop()


def run(rounds: int, megabytes: int, partitions: int, output: Path, root: Path, stack: ExitStack) -> None:
    java, jars = JAVA_ORACLE.locate(), KAFKA_JARS.locate()
    if java is None or jars is None:
        raise SystemExit("Apache Kafka is not here: run `python -m tests.oracle.fetch`")
    values = root / "values.txt"
    payloads.write_lines(values, payloads.incompressible(RECORD_BYTES))
    results = Results(
        run={
            "rounds": rounds,
            "megabytes": megabytes,
            "partitions": partitions,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "revision": machine.revision(),
            "machine": machine.facts(root, java),
        }
    )
    for number in range(rounds):
        trios: list[Trio] = [
            StrandlineTrio(root / f"strandline-{number}"),
            KafkaTrio(root / f"kafka-{number}", java=java, jars=jars),
        ]
        for trio in trios if number % 2 == 0 else trios[::-1]:
            stack.callback(trio.stop)
            # Once: with thousands of partitions three of Kafka's nodes need minutes for each step.
            measure(trio, number, megabytes, 0 if number else partitions, values, results)
        results.run["rounds_done"] = number + 1
        output.mkdir(parents=True, exist_ok=True)
        results.write(output / "cluster.json")
        (output / "cluster.md").write_text(cluster_page.render(results))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mb", type=int, default=200, help="what a round writes")
    parser.add_argument(
        "--partitions",
        type=int,
        default=2000,
        help="of the topic with many, in the first round; 0 leaves it out (default: 2000)",
    )
    parser.add_argument("--output", type=Path, default=DIRECTORY)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="strandline-bench-cluster-"))
    try:
        with ExitStack() as stack:
            run(options.rounds, options.mb, options.partitions, options.output, root, stack)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
