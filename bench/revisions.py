"""Measures this revision beside an older one: `python -m bench.revisions --old <its src directory>`, `--pairs N`.

In each round every scenario runs on both, one right after the other, in alternating order; the one that is not measured
is paused. The time of the scenario and the CPU time of the broker are compared, new by old.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

import uvloop
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench import groups, transactions
from bench.measure import cpu_seconds
from bench.peers import Peer, StrandlinePeer
from strandline.testing.clusters import Cluster

OLD, NEW = "old", "new"
TOPIC, PARTITIONS = "revisions", 4
RECORDS, RECORD = 200_000, b"x" * 100
CLUSTER_RECORDS = 60_000
READS = 10  # one read takes less of a broker's CPU time than is measured
COMMITS_CONNECTIONS = 10
_WAIT_S = 60

Run = Callable[[], float]


class Nodes:
    """The processes of one revision that are measured together."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids

    def measured(self, run: Run) -> tuple[float, float]:
        """Returns the seconds and the CPU seconds per unit of work."""
        for pid in self._pids:
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.3)
        before, begun = sum(map(cpu_seconds, self._pids)), time.monotonic()
        units = run()
        took, used = time.monotonic() - begun, sum(map(cpu_seconds, self._pids)) - before
        for pid in self._pids:
            os.kill(pid, signal.SIGSTOP)
        return took / units, used / units


def create(bootstrap: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(TOPIC, PARTITIONS, replicas)]).values():
        future.result(_WAIT_S)


def produce(bootstrap: str, count: int) -> float:
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 10_000_000})
    for number in range(count):
        producer.produce(TOPIC, RECORD, partition=number % PARTITIONS)
    assert producer.flush(_WAIT_S) == 0
    return count


def consume(bootstrap: str) -> float:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "revisions"})
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    got = 0
    while got < RECORDS:
        got += len(consumer.consume(10_000, 10))
    consumer.close()
    return got


def commit(peer: Peer, name: str) -> float:
    """Runs for a fixed time; returns the transactions per second."""
    begun = time.monotonic()
    per_second = uvloop.run(groups.commits(peer, name, COMMITS_CONNECTIONS, 1))
    return per_second * (time.monotonic() - begun)


def transact(peer: Peer, name: str) -> float:
    begun = time.monotonic()
    per_second = uvloop.run(transactions.rate(peer, name, 10))
    return per_second * (time.monotonic() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    sources = {OLD: options.old.resolve(), NEW: Path(__file__).parents[1] / "src"}
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strandline-revisions-")))
        peers, nodes, trios = {}, {}, {}
        for name, source in sources.items():
            settings = {**groups.SETTINGS, **transactions.SETTINGS}
            peers[name] = peer = StrandlinePeer(home / name, name=name, more=settings, source=source)
            peer.start()
            stack.callback(peer.stop)
            create(peer.bootstrap, 1)
            groups.prepare(peer)
            transactions.prepare(peer)
            nodes[name] = Nodes([peer.pid])
            trio, trio_nodes = start_cluster(home / f"{name}-cluster", source, stack)
            trios[name] = trio
            nodes[f"{name}-cluster"] = trio_nodes
            create(trio.bootstrap, 3)
        figures: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for each in nodes.values():
            each.measured(lambda: 1.0)  # and paused
        scenarios: dict[str, tuple[str, Callable[[str, int], float]]] = {
            "produce": ("", lambda name, _: produce(peers[name].bootstrap, RECORDS)),
            "consume": ("", lambda name, _: sum(consume(peers[name].bootstrap) for _ in range(READS))),
            "commits": ("", lambda name, number: commit(peers[name], f"c{number}")),
            "transactions": ("", lambda name, number: transact(peers[name], f"t{number}")),
            "cluster": ("-cluster", lambda name, _: produce(trios[name].bootstrap, CLUSTER_RECORDS)),
        }
        for number in range(options.pairs):
            for scenario, (suffix, run) in scenarios.items():
                for name in (OLD, NEW) if number % 2 else (NEW, OLD):
                    figure = nodes[name + suffix].measured(partial(run, name, number))
                    figures.setdefault(scenario, {}).setdefault(name, []).append(figure)
            print(f"round {number + 1} of {options.pairs}", flush=True)
        report(figures)
        for each in nodes.values():
            each.measured(lambda: 1.0)


def start_cluster(directory: Path, source: Path, stack: ExitStack) -> tuple[Cluster, Nodes]:
    directory.mkdir()
    trio = Cluster(directory, 3, {}, takes_faults=False)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(source)
    try:
        trio.start()
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)
    pids = [trio.node(number).pid for number in (1, 2, 3)]
    stack.callback(trio.stop)

    def go_on() -> None:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    stack.callback(go_on)
    return trio, Nodes(pids)


def report(figures: dict[str, dict[str, list[tuple[float, float]]]]) -> None:
    print(f"{'new / old, medians of pairs':30}{'time':>8}{'CPU':>8}")
    for scenario, by_name in figures.items():
        pairs = list(zip(by_name[NEW], by_name[OLD], strict=True))
        took = median(new[0] / old[0] for new, old in pairs)
        used = median(new[1] / old[1] for new, old in pairs)
        print(f"{scenario:30}{took:8.3f}{used:8.3f}")


if __name__ == "__main__":
    main()
