"""Strandline's client beside confluent-kafka, aiokafka and kafka-python on one Strandline broker, in one run.

    python -m bench.client_run [--what consume|produce|both] [--rounds N] [--records N] [--bytes 100,1000]

Rounds alternate the clients, so that whatever else the machine does meets all of them; medians are compared, and the
ratios that the issue asks for are printed: per record against the faster of aiokafka and kafka-python, columnar
against confluent-kafka.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from bench import client_peers, payloads, topics
from bench.clients import Done, Work
from bench.machine import prime_page_cache
from bench.peers import StrandlinePeer

AIMS = {"consume": 3.0, "produce": 2.0}  # of columnar against confluent-kafka
PER_RECORD_AIM = 1.5

# Some seconds for each client at the speeds that were seen.
_RECORDS = {100: 1_000_000, 1000: 200_000}
_PARTITIONS = 6

Figures = dict[str, list[Done]]


def main() -> None:
    options = _options()
    names = options.clients.split(",")
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as scratch:
        peer = StrandlinePeer(Path(scratch) / "peer")
        peer.start()
        try:
            for size in map(int, options.bytes.split(",")):
                records = options.records or _RECORDS[size]
                for what in ("consume", "produce") if options.what == "both" else (options.what,):
                    found = _measure(peer, Path(scratch), what, size, records, options.rounds, names)
                    _report(what, size, found)
        finally:
            peer.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--what", choices=("consume", "produce", "both"), default="both")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=0, help="instead of the usual number")
    parser.add_argument("--bytes", default="100,1000", help="sizes of values")
    parser.add_argument("--clients", default=",".join(client_peers.NAMES))
    return parser.parse_args()


def _measure(
    peer: StrandlinePeer, scratch: Path, what: str, size: int, records: int, rounds: int, names: list[str]
) -> Figures:
    """What each client did, by round."""
    values = scratch / f"values-{size}.txt"
    if not values.exists():
        payloads.write_lines(values, payloads.incompressible(size))
    found: Figures = {name: [] for name in names}
    read_topic = f"read-{size}"
    if what == "consume":
        topics.create(peer, read_topic, partitions=_PARTITIONS)
        client_peers.run(client_peers.CONFLUENT, "produce", _work(peer, read_topic, records, size, values))
    for number in range(rounds):
        for name in names:
            topic = read_topic
            if what == "produce":
                topic = f"write-{size}-{number}-{name}"
                topics.create(peer, topic, partitions=_PARTITIONS)
                prime_page_cache(scratch, records * size)
            done = client_peers.run(name, what, _work(peer, topic, records, size, values))
            found[name].append(done)
            if what == "produce":
                topics.delete(peer, topic)
    if what == "consume":
        topics.delete(peer, read_topic)
    return found


def _work(peer: StrandlinePeer, topic: str, records: int, size: int, values: Path) -> Work:
    return Work(
        bootstrap=peer.bootstrap,
        topic=topic,
        partitions=_PARTITIONS,
        record_count=records,
        record_bytes=size,
        payloads=values,
        codec="none",
    )


def _report(what: str, size: int, figures: Figures) -> None:
    print(
        f"\n{what}, {size} B values: records per second, median (lowest to highest), and the client's CPU time"
    )
    middle: dict[str, float] = {}
    for name, found in figures.items():
        rates = [done.record_count / done.elapsed_s for done in found]
        cost_us = median(done.cpu_s / done.record_count * 1e6 for done in found)
        middle[name] = median(rates)
        span = f"({min(rates):,.0f} to {max(rates):,.0f})"
        print(f"  {name:<20} {middle[name]:>12,.0f}   {span:<28} {cost_us:6.2f} µs a record")
    peers = [middle[name] for name in (client_peers.AIOKAFKA, client_peers.KAFKA_PYTHON) if name in middle]
    if peers and client_peers.STRANDLINE in middle:
        ratio = middle[client_peers.STRANDLINE] / max(peers)
        print(
            f"  per record: {ratio:.2f} times the faster of aiokafka and kafka-python (aim {PER_RECORD_AIM})"
        )
    if client_peers.CONFLUENT in middle and client_peers.COLUMNAR in middle:
        ratio = middle[client_peers.COLUMNAR] / middle[client_peers.CONFLUENT]
        print(f"  columnar: {ratio:.2f} times confluent-kafka (aim {AIMS[what]})")


if __name__ == "__main__":
    main()
