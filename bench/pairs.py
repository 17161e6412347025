"""Measures one node beside Apache Kafka's, scenario by scenario; `bench.groups` and `bench.transactions` share this.

In each round every scenario runs on both brokers, one right after the other, and the first one changes. The one that is
not measured is paused.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

from bench import machine, pairs_page
from bench.measure import OthersMeter, UsageMeter, wait_until_others_are_quiet
from bench.peers import KAFKA, STRANDLINE, KafkaPeer, Peer, StrandlinePeer
from bench.results import DIRECTORY, Results
from tests.oracle.fetch import JAVA as JAVA_ORACLE
from tests.oracle.fetch import KAFKA_JARS

# Kafka compiles while it runs: scenarios are repeated before the first round, until they no longer get quicker.
_WARM_UP_ROUNDS = 2
# How long to wait for other programs of the machine, before one step and in all.
_QUIET_WAIT_S_MAX = 5.0
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A figure of both peers: `measure` gets a peer and a name that no other step has, and returns the figure."""

    name: str
    what: str
    figure: str
    more_is_better: bool
    measure: Callable[[Peer, str], Awaitable[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A list of scenarios with its page: `name` is that of the module and of the page, `about` the text below the
    table."""

    name: str
    title: str
    about: str
    settings: Mapping[str, str]
    scenarios: tuple[Scenario, ...]
    prepare: Callable[[Peer], None]


def _step(peer: Peer, scenario: Scenario, name: str) -> dict[str, float]:
    meter, others = UsageMeter(peer.pid), OthersMeter(peer.pid)
    value = uvloop.run(_measured(scenario.measure(peer, name)))
    return {scenario.figure: value, "broker_cpu_s": meter.read().cpu_s, "others_cores": others.read()}


async def _measured(work: Awaitable[float]) -> float:
    return await work


def _run(benchmark: Benchmark, rounds: int, only: str, output: Path, root: Path, stack: ExitStack) -> None:
    java, jars = JAVA_ORACLE.locate(), KAFKA_JARS.locate()
    if java is None or jars is None:
        raise SystemExit("Apache Kafka is not here: run `python -m tests.oracle.fetch`")
    (root / KAFKA).mkdir()
    (root / STRANDLINE).mkdir()
    machine.freeze_source(root)
    peers: list[Peer] = [
        StrandlinePeer(root / STRANDLINE, more=benchmark.settings),
        KafkaPeer(root / KAFKA, java=java, jars=jars, more=benchmark.settings),
    ]
    chosen = [scenario for scenario in benchmark.scenarios if only in scenario.name]
    for peer in peers:
        print(f"starting {peer.name}", flush=True)
        stack.callback(peer.stop)
        peer.start()
        benchmark.prepare(peer)
        for number in range(_WARM_UP_ROUNDS if peer.name == KAFKA else 1):
            for scenario in chosen:
                _step(peer, scenario, f"warm-{number}-{scenario.name}")
        peer.pause()
    results = Results(run=_facts(benchmark, rounds, root, java))
    for scenario in chosen:
        results.scenarios[scenario.name] = {
            "what": scenario.what,
            "figure": scenario.figure,
            "more_is_better": scenario.more_is_better,
        }
    patience_s = _PATIENCE_S
    for number in range(rounds):
        for scenario in chosen:
            for peer in peers if number % 2 == 0 else peers[::-1]:
                peer.resume()
                if patience_s > 0:
                    patience_s -= wait_until_others_are_quiet(min(patience_s, _QUIET_WAIT_S_MAX))
                figures = _step(peer, scenario, f"round-{number}-{scenario.name}")
                peer.pause()
                results.add(scenario.name, peer.name, number, figures)
                print(f"{number + 1}/{rounds} {scenario.name:<20} {peer.name:<12} {figures}", flush=True)
    output.mkdir(parents=True, exist_ok=True)
    results.write(output / f"{benchmark.name}.json")
    page = pairs_page.render(results, name=benchmark.name, title=benchmark.title, about=benchmark.about)
    (output / f"{benchmark.name}.md").write_text(page)


def _facts(benchmark: Benchmark, rounds: int, root: Path, java: Path) -> dict[str, Any]:
    return {
        "rounds": rounds,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "revision": machine.revision(),
        "machine": machine.facts(root, java),
        "settings": dict(benchmark.settings),
    }


def main(benchmark: Benchmark) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m bench.{benchmark.name}", description=benchmark.title)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--only", default="", metavar="TEXT", help="only scenarios whose name has TEXT in it")
    parser.add_argument("--output", type=Path, default=DIRECTORY)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix=f"strandline-bench-{benchmark.name}-"))
    try:
        with ExitStack() as stack:
            rounds = 1 if options.quick else options.rounds
            _run(benchmark, rounds, options.only, options.output, root, stack)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0
