"""A broker whose time the test moves: retention, sessions and transactions end in milliseconds."""

from __future__ import annotations

import asyncio
import time

import confluent_kafka
import pytest

from strandline.client import Producer as AsyncProducer
from strandline.client.sync import Admin, Consumer, Producer
from strandline.testing import ClockedBroker, clocked_broker
from strandline.testing.clusters import wait_until

HOUR_S = 3600


def start_of(broker: ClockedBroker, topic: str) -> int:
    with Consumer(broker.client_settings) as consumer:
        return next(iter(consumer.beginning_offsets([(topic, 0)]).values()))


def test_an_hour_of_retention_passes_at_once() -> None:
    with clocked_broker(log_retention_check_interval_ms=60_000) as broker:
        with Admin(broker.client_settings) as admin:
            admin.create_topic("t", partitions=1, configs={"retention.ms": HOUR_S * 1000})
        with Producer(broker.client_settings) as producer:
            for number in range(5):
                producer.send("t", b"%d" % number).result(10)
        began = time.monotonic()
        broker.advance(HOUR_S / 2)
        assert start_of(broker, "t") == 0
        broker.advance(HOUR_S)
        wait_until(lambda: start_of(broker, "t") == 5, 10)
        assert time.monotonic() - began < 10


def test_session_of_a_member_that_is_silent_ends() -> None:
    with clocked_broker() as broker:
        settings = {**broker.librdkafka_settings, "group.id": "g", "auto.offset.reset": "earliest"}
        with Admin(broker.client_settings) as admin:
            admin.create_topic("t", partitions=1)
            consumer = confluent_kafka.Consumer({**settings, "session.timeout.ms": 45_000})
            consumer.subscribe(["t"])
            wait_until(lambda: consumer.poll(0.1) is None and len(consumer.assignment()) == 1, 20)
            assert len(admin.describe_groups(["g"])["g"].members) == 1
            with broker.faults.black_hole("Heartbeat"):  # it would come between the jump and its end
                broker.advance(46)
                wait_until(lambda: not admin.describe_groups(["g"])["g"].members, 5)
            consumer.close()


def test_transaction_that_no_client_ends_is_aborted() -> None:
    with clocked_broker() as broker:
        with Admin(broker.client_settings) as admin:
            admin.create_topic("t", partitions=1)
        producer = confluent_kafka.Producer(
            {**broker.librdkafka_settings, "transactional.id": "x", "transaction.timeout.ms": 60_000}
        )
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce("t", b"x")
        producer.flush(20)
        broker.advance(75)  # the coordinator looks every ten seconds
        with Admin(broker.client_settings) as admin:
            wait_until(lambda: admin.describe_transactions(["x"])["x"].state == "CompleteAbort", 10)
        with pytest.raises(confluent_kafka.KafkaException):
            producer.commit_transaction(10)


def test_clocked_broker_serves_a_test_on_asyncio() -> None:
    async def main() -> None:
        async with clocked_broker() as broker, AsyncProducer(bootstrap_servers=broker.bootstrap) as producer:
            before = (await (await producer.send("t", b"x"))).timestamp_ms
            broker.advance(60)
            assert broker.clock.wall_ms() - before >= 60_000
            with pytest.raises(ValueError, match="time does not go back"):
                broker.advance(-1)

    asyncio.run(main())
