"""The demo's producer: orders with acks=all by librdkafka, and a ledger of everything that it was told."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from demo_picture import SLICES
from pipelines.orders_data import customers, orders

TOPIC = "orders"
FLUSH_SECONDS_MAX = 120
SLICE_SECONDS = 0.02
# Orders are made in portions of so many; the first ones again with other numbers would be repetitions.
PORTION = 250_000


class OrderProducer:
    """Writes so many orders a second until it is told to end, on a thread of its own."""

    def __init__(self, bootstrap: str, rate: int, ledger: Path) -> None:
        self.rate = rate
        self.sent = 0
        self.acknowledged: Counter[int] = Counter()  # by half second of the run
        self.total = 0
        self.refused = 0
        self._last_at: dict[int, float] = {}  # of each partition
        self.longest_wait: dict[int, float] = {}  # between two acknowledgements of a partition
        self._began_at = time.monotonic()
        self._ledger = ledger.open("w")
        self._ending = threading.Event()
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", "linger.ms": 5}
        # Kills are what the demo is about: librdkafka need not report the connections that break.
        self._producer = Producer(
            {**settings, "log_level": 0, "message.timeout.ms": FLUSH_SECONDS_MAX * 1000}
        )
        self._thread = threading.Thread(target=self._run, name="orders")

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

    def end(self) -> None:
        """Has it write no more, and wait for the acknowledgements of what it has written."""
        self._ending.set()

    def finish(self) -> None:
        self.end()
        if self._thread.ident is not None:
            self._thread.join()
        self._ledger.close()

    def _run(self) -> None:
        began = time.monotonic()
        for number, order in enumerate(_endless()):
            ahead = number / self.rate - (time.monotonic() - began)
            if ahead > SLICE_SECONDS:
                self._producer.poll(ahead)
            if self._ending.is_set():
                break
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
                self.sent += 1
                return
            except BufferError:
                self._producer.poll(SLICE_SECONDS)

    def _note(self, number: int, message: Message) -> None:
        now, partition = time.monotonic() - self._began_at, message.partition()
        self.acknowledged[int(now * SLICES)] += 1
        self.total += 1
        waited = now - self._last_at.get(partition, now)
        self._last_at[partition] = now
        self.longest_wait[partition] = max(waited, self.longest_wait.get(partition, 0.0))
        # The sequence is of the partition: nobody's key is in two of them.
        place = {"topic": TOPIC, "partition": partition, "offset": message.offset()}
        self._ledger.write(json.dumps({"id": f"o-{number}", **place, "sequence": number}) + "\n")


def _endless() -> Iterator[bytes]:
    """Orders whose ids go on from portion to portion."""
    for portion in count():
        yield from orders(PORTION, first=portion * PORTION)
