"""Three nodes, every listener over SASL_SSL with mutual TLS: failover, new certificates and passwords, nothing lost."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer

from strandline.client.admin.topics import NewTopic
from strandline.client.sync import Admin
from strandline.node.development_certificates import make_certificate
from strandline.node.development_security import DevelopmentSecurity
from strandline.testing import Cluster, cluster
from strandline.testing.clusters import wait_until

SECONDS_MAX = 60


class Load:
    """A producer that goes on until it is stopped; `acknowledged` has the values that the cluster confirmed."""

    def __init__(self, started: Cluster, topic: str) -> None:
        self.acknowledged: list[bytes] = []
        self.failed: list[str] = []
        self._topic = topic
        self._producer = Producer({**started.librdkafka_settings, "acks": "all", "linger.ms": "5"})
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._is_ending.is_set():
            value = b"%d" % number
            self._producer.produce(self._topic, value, on_delivery=self._delivered)
            self._producer.poll(0)
            number += 1
            time.sleep(0.002)
        assert self._producer.flush(SECONDS_MAX) == 0

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            self.acknowledged.append(message.value())  # type: ignore[attr-defined]
        else:
            self.failed.append(str(error))

    def wait_for_more(self, count: int = 50) -> None:
        target = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= target, SECONDS_MAX, "nothing is acknowledged any more")

    def stop(self) -> None:
        self._is_ending.set()
        self._thread.join(SECONDS_MAX)


def _read_all(started: Cluster, topic: str, count: int) -> list[bytes]:
    settings = {"group.id": "reader", "auto.offset.reset": "earliest"}
    consumer = Consumer({**started.librdkafka_settings, **settings})
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(values) < count and time.monotonic() < deadline:
        values += [each.value() for each in consumer.consume(500, 1.0) if each.error() is None]
    consumer.close()
    return values


def test_nothing_is_lost_over_failover_and_new_certificates(tmp_path: Path) -> None:
    security = DevelopmentSecurity(tmp_path, "SASL_SSL", "SCRAM-SHA-512", client_auth="required")
    topic = "orders"
    with cluster(nodes=3, security=security) as started:
        with Admin(started.client_settings) as admin:
            admin.create_topics([NewTopic(name=topic, partitions=3)])
        load = Load(started, topic)
        try:
            load.wait_for_more()
            started.node(2).kill()
            load.wait_for_more()
            # A new certificate while everything runs: brokers read the file again.
            make_certificate(tmp_path, "server", ("localhost", "127.0.0.1"))
            wait_until(
                lambda: all("certificates read again" in started.node(n).log_text for n in (1, 3)),
                SECONDS_MAX,
                "the new certificate was not read",
            )
            started.node(2).start()
            load.wait_for_more()
        finally:
            load.stop()
        assert not load.failed
        assert set(_read_all(started, topic, len(load.acknowledged))) >= set(load.acknowledged)
