"""Strandline's client beside confluent-kafka, aiokafka and kafka-python on one Strandline broker, in one run.

    python -m bench.client_run [--rounds N] [--bytes 100,1000,10000] [--only throughput,round-trip,linger,memory]
                               [--scale F] [--again] [--dry]

Writes docs/benchmarks/client.json and client.md. `--dry` only prints the page; `--scale 0.1` writes a tenth of the
records, for trials. `--again` keeps the figures in client.json and measures only the named parts again, each with its
own rounds; the page says the revision of each part. The clients alternate within a round, so that other work on the
machine meets all of them.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import client_page, client_peers, client_quality, machine, payloads, topics
from bench.client_peers import COLUMNAR, CONFLUENT, STRANDLINE
from bench.clients import Work
from bench.machine import prime_page_cache
from bench.measure import OthersMeter
from bench.peers import StrandlinePeer
from bench.results import DIRECTORY, Results
from tests.oracle.fetch import JAVA
from tests.oracle.require import require

# A second or more for each client at the speeds that were seen: those that are fast get more to do.
_RECORDS = {100: 300_000, 1000: 60_000, 10_000: 12_000}
_RECORDS_FAST = {100: 1_500_000, 1000: 300_000, 10_000: 36_000}
_FAST = (STRANDLINE, COLUMNAR, CONFLUENT)
_PARTITIONS = 6
LINGERS_MS = (0, 5, 10, 50)
_LINGER_RATE_PER_S = 10_000
_LINGER_RECORDS = 200_000
_MIB = 1024 * 1024
_MEMORY = (("produce-memory", 8 * _MIB), ("produce-memory", 32 * _MIB), ("consume-memory", 16 * _MIB))
_MEMORY_RECORDS = 150_000


class Run:
    def __init__(self, peer: StrandlinePeer, scratch: Path, options: argparse.Namespace) -> None:
        self._peer = peer
        self._scratch = scratch
        self._rounds: int = options.rounds
        self._scale: float = options.scale
        facts = {
            "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
            "rounds": options.rounds,
            "revision": machine.revision(),
            "machine": machine.facts(scratch, require(JAVA)),
            "compilation_s": 0.0,
        }
        self._part = {"rounds": options.rounds, "revision": facts["revision"]}
        if options.again:
            self.results = Results.read(DIRECTORY / "client.json")
        else:
            self.results = Results(run={**facts, "compilation_s": _compilation_s(scratch)})

    def _begin(self, scenario: str, **told: object) -> None:
        """Begins a scenario; its earlier figures stay under another name, and on the page."""
        if scenario in self.results.scenarios:
            client_page.keep_as_earlier(self.results, scenario)
        self.results.scenarios[scenario] = {**told, **self._part}

    def throughput(self, size: int) -> None:
        values = self._scratch / f"values-{size}.txt"
        payloads.write_lines(values, payloads.incompressible(size))
        for what in ("produce", "consume"):
            self._begin(f"{what}-{size}", what=what, record_bytes=size)
        for name, records in (("fast", _RECORDS_FAST[size]), ("slow", _RECORDS[size])):
            topic = f"read-{size}-{name}"
            topics.create(self._peer, topic, partitions=_PARTITIONS)
            client_peers.run(CONFLUENT, "produce", self._work(topic, size, records, values))
        for number in range(self._rounds):
            for name in client_peers.NAMES:
                is_fast = name in _FAST
                records = (_RECORDS_FAST if is_fast else _RECORDS)[size]
                read_topic = f"read-{size}-{'fast' if is_fast else 'slow'}"
                self._step("consume", name, number, self._work(read_topic, size, records, values))
                topic = f"write-{size}-{number}-{name}"
                topics.create(self._peer, topic, partitions=_PARTITIONS)
                prime_page_cache(self._scratch, int(records * self._scale) * size)
                self._step("produce", name, number, self._work(topic, size, records, values))
                topics.delete(self._peer, topic)
        for name in ("fast", "slow"):
            topics.delete(self._peer, f"read-{size}-{name}")

    def _step(self, what: str, name: str, number: int, work: Work) -> None:
        others = OthersMeter(self._peer.pid)
        done = client_peers.run(name, what, work)
        figures = {
            "records_s": done.record_count / done.elapsed_s,
            "cpu_us": done.cpu_s / done.record_count * 1e6,
            "others_cores": others.read(),
        }
        self._add(f"{what}-{work.record_bytes}", name, number, figures)

    def _work(self, topic: str, size: int, records: int, values: Path) -> Work:
        return Work(
            bootstrap=self._peer.bootstrap,
            topic=topic,
            partitions=_PARTITIONS,
            record_count=max(6000, int(records * self._scale) // 6000 * 6000),
            record_bytes=size,
            payloads=values,
            codec="none",
        )

    def round_trip(self) -> None:
        self._begin("round-trip", rate_per_s=200, record_bytes=100, partitions=1)
        for number in range(self._rounds):
            for name in (STRANDLINE, CONFLUENT):
                self._ask("round-trip", name, number, what="round-trip", partitions=1, record_bytes=100)

    def linger(self) -> None:
        for linger_ms in LINGERS_MS:
            self._begin(f"linger-{linger_ms}", linger_ms=linger_ms, rate_per_s=_LINGER_RATE_PER_S)
        for number in range(self._rounds):
            for linger_ms in LINGERS_MS:
                self._ask(
                    f"linger-{linger_ms}",
                    STRANDLINE,
                    number,
                    what="linger",
                    linger_ms=linger_ms,
                    record_bytes=100,
                    rate_per_s=_LINGER_RATE_PER_S,
                    duration_s=3.0,
                )
                self._ask(
                    f"linger-{linger_ms}",
                    STRANDLINE,
                    number,
                    what="linger-throughput",
                    linger_ms=linger_ms,
                    record_bytes=100,
                    record_count=int(_LINGER_RECORDS * self._scale),
                )

    def memory(self) -> None:
        for what, buffer_bytes in _MEMORY:
            scenario = f"{what}-{buffer_bytes // _MIB}"
            self._begin(scenario, what=what, buffer_bytes=buffer_bytes)
            for number in range(self._rounds):
                self._ask(
                    scenario,
                    STRANDLINE,
                    number,
                    what=what,
                    record_bytes=1000,
                    buffer_bytes=buffer_bytes,
                    record_count=int(_MEMORY_RECORDS * self._scale),
                )

    def _ask(self, scenario: str, name: str, number: int, **more: object) -> None:
        """Runs one step on a topic of its own, which is filled first if the step reads."""
        topic = f"{scenario}-{name}-{number}-{more['what']}"
        question = client_quality.Question(
            name=name,
            bootstrap=self._peer.bootstrap,
            topic=topic,
            **{"partitions": 3, **more},  # type: ignore[arg-type]
        )
        topics.create(self._peer, topic, partitions=question.partitions)
        if question.what == "consume-memory":
            values = self._scratch / "values-memory.txt"
            payloads.write_lines(values, payloads.incompressible(question.record_bytes))
            work = Work(
                bootstrap=self._peer.bootstrap,
                topic=topic,
                partitions=question.partitions,
                record_count=question.record_count // 1000 * 1000,
                record_bytes=question.record_bytes,
                payloads=values,
                codec="none",
            )
            client_peers.run(CONFLUENT, "produce", work)
        others = OthersMeter(self._peer.pid)
        found = client_quality.ask(question)
        self._add(scenario, name, number, found | {"others_cores": others.read()})
        topics.delete(self._peer, topic)

    def _add(self, scenario: str, name: str, number: int, figures: dict[str, float]) -> None:
        self.results.add(scenario, name, number, figures)
        shown = ", ".join(f"{key} {value:,.4g}" for key, value in figures.items())
        print(f"{scenario} {name} {number}: {shown}", file=sys.stderr, flush=True)


def _compilation_s(scratch: Path) -> float:
    """Returns the seconds that the kernels take at their first use, with an empty cache, in a process of its own."""
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", "from strandline.client.columnar.warming import warm_up; warm_up()"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(scratch / "kernels")},
        check=True,
    )
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bytes", default="100,1000,10000", help="sizes of values")
    parser.add_argument("--only", default="throughput,round-trip,linger,memory")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--again", action="store_true", help="measure some parts once more, keep the others")
    parser.add_argument("--dry", action="store_true", help="print the page instead of writing it")
    options = parser.parse_args()
    wanted = options.only.split(",")
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as scratch:
        peer = StrandlinePeer(Path(scratch) / "peer")
        peer.start()
        try:
            run = Run(peer, Path(scratch), options)
            if "round-trip" in wanted:
                run.round_trip()
            if "linger" in wanted:
                run.linger()
            if "memory" in wanted:
                run.memory()
            if "throughput" in wanted:
                for size in map(int, options.bytes.split(",")):
                    run.throughput(size)
        finally:
            peer.stop()
    page = client_page.render(run.results)
    if options.dry:
        print(page)
        return
    run.results.write(DIRECTORY / "client.json")
    (DIRECTORY / "client.md").write_text(page)


if __name__ == "__main__":
    main()
