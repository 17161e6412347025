"""Errors of records that nobody looks at, arguments that are wrong, and producers that are never closed."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from strandline.client import Producer
from strandline.client.errors import (
    ClosedError,
    InvalidTopicError,
    KafkaError,
    RecordTooLargeError,
    SerializationError,
    UnknownTopicError,
)
from strandline.client.sync import Admin
from strandline.client.sync import Producer as BlockingProducer
from strandline.testing import broker, running_broker

SMALL = {"max.message.bytes": "300"}
BIG = b"x" * 1000

WRONG: list[tuple[dict[str, Any], type[KafkaError]]] = [
    ({"topic": 5}, InvalidTopicError),
    ({"topic": None}, InvalidTopicError),
    ({"topic": ""}, InvalidTopicError),
    ({"topic": "bad topic!"}, InvalidTopicError),
    ({"value": "text"}, SerializationError),
    ({"value": {"a": 1}}, SerializationError),
    ({"key": 1}, SerializationError),
    ({"value": b"x" * 2_000_000}, RecordTooLargeError),
    ({"timestamp_ms": "now"}, SerializationError),
    ({"timestamp_ms": -5}, SerializationError),
    ({"timestamp_ms": 1 << 70}, SerializationError),
    ({"headers": ["one"]}, SerializationError),
    ({"headers": [("a", 1)]}, SerializationError),
    ({"partition": "0"}, UnknownTopicError),
    ({"partition": -1}, UnknownTopicError),
]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with running_broker() as server:
        with Admin(bootstrap_servers=server.bootstrap) as admin:
            admin.create_topic("small", configs=SMALL)
            admin.create_topic("good")
        yield server.bootstrap


@pytest.mark.parametrize(("wrong", "error"), WRONG, ids=lambda each: str(each)[:30])
def test_a_blocking_send_raises_at_once_and_the_producer_goes_on(
    bootstrap: str, wrong: dict[str, Any], error: type[KafkaError]
) -> None:
    with BlockingProducer(bootstrap_servers=bootstrap, max_block_ms=5000) as producer:
        producer.send_and_wait("good", b"before")
        with pytest.raises(error):
            producer.send(**{"topic": "good", "value": b"x", **wrong})
        assert producer.send("good", b"after").result(10).offset >= 0


@pytest.mark.parametrize(("wrong", "error"), WRONG, ids=lambda each: str(each)[:30])
def test_no_argument_kills_an_asyncio_producer(
    bootstrap: str, wrong: dict[str, Any], error: type[KafkaError]
) -> None:
    async def story() -> None:
        async with Producer(bootstrap_servers=bootstrap, max_block_ms=5000) as producer:
            await producer.send_and_wait("good", b"before")
            with pytest.raises(error):
                await producer.send(**{"topic": "good", "value": b"x", **wrong})
            with pytest.raises(error):
                producer.send_nowait(**{"topic": "good", "value": b"x", **wrong})
            assert (await producer.send_and_wait("good", b"after")).offset >= 0

    asyncio.run(story())


def test_flush_and_close_of_a_blocking_producer_raise_what_nobody_looked_at(bootstrap: str) -> None:
    producer = BlockingProducer(bootstrap_servers=bootstrap, linger_ms=50)
    looked_at = producer.send("small", BIG)
    producer.send("small", BIG)
    producer.send("small", BIG)
    with pytest.raises(RecordTooLargeError):
        looked_at.result(10)
    with pytest.raises(RecordTooLargeError, match="2 records were not written, and nobody looked"):
        producer.flush()
    producer.flush()  # an error is raised once
    assert producer.metrics()["record-unobserved-error-total"] == 2
    producer.send("small", BIG)
    with pytest.raises(RecordTooLargeError, match="1 record was not written"):
        producer.close()
    producer.close()


def test_a_with_block_raises_it_unless_it_ends_with_an_error_already(
    bootstrap: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RecordTooLargeError), BlockingProducer(bootstrap_servers=bootstrap) as producer:
        producer.send("small", BIG)
    with pytest.raises(ZeroDivisionError), BlockingProducer(bootstrap_servers=bootstrap) as producer:
        _ = producer.send("small", BIG), 1 / 0
    assert "1 record was not written" in caplog.text


def test_a_record_that_was_refused_before_it_had_a_batch_is_raised_too(bootstrap: str) -> None:
    with BlockingProducer(bootstrap_servers=bootstrap) as producer:
        producer.send("good", b"x", partition=7)
        with pytest.raises(UnknownTopicError, match="1 record was not written"):
            producer.flush()


def test_on_error_takes_them_instead(bootstrap: str) -> None:
    told: list[tuple[type[KafkaError], int]] = []
    with BlockingProducer(
        bootstrap_servers=bootstrap, on_error=lambda error, count: told.append((type(error), count))
    ) as producer:
        producer.send("small", BIG)
        producer.send("good", b"x", partition=7)
        producer.send("good", b"x")
        producer.flush()
    assert sorted(told, key=str) == [(RecordTooLargeError, 1), (UnknownTopicError, 1)]


def test_asyncio_the_same(bootstrap: str) -> None:
    async def story() -> None:
        told: list[int] = []
        async with Producer(bootstrap_servers=bootstrap, on_error=lambda _, count: told.append(count)) as one:
            await one.send("small", BIG)
            await one.flush()
        assert told == [1]
        other = Producer(bootstrap_servers=bootstrap, linger_ms=20)
        await other.start()
        promises = [await other.send("small", BIG) for _ in range(3)]
        waiting = asyncio.gather(*promises[:2], return_exceptions=True)
        await asyncio.sleep(0)
        with pytest.raises(RecordTooLargeError, match="1 record was not written"):
            await other.flush()
        assert [type(each) for each in await waiting] == [RecordTooLargeError] * 2
        (await other.send("small", BIG)).add_done_callback(lambda done: done.exception())
        await other.flush()
        await other.send("small", BIG)
        with pytest.raises(RecordTooLargeError):
            await other.close()

    asyncio.run(story())


def test_records_of_an_aborted_transaction_are_no_errors(bootstrap: str) -> None:
    with BlockingProducer(bootstrap_servers=bootstrap, transactional_id="vanishing") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("small", BIG)
        with pytest.raises(KafkaError):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("good", b"x")
        producer.commit_transaction()


def test_interceptors_do_not_count_as_looking(bootstrap: str) -> None:
    class Watches:
        def on_acknowledgement(self, metadata: object, error: KafkaError | None) -> None:
            return None

    with BlockingProducer(bootstrap_servers=bootstrap, interceptor_classes=[Watches()]) as producer:
        producer.send("small", BIG)
        with pytest.raises(RecordTooLargeError):
            producer.flush()


def test_a_flaw_in_the_sender_ends_the_producer_with_its_reason(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        producer = Producer(bootstrap_servers=bootstrap)
        await producer.start()
        await producer.send_and_wait("good", b"x")

        def flaw(*_: object) -> None:
            raise ZeroDivisionError("a flaw")

        monkeypatch.setattr(producer._sender, "_enqueue", flaw)
        with pytest.raises(KafkaError, match="cannot go on after ZeroDivisionError"):
            await producer.send_and_wait("good", b"y")
        with pytest.raises(KafkaError, match="cannot go on after ZeroDivisionError"):
            await producer.send("good", b"z")
        await producer.close()

    asyncio.run(story())


def test_a_flaw_in_the_refresher_is_told_and_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with broker() as b, Producer(bootstrap_servers=b.bootstrap) as producer:
            cluster = producer._cluster
            whole = cluster._refresh_once

            async def flaw() -> None:
                monkeypatch.setattr(cluster, "_refresh_once", whole)
                raise ZeroDivisionError("a flaw")

            monkeypatch.setattr(cluster, "_refresh_once", flaw)
            with pytest.raises(KafkaError, match="a flaw"):
                await producer.send("new", b"x")
            assert (await producer.send_and_wait("new", b"x")).offset == 0

    asyncio.run(story())


def test_a_producer_that_is_collected_with_records_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with broker() as b:
            producer = Producer(bootstrap_servers=b.bootstrap, linger_ms=60_000)
            await producer.start()
            await producer.send("t", b"x")
            await producer.send("t", b"y")

    asyncio.run(story())
    gc.collect()
    assert "a producer is gone with 2 records that were not acknowledged" in caplog.text


def test_an_interpreter_that_exits_with_records_says_so(bootstrap: str) -> None:
    script = textwrap.dedent(
        f"""
        from strandline.client.sync import Producer
        producer = Producer(bootstrap_servers={bootstrap!r}, linger_ms=60_000)
        producer.send("good", b"x")
        """
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0
    assert "a producer is gone with 1 record that was not acknowledged" in ended.stderr


def test_a_closed_producer_says_nothing(bootstrap: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    producer = BlockingProducer(bootstrap_servers=bootstrap)
    producer.send("good", b"x")
    producer.close()
    with pytest.raises(ClosedError):
        producer.send("good", b"x")
    del producer
    gc.collect()
    assert caplog.text == ""
