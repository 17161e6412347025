"""The client's log: what an application hears of through `logging`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator

import pytest

from strandline.client import Consumer, Producer, TopicPartition
from strandline.client.errors import ConnectionFailedError, KafkaError
from strandline.client.sync import Admin
from strandline.client.sync import Consumer as BlockingConsumer
from strandline.testing import BrokerProcess, broker, running_broker
from tests.waiting import eventually


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with running_broker(auto_create_topics_enable="false", group_initial_rebalance_delay_ms="0") as server:
        with Admin(bootstrap_servers=server.bootstrap) as admin:
            admin.create_topic("e1")
        yield server.bootstrap


def test_a_refused_connection_is_told_at_once_and_then_rarely(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        with pytest.raises(ConnectionFailedError):
            await Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=1000).start()

    asyncio.run(story())
    lines = [each for each in caplog.records if "cannot be reached" in each.getMessage()]
    assert len(lines) == 1
    assert lines[0].name == "strandline.client.connections"
    assert lines[0].levelno == logging.WARNING
    assert "bootstrap server at 127.0.0.1:1" in lines[0].getMessage()


def test_a_topic_that_does_not_exist_is_told_once(bootstrap: str, caplog: pytest.LogCaptureFixture) -> None:
    with BlockingConsumer(bootstrap_servers=bootstrap, group_id="g1") as consumer:
        consumer.subscribe(["mispelled"])
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            assert consumer.poll(0.1) == []
    lines = [each for each in caplog.messages if "topic mispelled does not exist" in each]
    assert len(lines) == 1


def test_a_partition_that_does_not_exist_is_told(bootstrap: str, caplog: pytest.LogCaptureFixture) -> None:
    with BlockingConsumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([TopicPartition("e1", 9)])
        eventually(lambda: consumer.poll(0.1) == [] and "e1-9" in caplog.text)


def test_rebalances_and_coordinators_are_told(bootstrap: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "strandline.client")
    with BlockingConsumer(bootstrap_servers=bootstrap, group_id="g2") as consumer:
        consumer.subscribe(["e1"])
        eventually(lambda: consumer.poll(0.1) == [] and bool(consumer.assignment()))
    assert "the coordinator of group g2 is broker 1 at" in caplog.text
    assert "group g2: partitions assigned: e1-0" in caplog.text
    assert "group g2: partitions revoked: e1-0" in caplog.text


def test_a_member_that_does_not_poll_is_told(bootstrap: str, caplog: pytest.LogCaptureFixture) -> None:
    with BlockingConsumer(
        bootstrap_servers=bootstrap, group_id="g3", max_poll_interval_ms=600, heartbeat_interval_ms=200
    ) as consumer:
        consumer.subscribe(["e1"])
        eventually(lambda: consumer.poll(0.1) == [] and bool(consumer.assignment()))
        eventually(lambda: "did not poll within max.poll.interval.ms (600 ms)" in caplog.text)


def test_expired_batches_and_lost_connections_are_told(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strandline.client")
    server = BrokerProcess(tmp_path_factory.mktemp("log") / "data")
    server.start()

    async def story() -> None:
        producer = Producer(
            bootstrap_servers=server.bootstrap, request_timeout_ms=400, delivery_timeout_ms=500, linger_ms=0
        )
        await producer.start()
        await producer.send_and_wait("t", b"x")
        server.kill()
        with pytest.raises(KafkaError):
            await producer.send_and_wait("t", b"y")
        await producer.close(0)

    asyncio.run(story())
    assert "the connection to broker 1 at" in caplog.text
    assert "were not acknowledged within delivery.timeout.ms" in caplog.text


def test_a_flaw_in_a_fetch_is_raised_by_the_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with broker() as b, Producer(bootstrap_servers=b.bootstrap) as producer:
            await producer.send_and_wait("t", b"x")
            async with Consumer(bootstrap_servers=b.bootstrap, auto_offset_reset="earliest") as consumer:
                consumer.assign([TopicPartition("t", 0)])
                assert len(await consumer.poll(10)) == 1

                async def flaw(*_: object) -> None:
                    raise ZeroDivisionError("a flaw")

                assert consumer._engine is not None
                monkeypatch.setattr(consumer._engine._fetcher, "_send_fetch", flaw)
                await producer.send_and_wait("t", b"y")
                with pytest.raises(KafkaError, match="ZeroDivisionError"):
                    await consumer.poll(10)

    asyncio.run(story())
