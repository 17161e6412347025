"""A disk that is full, slow or failing by a switch, on a real broker."""

from __future__ import annotations

import time
from collections.abc import Iterator

import confluent_kafka
import pytest

from strandline.client.errors import KafkaError
from strandline.client.sync import Admin, Consumer, Producer
from strandline.testing import BrokerProcess, running_broker


@pytest.fixture
def broker() -> Iterator[BrokerProcess]:
    with running_broker() as started:
        with Admin(started.client_settings) as admin:
            for name in ("t", "other"):
                admin.create_topic(name, partitions=1)
        yield started


def values(broker: BrokerProcess, topic: str, count: int) -> list[bytes | None]:
    read: list[bytes | None] = []
    deadline = time.monotonic() + 30
    with Consumer(broker.client_settings) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        while len(read) < count:
            assert time.monotonic() < deadline, f"{len(read)} of {count} records of {topic}"
            read += [record.value for record in consumer.poll(1.0)]
    return read


def test_full_disk_refuses_writes_and_they_go_on_when_there_is_room(broker: BrokerProcess) -> None:
    outcomes: list[object] = []
    producer = confluent_kafka.Producer({**broker.librdkafka_settings, "retry.backoff.ms": 50})
    producer.produce("t", b"before", callback=lambda error, _: outcomes.append(error))
    assert producer.flush(20) == 0
    with broker.faults.full_disk() as full:
        producer.produce("t", b"during", callback=lambda error, _: outcomes.append(error))
        assert producer.flush(1.0) == 1, "it is retried while the disk is full"
        assert values(broker, "t", 1) == [b"before"], "reads go on"
        assert full.fired > 0
    assert producer.flush(30) == 0
    assert outcomes == [None, None]
    assert values(broker, "t", 2) == [b"before", b"during"]
    assert broker.is_running


def test_full_disk_of_one_topic_leaves_the_others_alone(broker: BrokerProcess) -> None:
    with (
        broker.faults.full_disk(topic="t") as full,
        Producer(broker.client_settings, delivery_timeout_ms=1500, request_timeout_ms=1000) as producer,
    ):
        assert producer.send("other", b"x").result(10).offset == 0
        with pytest.raises(KafkaError):
            producer.send("t", b"x").result(10)
        assert full.fired > 0


def test_slow_disk_takes_its_time(broker: BrokerProcess) -> None:
    with Producer(broker.client_settings) as producer:
        producer.send("t", b"x").result(10)
        with broker.faults.slow_disk(ms=300, operations=["write"], topic="t") as slow:
            began = time.monotonic()
            producer.send("t", b"x").result(10)
            assert time.monotonic() - began >= 0.3
            assert slow.fired >= 1


def test_failing_disk_takes_the_directory_offline_and_loses_nothing_acknowledged(
    broker: BrokerProcess,
) -> None:
    with Producer(broker.client_settings, delivery_timeout_ms=1500, request_timeout_ms=1000) as producer:
        assert producer.send("t", b"kept").result(10).offset == 0
        with broker.faults.failing_disk(topic="t") as failing, pytest.raises(KafkaError):
            producer.send("t", b"lost").result(10)
        assert failing.fired > 0
    broker.kill()
    broker.start()
    assert values(broker, "t", 1) == [b"kept"]


def test_slow_and_failing_disks_strike_regions_that_are_sent_without_being_read(
    broker: BrokerProcess,
) -> None:
    value = b"x" * 200_000
    with Producer(broker.client_settings) as producer:
        producer.send("t", value).result(10)
    with broker.faults.slow_disk(ms=300, operations=["read"], topic="t") as slow:
        began = time.monotonic()
        assert values(broker, "t", 1) == [value]
        assert time.monotonic() - began >= 0.3
        assert slow.fired >= 1
    with (
        broker.faults.failing_disk(operations=["read"], topic="t") as failing,
        Consumer(broker.client_settings) as consumer,
    ):
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        deadline = time.monotonic() + 20
        while not failing.fired and time.monotonic() < deadline:
            assert consumer.poll(0.2) == []
    assert failing.fired > 0
    broker.kill()
    broker.start()
    assert values(broker, "t", 1) == [value]
