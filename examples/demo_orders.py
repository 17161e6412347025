"""The demo's producer: orders with acks=all by librdkafka, and a ledger of everything that it was told."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from pipelines.orders_data import customers, orders

TOPIC = "orders"
# Before the last tenth the producer waits until everybody who is to be killed has been.
GATE_SHARE = 0.9
FLUSH_SECONDS_MAX = 120
GATE_SECONDS_MAX = 600
SLICE_SECONDS = 0.25


class OrderProducer:
    """Writes `count` orders in about `seconds`, on a thread of its own."""

    def __init__(self, bootstrap: str, count: int, seconds: float, ledger: Path) -> None:
        self.count = count
        self.acknowledged: Counter[int] = Counter()  # by second of the run
        self.refused = 0
        self._last_at: dict[int, float] = {}  # of each partition
        self.longest_wait: dict[int, float] = {}  # between two acknowledgements of a partition
        self._seconds = seconds
        self._began_at = time.monotonic()
        self._ledger = ledger.open("w")
        self._gate = threading.Event()
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", "linger.ms": 5}
        # Kills are what the demo is about: librdkafka need not report the connections that break.
        self._producer = Producer(
            {**settings, "log_level": 0, "message.timeout.ms": FLUSH_SECONDS_MAX * 1000}
        )
        self._thread = threading.Thread(target=self._run, name="orders")

    @property
    def total(self) -> int:
        return sum(self.acknowledged.values())

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def write_customers(self) -> None:
        for key, customer in customers():
            self._producer.produce("customers", None if customer is None else json.dumps(customer), key)
        self._producer.flush(FLUSH_SECONDS_MAX)

    def start(self, began_at: float) -> None:
        self._began_at = began_at
        self._thread.start()

    def open_gate(self) -> None:
        self._gate.set()

    def finish(self) -> None:
        self.open_gate()
        self._thread.join()
        self._ledger.close()

    def _run(self) -> None:
        began = time.monotonic()
        gate = int(self.count * GATE_SHARE)
        for number, order in enumerate(orders(self.count)):
            if number == gate:
                while not self._gate.is_set() and time.monotonic() - began < GATE_SECONDS_MAX:
                    self._producer.poll(SLICE_SECONDS)
                self._last_at.clear()  # nobody waited for an acknowledgement
            ahead = number / self.count * self._seconds - (time.monotonic() - began)
            if ahead > SLICE_SECONDS:
                self._producer.poll(ahead)
            self._produce(number, order)
        self._producer.flush(FLUSH_SECONDS_MAX)

    def _produce(self, number: int, order: bytes) -> None:
        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self._note(number, message)
            else:
                self.refused += 1

        while True:
            try:
                self._producer.produce(TOPIC, order, f"o-{number}", on_delivery=on_delivery)
                return
            except BufferError:
                self._producer.poll(SLICE_SECONDS)

    def _note(self, number: int, message: Message) -> None:
        now, partition = time.monotonic() - self._began_at, message.partition()
        self.acknowledged[int(now)] += 1
        waited = now - self._last_at.get(partition, now)
        self._last_at[partition] = now
        self.longest_wait[partition] = max(waited, self.longest_wait.get(partition, 0.0))
        # The sequence is of the partition: nobody's key is in two of them.
        place = {"topic": TOPIC, "partition": partition, "offset": message.offset()}
        self._ledger.write(json.dumps({"id": f"o-{number}", **place, "sequence": number}) + "\n")
