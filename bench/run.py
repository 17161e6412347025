"""Runs the benchmark: `python -m bench.run`, `--quick` for some minutes instead of half an hour.

In each round every scenario runs on both peers, one right after the other, in an order that alternates from round to
round. The peer that is not measured is paused. Results are written after every round, so that a run that is cut short
has results too.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

from bench import latency, machine, page, startup
from bench.aims import PRODUCE_CPU
from bench.java_clients import JavaClients
from bench.librdkafka import Librdkafka
from bench.measure import OTHERS_CORES_MAX, memory, wait_until_others_are_quiet
from bench.peers import STRANDLINE, WITHOUT_SENDFILE, KafkaPeer, Peer, StrandlinePeer
from bench.results import DIRECTORY, FILE_NAME, Results
from bench.scenarios import FULL, JAVA, LIBRDKAFKA, QUICK, Plan, Workload, sendfile_workload, workloads
from bench.throughput import Figures, Throughput
from tests.oracle.fetch import JAVA as JAVA_ORACLE
from tests.oracle.fetch import KAFKA_JARS

LATENCY = "latency"
MEMORY = "memory"
# The workload whose cost shows how warm a peer is: many small requests.
WARMTH = "throughput/Java/1000B/6p"
# Strandline compiles nothing while it runs; it is only shown each kind of request once.
_STRANDLINE_WARM_UP_S = 5.0
_WARM_UP_SHARE = 0.25
_REPEATS_MAX = 2


class Bench:
    """A run. `stack` stops everything that it has started."""

    def __init__(self, plan: Plan, *, root: Path, output: Path, only: str, stack: ExitStack) -> None:
        java, jars = JAVA_ORACLE.locate(), KAFKA_JARS.locate()
        if java is None or jars is None:
            raise SystemExit("Apache Kafka is not here: run `python -m tests.oracle.fetch`")
        self._plan = plan
        self._only = only
        self._root = root
        self._output = output
        self._stack = stack
        self._java, self._jars = java, jars
        self._begun_s = time.monotonic()
        self._patience_s = plan.patience_s
        clients = stack.enter_context(JavaClients(java=java, jars=jars))
        self._throughput = Throughput(root, {LIBRDKAFKA: Librdkafka(), JAVA: clients})
        self._strandline = self._strandline_at("strandline")
        self._kafka = self._kafka_at("kafka")
        self._without_sendfile = StrandlinePeer(
            self._directory("pread"), name=WITHOUT_SENDFILE, module="bench.without_sendfile"
        )
        self.results = Results(
            run={
                "mode": plan.name,
                "rounds": plan.rounds,
                "date": datetime.now(UTC).strftime("%Y-%m-%d"),
                "revision": machine.revision(),
                "machine": machine.facts(root, java),
                "warm_up": {},
            }
        )

    def run(self) -> None:
        for peer in (self._kafka, self._strandline, self._without_sendfile):
            if peer is self._without_sendfile and not self._wants("sendfile"):
                continue
            self._say(f"starting {peer.name}")
            self._stack.callback(peer.stop)
            peer.start()
            peer.pause()
        self._warm_up(self._kafka, self._plan.warm_up_s)
        self._warm_up(self._strandline, min(_STRANDLINE_WARM_UP_S, self._plan.warm_up_s))
        prepared = self._prepare_startup()
        for number in range(self._plan.rounds):
            order = (self._strandline, self._kafka) if number % 2 == 0 else (self._kafka, self._strandline)
            self._round(number, order)
            if number < self._plan.startup_rounds:
                self._startup(number, prepared, kafka_first=number % 2 == 1)
            self.results.run["rounds_done"] = number + 1
            self.results.run["duration_s"] = round(time.monotonic() - self._begun_s)
            self.results.write(self._output / FILE_NAME)
            page.write(self.results, self._output)

    def _round(self, number: int, order: Sequence[Peer]) -> None:
        for workload in workloads(self._plan.share):
            if self._wants(workload.id):
                self._workload(number, order, workload)
        if self._wants(LATENCY):
            self._latency(number, order)
        for peer in order:
            with self._awake(peer):
                used = memory(peer.pid)
            figures = {"loaded_pss_mb": used.pss_bytes / 1e6, "loaded_rss_mb": used.rss_bytes / 1e6}
            self._add(MEMORY, peer.name, number, figures)
        if self._wants("sendfile"):
            pair = (self._strandline, self._without_sendfile)
            workload = sendfile_workload(self._plan.share)
            self._workload(number, pair if number % 2 == 0 else pair[::-1], workload)

    def _workload(self, number: int, order: Sequence[Peer], workload: Workload) -> None:
        self.results.scenarios[workload.id] = asdict(workload)

        def step(peer: Peer) -> Figures:
            with self._awake(peer):
                self._wait_for_others()
                return self._throughput.step(peer, workload)

        self._compare(number, workload.id, order, step)

    def _latency(self, number: int, order: Sequence[Peer]) -> None:
        attempts: list[tuple[Figures, list[int]]] = []

        def step(peer: Peer) -> Figures:
            with self._awake(peer):
                self._wait_for_others()
                topic = f"latency{number}-{len(attempts)}"
                attempts.append(latency.measure(peer, topic, self._plan.latency_s))
            return attempts[-1][0]

        for name, chosen in self._compare(number, LATENCY, order, step).items():
            latencies_us = next(seen_us for figures, seen_us in attempts if figures is chosen)
            self.results.latencies_us.setdefault(name, []).extend(latencies_us)

    def _startup(self, number: int, prepared: dict[int, tuple[Peer, Peer]], *, kafka_first: bool) -> None:
        for partitions, pair in prepared.items():
            scenario = f"startup/{partitions}p"
            self.results.scenarios[scenario] = {"group": "startup", "partitions": partitions}

            def step(peer: Peer) -> Figures:
                self._wait_for_others()
                return startup.measure(peer)

            self._compare(number, scenario, pair[::-1] if kafka_first else pair, step)

    def _compare(
        self, number: int, scenario: str, order: Sequence[Peer], step: Callable[[Peer], Figures]
    ) -> dict[str, Figures]:
        """Runs a step on each peer. If other programs disturbed one of them, both are repeated, and the calmest pair
        counts."""
        calmest = {peer.name: step(peer) for peer in order}
        for _ in range(_REPEATS_MAX):
            if self._patience_s <= 0 or _others_cores(calmest) <= OTHERS_CORES_MAX:
                break
            self._say(f"  {scenario}: others used {_others_cores(calmest):.1f} cores; once more")
            begun_s, patience_s = time.monotonic(), self._patience_s
            calmest = min(calmest, {peer.name: step(peer) for peer in order}, key=_others_cores)
            waited_s = patience_s - self._patience_s
            self._patience_s -= time.monotonic() - begun_s - waited_s
        for name, figures in calmest.items():
            self._add(scenario, name, number, figures)
        return calmest

    def _wait_for_others(self) -> None:
        if self._patience_s > 0:
            self._patience_s -= wait_until_others_are_quiet(self._patience_s)

    def _prepare_startup(self) -> dict[int, tuple[Peer, Peer]]:
        prepared: dict[int, tuple[Peer, Peer]] = {}
        for partitions in self._plan.startup_partitions:
            if not self._wants(f"startup/{partitions}p"):
                continue
            pair = (self._strandline_at(f"strandline-{partitions}"), self._kafka_at(f"kafka-{partitions}"))
            for peer in pair:
                self._say(f"{peer.name}: a directory with {partitions} partitions")
                self._stack.callback(peer.stop)
                startup.prepare(peer, partitions)
            prepared[partitions] = pair
        return prepared

    def _warm_up(self, peer: Peer, duration_s: float) -> None:
        """Runs every workload in turn until the time is over."""
        self._say(f"{peer.name}: warming up for {duration_s:.0f} s")
        trace: list[float] = []
        with self._awake(peer):
            begun_s = time.monotonic()
            for workload in cycle(workloads(_WARM_UP_SHARE)):
                if time.monotonic() - begun_s >= duration_s:
                    break
                if workload.group == "codec":
                    continue
                figures = self._throughput.step(peer, workload)
                if workload.id == WARMTH:
                    trace.append(round(figures[PRODUCE_CPU], 2))
        self.results.run["warm_up"][peer.name] = {
            "duration_s": round(time.monotonic() - begun_s),
            "broker_cpu_s_gb": trace,
        }

    @contextmanager
    def _awake(self, peer: Peer) -> Iterator[None]:
        peer.resume()
        yield
        peer.pause()

    def _add(self, scenario: str, peer: str, number: int, figures: Figures) -> None:
        self.results.add(scenario, peer, number, figures)
        told = (
            "produce_mb_s",
            "consume_mb_s",
            "p50_ms",
            "p99_ms",
            "first_ack_s",
            "loaded_pss_mb",
            "idle_pss_mb",
        )
        said = "  ".join(f"{key} {figures[key]:.4g}" for key in told if key in figures)
        others = _others_cores({peer: figures})
        if others > OTHERS_CORES_MAX:
            said += f"  (others used {others:.1f} cores)"
        self._say(f"round {number + 1}/{self._plan.rounds}  {scenario:<32} {peer:<16} {said}")

    def _say(self, text: str) -> None:
        elapsed_s = int(time.monotonic() - self._begun_s)
        print(f"{elapsed_s // 60:3}:{elapsed_s % 60:02}  {text}", flush=True)

    def _wants(self, scenario: str) -> bool:
        return self._only in scenario

    def _directory(self, name: str) -> Path:
        directory = self._root / name
        directory.mkdir()
        return directory

    def _strandline_at(self, name: str) -> Peer:
        return StrandlinePeer(self._directory(name), name=STRANDLINE)

    def _kafka_at(self, name: str) -> Peer:
        return KafkaPeer(self._directory(name), java=self._java, jars=self._jars)


def _others_cores(steps: dict[str, Figures]) -> float:
    """Returns the most cores that other programs used during one of the steps."""
    return max(figures.get("others_cores", 0.0) for figures in steps.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round with less data")
    parser.add_argument("--only", default="", metavar="TEXT", help="only scenarios whose id has TEXT in it")
    parser.add_argument("--rounds", type=int, help="another number of rounds")
    parser.add_argument(
        "--directory", type=Path, help="where both keep their data (default: temporary files)"
    )
    parser.add_argument(
        "--output", type=Path, default=DIRECTORY, help="where the page goes (docs/benchmarks)"
    )
    parser.add_argument(
        "--patience",
        type=float,
        metavar="SECONDS",
        help="how long, all in all, to wait for other programs to end",
    )
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL
    if options.patience is not None:
        plan = replace(plan, patience_s=options.patience)
    if options.rounds:
        plan = replace(plan, rounds=options.rounds, startup_rounds=options.rounds)
    signal.signal(signal.SIGTERM, _interrupt)
    root = Path(tempfile.mkdtemp(prefix="strandline-bench-", dir=options.directory))
    machine.freeze_source(root)
    try:
        with ExitStack() as stack:
            Bench(plan, root=root, output=options.output, only=options.only, stack=stack).run()
    except KeyboardInterrupt:
        print("\nstopped; rounds that were finished are kept", flush=True)
        return 130
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
