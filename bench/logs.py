"""Measures logs over time beside Apache Kafka: compaction, and a restart after a kill.

    python -m bench.logs

Compaction: a log of uniformly chosen keys is written to each peer, the same bytes to both. Then the topic's policy is
set to compact, and the time is taken until the cleaner's checkpoint says that all but the active segment is clean.
Memory is that of the broker with its children, sampled.

Latency: the time until one small record is acknowledged, while the broker is idle and while it compacts logs.

Restart: every partition has records, and the process is killed without a clean stop and started again. The time is
taken until one partition acknowledges a record, and until all do.
"""

from __future__ import annotations

import argparse
import random
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bench import logs_page, machine, startup
from bench.measure import OthersMeter, cpu_seconds, memory, wait_until_quiet
from bench.peers import KAFKA, STRANDLINE, KafkaPeer, Peer, StrandlinePeer
from bench.results import Results
from strandline.base.ids import TopicPartition
from strandline.storage.checkpoints import parse_offsets
from strandline.storage.compaction.compiled import warm_up
from strandline.wire.record_batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
    Record,
    build_batch,
    encode_record,
    seal,
    varint,
)
from tests.oracle.fetch import JAVA, KAFKA_JARS
from tests.oracle.readiness import wait_until_writable

DIRECTORY = Path(__file__).parents[1] / "docs" / "benchmarks"
TOPIC = "compacted"
SETTINGS = {"log.cleaner.backoff.ms": "100"}
# The default, for the start after the kill. Until then a broker has an hour, so that a busy machine does not fence it.
KAFKA_SESSION = {"broker.session.timeout.ms": "9000"}
SEGMENT_BYTES = 128 * 1024 * 1024
RECORDS_PER_BATCH = 150
VALUE_BYTES = 80
IN_FLIGHT = 20
CLEAN_WAIT_S_MAX = 600.0
SAMPLE_S = 0.05
HOT_TOPIC = "hot"
LATENCY_TURNS = 4
LATENCY_PAUSE_S = 0.002
IDLE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of a run: the whole one, or a quick one that shows that everything works."""

    log_bytes: int = 1_000_000_000
    keys: int = 1_000_000
    partitions: int = 2000


def batches(size: Size) -> Iterator[bytes]:
    """Yields the same batches for every peer. They are built by hand from pieces, to make a million records a
    second."""
    chance = random.Random(20130708)
    values = [chance.randbytes(VALUE_BYTES) for _ in range(200)]
    key_of = b"key-%012d"
    probe = [encode_record(delta, 0, key_of % 0, values[0]) for delta in range(RECORDS_PER_BATCH)]
    at = probe[0].index(key_of % 0)
    heads = [record[: len(record) - len(probe[0]) + at] for record in probe]
    tails = [varint(len(value)) + value + b"\0" for value in values]
    key_size = varint(len(key_of % 0))
    assert heads[0].endswith(key_size)
    now_ms = int(time.time() * 1000)
    written = 0
    while written < size.log_bytes:
        keys = chance.choices(range(size.keys), k=RECORDS_PER_BATCH)
        body = b"".join(
            [head + key_of % key + tails[key % 200] for head, key in zip(heads, keys, strict=True)]
        )
        header = BatchHeader(
            base_offset=0,
            length=HEADER_BYTES - LOG_OVERHEAD_BYTES + len(body),
            leader_epoch=-1,
            magic=MAGIC,
            crc=0,
            attributes=0,
            last_offset_delta=RECORDS_PER_BATCH - 1,
            base_timestamp=now_ms,
            max_timestamp=now_ms,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            record_count=RECORDS_PER_BATCH,
        )
        yield seal(header, body)
        written += HEADER_BYTES + len(body)


def write_log(peer: Peer, size: Size, topic: str = TOPIC) -> None:
    host, _, port = peer.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        under_way = 0
        for batch in batches(size):
            connection.sendall(startup.produce_request(topic, batch, acks=1))
            under_way += 1
            if under_way == IN_FLIGHT:
                assert startup.is_acknowledged(connection)
                under_way -= 1
        for _ in range(under_way):
            assert startup.is_acknowledged(connection)


class PeakMemory:
    """The largest memory of a process with its children, sampled until `stop`."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stopped = threading.Event()
        self.pss_bytes = 0
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._stopped.wait(SAMPLE_S):
            total = 0
            for pid in family(self._pid):
                try:
                    total += memory(pid).pss_bytes
                except (OSError, KeyError):
                    continue  # it has just ended
            self.pss_bytes = max(self.pss_bytes, total)

    def stop(self) -> float:
        self._stopped.set()
        self._thread.join()
        return self.pss_bytes / 1e6


def family(pid: int) -> list[int]:
    """Returns a process and its children, of all its threads."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def _dirty_log(peer: Peer, size: Size, topic: str = TOPIC) -> int:
    """Writes a log that is not compacted yet, and returns the base offset of its active segment."""
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 0})
    configs = {"segment.bytes": str(SEGMENT_BYTES), "min.cleanable.dirty.ratio": "0.01"}
    admin.create_topics([NewTopic(topic, 1, 1, config=configs)])[topic].result(60)
    wait_until_writable(peer.bootstrap, topic)
    write_log(peer, size, topic)
    return max(int(path.stem) for path in (peer.data_dir / f"{topic}-0").glob("*.log"))


def _have_compacted(peer: Peer, topic: str = TOPIC) -> None:
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 0})
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(60)


def compaction(peer: Peer, size: Size) -> dict[str, float]:
    peer.start()
    try:
        active = _dirty_log(peer, size)
        directory = peer.data_dir / f"{TOPIC}-0"
        dirty = sum(path.stat().st_size for path in directory.glob("*.log") if int(path.stem) < active)
        others, cpu_s, peak = OthersMeter(peer.pid), cpu_seconds(peer.pid), PeakMemory(peer.pid)
        begun_s = time.perf_counter()
        _have_compacted(peer)
        _wait_for_checkpoint(peer.data_dir / "cleaner-offset-checkpoint", active)
        took_s = time.perf_counter() - begun_s
        used_s = cpu_seconds(peer.pid) - cpu_s
        return {
            "mb_per_s": dirty / 1e6 / took_s,
            "seconds": took_s,
            "peak_pss_mb": peak.stop(),
            "broker_cpu_s": used_s,
            "bytes_after": float(sum(path.stat().st_size for path in directory.glob("*.log"))),
            "others_cores": others.read(),
        }
    finally:
        peer.stop()
        shutil.rmtree(peer.data_dir, ignore_errors=True)


def _is_clean(path: Path, topic: str, offset: int) -> bool:
    return path.exists() and parse_offsets(path.read_bytes()).get(TopicPartition(topic, 0)) == offset


def latency(peer: Peer, size: Size) -> dict[str, float]:
    """Measures acknowledgements of one small record at a time, in turns while the broker is idle and while it compacts.

    They take turns so that other work on the machine disturbs both.
    """
    idle_s: list[float] = []
    compacting_s: list[float] = []
    part = replace(size, log_bytes=size.log_bytes // LATENCY_TURNS)
    peer.start()
    try:
        others = OthersMeter(peer.pid)
        ends = {f"turn-{n}": _dirty_log(peer, part, f"turn-{n}") for n in range(LATENCY_TURNS)}
        _dirty_log(peer, replace(size, log_bytes=1), HOT_TOPIC)
        checkpoint = peer.data_dir / "cleaner-offset-checkpoint"
        wait_until_quiet(peer.pid)
        for topic, end in ends.items():
            until_s = time.monotonic() + IDLE_S
            idle_s += _latencies(peer, lambda until_s=until_s: time.monotonic() > until_s)
            _have_compacted(peer, topic)
            compacting_s += _latencies(peer, lambda t=topic, end=end: _is_clean(checkpoint, t, end))
        figures = {"others_cores": others.read()}
        for name, found in (("idle", idle_s), ("compacting", compacting_s)):
            found.sort()
            figures[f"{name}_p50_ms"] = found[len(found) // 2] * 1000
            figures[f"{name}_p99_ms"] = found[len(found) * 99 // 100] * 1000
        figures["p99_ratio"] = figures["compacting_p99_ms"] / figures["idle_p99_ms"]
        return figures
    finally:
        peer.stop()
        shutil.rmtree(peer.data_dir, ignore_errors=True)


def _latencies(peer: Peer, is_over: Callable[[], bool]) -> list[float]:
    host, _, port = peer.bootstrap.rpartition(":")
    request = startup.produce_request(
        HOT_TOPIC, build_batch([Record(0, int(time.time() * 1000), b"k", b"x" * 100)]), acks=1
    )
    found = []
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not is_over():
            begun_s = time.perf_counter()
            connection.sendall(request)
            assert startup.is_acknowledged(connection)
            found.append(time.perf_counter() - begun_s)
            time.sleep(LATENCY_PAUSE_S)
    return found


def _wait_for_checkpoint(path: Path, offset: int) -> None:
    deadline = time.monotonic() + CLEAN_WAIT_S_MAX
    while not _is_clean(path, TOPIC, offset):
        if time.monotonic() > deadline:
            raise RuntimeError("the log was not compacted in time")
        time.sleep(0.02)


def restart(peer: Peer, size: Size) -> dict[str, float]:
    startup.prepare(peer, size.partitions)
    peer.start()
    startup.write_to_each(peer.bootstrap, size.partitions)
    peer.kill()
    if isinstance(peer, KafkaPeer):
        peer.change(KAFKA_SESSION)
    others = OthersMeter()
    try:
        with ThreadPoolExecutor(max_workers=1) as executor:
            begun_s = time.perf_counter()
            acknowledged = executor.submit(startup.produce_until_acknowledged, peer.bootstrap)
            peer.start()
            first_s = acknowledged.result() - begun_s
        startup.write_to_each(peer.bootstrap, size.partitions)
        return {
            "first_ack_s": first_s,
            "all_acks_s": time.perf_counter() - begun_s,
            "broker_cpu_s": cpu_seconds(peer.pid),
            "others_cores": others.read(),
        }
    finally:
        peer.stop()
        shutil.rmtree(peer.data_dir, ignore_errors=True)


SCENARIOS: dict[str, Callable[[Peer, Size], dict[str, float]]] = {
    "compaction": compaction,
    "latency": latency,
    "restart": restart,
}


def run(rounds: int, only: str, size: Size, output: Path, root: Path) -> None:
    java, jars = JAVA.locate(), KAFKA_JARS.locate()
    if java is None or jars is None:
        raise SystemExit("Apache Kafka is not here: run `python -m tests.oracle.fetch`")
    warm_up()
    results = Results(
        run={
            "rounds": rounds,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "revision": machine.revision(),
            "machine": machine.facts(root, java),
            "settings": SETTINGS,
            "log_bytes": size.log_bytes,
            "keys": size.keys,
            "partitions": size.partitions,
        }
    )
    for number in range(rounds):
        for name, measure in SCENARIOS.items():
            if only not in name:
                continue
            results.scenarios.setdefault(name, {})
            for kind in (STRANDLINE, KAFKA) if number % 2 == 0 else (KAFKA, STRANDLINE):
                home = root / f"{kind}-{name}-{number}"
                home.mkdir()
                if kind == STRANDLINE:
                    peer: Peer = StrandlinePeer(home, more=SETTINGS)
                else:
                    peer = KafkaPeer(home, java=java, jars=jars, more=SETTINGS)
                figures = measure(peer, size)
                results.add(name, kind, number, figures)
                print(f"{number + 1}/{rounds} {name:<12} {kind:<12} {figures}", flush=True)
            output.mkdir(parents=True, exist_ok=True)
            results.write(output / "logs.json")
            (output / "logs.md").write_text(logs_page.render(results))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.logs", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round with a tenth of the data")
    parser.add_argument("--only", default="", metavar="TEXT", help="only scenarios whose name has TEXT in it")
    parser.add_argument("--output", type=Path, default=DIRECTORY)
    options = parser.parse_args()
    size = Size(log_bytes=300_000_000, keys=100_000, partitions=200) if options.quick else Size()
    root = Path(tempfile.mkdtemp(prefix="strandline-bench-logs-"))
    try:
        run(1 if options.quick else options.rounds, options.only, size, options.output, root)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
