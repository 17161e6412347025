"""`kill -9` at random moments under load: every acknowledged record is there, once, and in order."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.testing import BrokerProcess

ROUNDS = 6
PARTITIONS = 2
SEED = 20_260_729


class Load:
    """An idempotent producer that writes numbers for as long as it runs, and what it was told of each."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "message.timeout.ms": 60_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        self.acknowledged: dict[int, dict[int, int]] = defaultdict(dict)  # partition: number to offset
        self.errors: list[str] = []
        self.sent = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            number = self.sent
            try:
                self._producer.produce(
                    "t",
                    b"%d" % number + b"." * (number % 300),
                    partition=number % PARTITIONS,
                    on_delivery=self._delivered,
                )
            except (BufferError, KafkaException):
                self._producer.poll(0.05)
                continue
            self.sent += 1
            self._producer.poll(0)
            if number % 50 == 0:
                time.sleep(0.002)

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
            return
        number = int((message.value() or b"").partition(b".")[0])
        self.acknowledged[message.partition() or 0][number] = message.offset() or 0

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._producer.flush(40)


def stored(bootstrap: str, partition: int) -> list[tuple[int, int]]:
    """Number and offset of every record of a partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
            "check.crcs": True,
        }
    )
    found = []
    try:
        consumer.assign([TopicPartition("t", partition, OFFSET_BEGINNING)])
        _, end = consumer.get_watermark_offsets(TopicPartition("t", partition), timeout=60)
        while not found or found[-1][1] + 1 < end:
            for message in consumer.consume(1000, timeout=10):
                assert message.error() is None, message.error()
                found.append((int((message.value() or b"").partition(b".")[0]), message.offset() or 0))
    finally:
        consumer.close()
    return found


@pytest.mark.timeout(300)
def test_killed_at_random_moments_a_broker_keeps_every_acknowledged_record_once_and_in_order(
    tmp_path: Path,
) -> None:
    moments = random.Random(SEED)
    broker = BrokerProcess(
        tmp_path / "data",
        {
            "log.segment.bytes": "1048576",
            "log.index.interval.bytes": "1000",
            "log.flush.offset.checkpoint.interval.ms": "150",
        },
    )
    broker.start()
    load = None
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result(10)
        load = Load(broker.bootstrap)
        for _ in range(ROUNDS):
            time.sleep(moments.uniform(0.1, 0.9))
            broker.kill()
            broker.start()
        load.stop()
        assert Counter(load.errors) == {}, broker.log_text[-3000:]
        assert "halted" not in broker.log_text
        assert sum(len(numbers) for numbers in load.acknowledged.values()) == load.sent > 1000
        for partition in range(PARTITIONS):
            found = stored(broker.bootstrap, partition)
            numbers = [number for number, _ in found]
            assert numbers == list(range(partition, load.sent, PARTITIONS)), "each once, in order"
            assert dict(found) == load.acknowledged[partition], "where it was said to be"
    finally:
        if load is not None:
            load.stop()
        broker.kill()
