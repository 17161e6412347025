"""Measures TLS and logins beside Apache Kafka: `python -m bench.security`, `--rounds N`. Writes
docs/benchmarks/security.md.

Both brokers have the same certificates and three listeners. In each round every scenario runs on both, one right after
the other, and the first one changes; the other broker is paused.
"""

from __future__ import annotations

import argparse
import os
import socket
import ssl
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from statistics import median

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from bench.measure import cpu_seconds
from bench.payloads import compressible
from bench.peers import KAFKA, STRANDLINE, KafkaPeer, Peer, StrandlinePeer
from strandline.node.development_security import DevelopmentSecurity
from strandline.testing.clusters import free_ports
from tests.oracle.fetch import JAVA, KAFKA_JARS
from tests.oracle.require import require

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "security.md"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_SSL")
RECORDS = compressible(1000)
COUNT, PARTITIONS, HANDSHAKES, THREADS = 150_000, 4, 300, 4
WARM_UP_ROUNDS = 2
WAIT_S = 120
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


_ABOUT = (
    f"Measured on {{day}} with {{cores}} cores, in {{rounds}} rounds after a warm-up. librdkafka as its defaults are, "
    f"{COUNT:,} orders in JSON of 1000 bytes, {PARTITIONS} partitions, TLS 1.3 with an EC key, SCRAM-SHA-512. Medians; "
    "ratios are medians of the rounds, with the lowest and the highest. The client runs on the same cores. A ratio of "
    "CPU below 1 means that Strandline's process used less."
)


class SecuredPeer:
    """A broker with a listener of each protocol."""

    def __init__(self, name: str, home: Path, security: DevelopmentSecurity) -> None:
        self.name = name
        self.security = security
        ports = dict(zip(("PLAINTEXT", "SSL", "SASL_SSL", "CONTROLLER"), free_ports(4), strict=True))
        self.addresses = {protocol: f"127.0.0.1:{ports[protocol]}" for protocol in PROTOCOLS}
        clients = ",".join(f"{protocol}://{address}" for protocol, address in self.addresses.items())
        assert security.server is not None
        settings = {
            "listeners": f"{clients},CONTROLLER://127.0.0.1:{ports['CONTROLLER']}",
            "advertised.listeners": clients,
            "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": SCRAM,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(security.server.key_store),
        }
        self.peer: Peer = (
            StrandlinePeer(home / name, more=settings)
            if name == STRANDLINE
            else KafkaPeer(
                home / name,
                java=require(JAVA),
                jars=require(KAFKA_JARS),
                more=settings,
                broker_port=ports["PLAINTEXT"],
            )
        )

    def settings(self, protocol: str) -> dict[str, str]:
        """Returns librdkafka's settings for a client of one listener."""
        found = {"bootstrap.servers": self.addresses[protocol], "security.protocol": protocol}
        secured = self.security.librdkafka_settings()
        if "SSL" in protocol:
            found["ssl.ca.location"] = secured["ssl.ca.location"]
        if protocol.startswith("SASL"):
            found |= {name: value for name, value in secured.items() if name.startswith("sasl.")}
        return found

    def prepare(self) -> None:
        admin = AdminClient(self.settings("PLAINTEXT"))
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        user = UserScramCredentialUpsertion(self.security.user, info, self.security.password.encode())
        admin.alter_user_scram_credentials([user])[self.security.user].result(WAIT_S)
        for protocol in PROTOCOLS:
            admin.create_topics([NewTopic(protocol, PARTITIONS, 1)])[protocol].result(WAIT_S)
        time.sleep(1)

    def produce(self, protocol: str) -> float:
        """Returns the megabytes per second."""
        producer = Producer({**self.settings(protocol), "queue.buffering.max.messages": 10_000_000})
        producer.list_topics(protocol, WAIT_S)
        begun = time.monotonic()
        for number in range(COUNT):
            producer.produce(protocol, RECORDS[number % len(RECORDS)], partition=number % PARTITIONS)
        assert producer.flush(WAIT_S) == 0
        return COUNT * len(RECORDS[0]) / 1e6 / (time.monotonic() - begun)

    def consume(self, protocol: str) -> float:
        """Returns the megabytes per second."""
        consumer = Consumer({**self.settings(protocol), "group.id": "bench"})
        consumer.list_topics(protocol, WAIT_S)
        consumer.assign([TopicPartition(protocol, number, 0) for number in range(PARTITIONS)])
        begun, got = time.monotonic(), 0
        while got < COUNT:
            got += len(consumer.consume(10_000, 10))
        took = time.monotonic() - begun
        consumer.close()
        return got * len(RECORDS[0]) / 1e6 / took

    def handshake(self, protocol: str) -> float:
        """Returns the full handshakes per second, four at a time; no session is resumed."""
        assert self.security.server is not None
        host, _, port = self.addresses[protocol].rpartition(":")

        def connect(_: int) -> None:
            context = ssl.create_default_context(cafile=str(self.security.server.authority))  # type: ignore[union-attr]
            raw = socket.create_connection((host, int(port)), WAIT_S)
            with context.wrap_socket(raw, server_hostname=host):
                pass

        begun = time.monotonic()
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(connect, range(HANDSHAKES)))
        return HANDSHAKES / (time.monotonic() - begun)


Figures = dict[str, dict[str, list[tuple[float, float]]]]


def scenarios() -> dict[str, Callable[[SecuredPeer], float]]:
    found: dict[str, Callable[[SecuredPeer], float]] = {}
    for protocol in PROTOCOLS:
        found[f"produce, {protocol}, MB/s"] = lambda peer, protocol=protocol: peer.produce(protocol)  # type: ignore[misc]
        found[f"consume, {protocol}, MB/s"] = lambda peer, protocol=protocol: peer.consume(protocol)  # type: ignore[misc]
    found["TLS handshakes/s"] = lambda peer: peer.handshake("SSL")
    return found


def measure(peers: list[SecuredPeer], rounds: int) -> Figures:
    figures: Figures = {}
    for number in range(-WARM_UP_ROUNDS, rounds):
        for name, run in scenarios().items():
            for peer in peers if number % 2 else reversed(peers):
                peer.peer.resume()
                before = cpu_seconds(peer.peer.pid)
                rate = run(peer)
                used = cpu_seconds(peer.peer.pid) - before
                peer.peer.pause()
                if number >= 0:
                    figures.setdefault(name, {}).setdefault(peer.name, []).append((rate, used))
        print(f"round {number + 1} of {rounds}", flush=True)
    return figures


def page(figures: Figures, rounds: int) -> str:
    lines = [
        "# TLS and logins beside Apache Kafka",
        "",
        "<!-- Written by `python -m bench.security`. -->",
        "",
        _ABOUT.format(day=date.today().isoformat(), cores=os.cpu_count(), rounds=rounds),
        "",
        "| | Strandline | Apache Kafka | ratio | CPU ratio |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, by_peer in figures.items():
        ours, theirs = by_peer[STRANDLINE], by_peer[KAFKA]
        ratios = [a[0] / b[0] for a, b in zip(ours, theirs, strict=True)]
        cpu = median(a[1] / b[1] for a, b in zip(ours, theirs, strict=True) if b[1])
        values = [median(each[0] for each in side) for side in (ours, theirs)]
        lines.append(
            f"| {name} | {values[0]:,.0f} | {values[1]:,.0f} | **{median(ratios):.2f}×** "
            f"({min(ratios):.2f}–{max(ratios):.2f}) | {cpu:.2f}× |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strandline-security-")))
        security = DevelopmentSecurity(home / "security", "SASL_SSL", "SCRAM-SHA-512")
        peers = [SecuredPeer(name, home, security) for name in (STRANDLINE, KAFKA)]
        for peer in peers:
            peer.peer.start()
            stack.callback(peer.peer.stop)
            peer.prepare()
            peer.peer.pause()
        text = page(measure(peers, options.rounds), options.rounds)
        for peer in peers:
            peer.peer.resume()
    PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
