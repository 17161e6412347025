"""Errors are raised at once or within their timeout, with Kafka's code, and nothing is dropped in silence."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from strandline.client import Admin, KafkaError, Producer
from strandline.client.errors import (
    BufferFullError,
    ClosedError,
    ConfigError,
    ConnectionFailedError,
    DeliveryTimeoutError,
    ErrorCode,
    IllegalStateError,
    InvalidTopicError,
    RecordTooLargeError,
    SerializationError,
    UnknownTopicError,
    UnresolvedBootstrapError,
    WrongClusterError,
)
from tests.client.reading import create, run

# What a setting below it is told from, on a machine however busy.
DEFAULT_MAX_BLOCK_S = 60
DEFAULT_DELIVERY_TIMEOUT_S = 120


@contextmanager
def nobody() -> Iterator[str]:
    """Yields an address at which nobody listens, and nobody else will."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def refused(client: Callable[[], Any]) -> tuple[KafkaError, float]:
    """Returns the error of a client that starts, and the seconds until it came."""

    async def main() -> None:
        await client().start()

    start = time.monotonic()
    with pytest.raises(KafkaError) as caught:
        run(main())
    return caught.value, time.monotonic() - start


def test_unreachable_bootstrap_servers_are_reported_within_max_block_ms() -> None:
    with nobody() as address:
        error, took_s = refused(lambda: Producer(bootstrap_servers=address, max_block_ms=300))
    assert isinstance(error, ConnectionFailedError)
    assert "bootstrap server" in str(error)
    assert took_s < DEFAULT_MAX_BLOCK_S
    assert (error.code, error.retriable) == (ErrorCode.NETWORK_EXCEPTION, True)


@pytest.mark.parametrize("servers", ["nowhere.invalid:9092", "nowhere.invalid:9092,a..b:1"])
def test_bootstrap_servers_without_any_address_are_refused_at_once(servers: str) -> None:
    error, took_s = refused(lambda: Admin(bootstrap_servers=servers))
    assert isinstance(error, UnresolvedBootstrapError)
    assert re.search(r"no address is known for nowhere\.invalid.*correct the names", str(error))
    assert took_s < DEFAULT_MAX_BLOCK_S / 2


def test_a_client_that_starts_may_wait_for_the_address_of_its_servers() -> None:
    error, took_s = refused(
        lambda: Admin(bootstrap_servers="nowhere.invalid:1", bootstrap_resolve_timeout_ms=700)
    )
    assert isinstance(error, UnresolvedBootstrapError)
    assert "nowhere" in str(error)
    assert took_s >= 0.7


def test_one_bootstrap_server_with_an_address_is_enough_to_go_on_trying() -> None:
    with nobody() as address:
        servers = f"nowhere.invalid:9092,{address}"
        error, took_s = refused(lambda: Producer(bootstrap_servers=servers, max_block_ms=700))
    assert isinstance(error, ConnectionFailedError)
    assert not isinstance(error, UnresolvedBootstrapError)
    assert took_s >= 0.7


def test_a_server_that_never_responds_does_not_hang_the_client() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        _, took_s = refused(lambda: Producer(bootstrap_servers=address, max_block_ms=300))
    assert took_s < DEFAULT_MAX_BLOCK_S


def test_another_cluster_than_expected_is_refused(bootstrap: str) -> None:
    async def main() -> None:
        settings = {"bootstrap.servers": bootstrap, "cluster.id": "somebody-elses", "max.block.ms": 3000}
        await Producer(settings).start()

    with pytest.raises(WrongClusterError, match="somebody-elses"):
        run(main())


def test_an_unknown_topic_is_an_error_after_max_block_ms(bootstrap: str, topic: str) -> None:
    async def main() -> float:
        async with Producer(bootstrap_servers=bootstrap, max_block_ms=400) as producer:
            start = time.monotonic()
            with pytest.raises(UnknownTopicError) as caught:
                await producer.send(topic, b"x")
            assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return time.monotonic() - start

    assert 0.3 < run(main()) < DEFAULT_MAX_BLOCK_S


def test_an_impossible_topic_name_is_an_error_at_once(bootstrap: str) -> None:
    async def main() -> None:
        async with Producer(bootstrap_servers=bootstrap) as producer:
            with pytest.raises(InvalidTopicError):
                await producer.send("no/slash", b"x")

    run(main(), seconds_max=DEFAULT_MAX_BLOCK_S)


def test_a_partition_that_does_not_exist_is_an_error(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        await create(bootstrap, topic, partitions=2)
        async with Producer(bootstrap_servers=bootstrap) as producer:
            for partition in (2, -1):
                with pytest.raises(UnknownTopicError, match="which has 2"):
                    await producer.send(topic, b"x", partition=partition)

    run(main(), seconds_max=DEFAULT_MAX_BLOCK_S)


def test_a_record_beyond_max_request_size_is_refused_before_it_is_taken(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        await create(bootstrap, topic)
        async with Producer(bootstrap_servers=bootstrap, max_request_size=10_000) as producer:
            with pytest.raises(RecordTooLargeError, match=r"max\.request\.size"):
                await producer.send(topic, b"x" * 10_000)
            assert (await producer.send_and_wait(topic, b"x" * 9_000)).offset == 0

    run(main())


def test_a_record_beyond_the_topics_limit_fails_and_those_around_it_do_not(
    bootstrap: str, topic: str
) -> None:
    async def main() -> None:
        await create(bootstrap, topic, max_message_bytes="5000")
        async with Producer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
            before = await producer.send(topic, b"before")
            large = await producer.send(topic, b"x" * 6000)
            after = [await producer.send(topic, b"after %d" % number) for number in range(5)]
            with pytest.raises(RecordTooLargeError) as caught:
                await large
            assert (caught.value.code, caught.value.retriable) == (ErrorCode.MESSAGE_TOO_LARGE, False)
            offsets = [(await before).offset] + [(await each).offset for each in after]
            assert offsets == list(range(6))

    run(main())


def test_a_serializer_that_raises_is_a_typed_error_and_the_producer_goes_on(
    bootstrap: str, topic: str
) -> None:
    async def main() -> None:
        await create(bootstrap, topic)
        settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "value.serializer": "json"}
        async with Producer(settings) as producer:
            with pytest.raises(SerializationError) as caught:
                await producer.send(topic, {"a": object()})
            assert isinstance(caught.value.__cause__, TypeError)
            assert (await producer.send_and_wait(topic, {"a": 1})).offset == 0
        async with Producer(bootstrap_servers=bootstrap) as plain:
            for value, headers in (("text", None), (b"x", [("a", 1)]), (b"x", ["a"]), (b"x", {1: b"x"})):
                with pytest.raises(SerializationError):
                    await plain.send(topic, value, headers=headers)

    run(main())


def test_a_closed_producer_and_one_not_started_say_so(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        producer = Producer(bootstrap_servers=bootstrap)
        with pytest.raises(IllegalStateError, match="not been started"):
            await producer.send(topic, b"x")
        await producer.close()
        await producer.start()
        await producer.close()
        await producer.close()
        for call in (producer.send(topic, b"x"), producer.flush()):
            with pytest.raises(ClosedError):
                await call
        admin = Admin(bootstrap_servers=bootstrap)
        await admin.start()
        await admin.close()
        await admin.close()
        with pytest.raises(ClosedError):
            await admin.list_topics()

    run(main())


def test_full_memory_waits_and_then_says_why(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        await create(bootstrap, topic)
        settings = {"buffer.memory": 3000, "max.block.ms": 300, "linger.ms": 0}
        async with Producer(settings, bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait(topic, b"x")
            first = producer.send_nowait(topic, b"x" * 2000)
            with pytest.raises(BufferFullError, match=r"buffer\.memory"):
                producer.send_nowait(topic, b"x" * 2000)
            second = await producer.send(topic, b"x" * 2000)  # waits for the first
            assert [(await first).offset, (await second).offset] == [1, 2]

    run(main())


@pytest.mark.parametrize("how", ["expires", "closed"])
def test_every_promise_is_kept_when_the_broker_is_gone(topic: str, how: str) -> None:
    """The broker stops responding: each record fails within delivery.timeout.ms, or at once when the producer
    closes."""
    from strandline.testing import running_broker

    async def main(broker: Any) -> None:
        settings = {
            "delivery.timeout.ms": 900,
            "request.timeout.ms": 300,
            "linger.ms": 0,
            "max.block.ms": 500,
            "retry.backoff.ms": 20,
        }
        producer = Producer(settings, bootstrap_servers=broker.bootstrap)
        await producer.start()
        await producer.send_and_wait(topic, b"x")
        broker.kill()
        start = time.monotonic()
        promises = [producer.send_nowait(topic, b"x" * 1000) for _ in range(50)]
        if how == "closed":
            await asyncio.sleep(0.1)
            await producer.close(0)
        for promise in promises:
            with pytest.raises(DeliveryTimeoutError if how == "expires" else ClosedError):
                await promise
        elapsed = time.monotonic() - start
        assert elapsed < DEFAULT_DELIVERY_TIMEOUT_S
        assert producer.metrics()["buffer-available-bytes"] == 33_554_432
        await producer.close()

    with running_broker() as broker:
        run(main(broker))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"lingr.ms": 5}, ("linger.ms",)),
        ({"enable.idempotence": True, "acks": 1}, ("acks", "all")),
        ({"enable.idempotence": True, "max.in.flight.requests.per.connection": 6}, ("5",)),
        ({"transactional.id": "t", "enable.idempotence": False}, ("enable.idempotence",)),
        ({"transactional.id": "t", "acks": 0}, ("acks",)),
        ({"delivery.timeout.ms": 10}, ("linger.ms", "request.timeout.ms")),
        ({"security.protocol": "SASL_SSL"}, ("sasl.mechanism", "SCRAM-SHA-256")),
        ({"compression.type": "brotli"}, ("zstd",)),
        ({"acks": 2}, ("all",)),
        ({"bootstrap.servers": "nowhere:port"}, ("host:port",)),
        ({"value.serializer": "xml"}, ("json",)),
        ({"partitioner.class": "best"}, ("round_robin",)),
        ({"batch.size": [1]}, ("batch.size",)),
    ],
)
def test_settings_that_cannot_stand_name_the_fix(settings: dict[str, Any], words: tuple[str, ...]) -> None:
    async def main() -> None:
        await Producer({"bootstrap.servers": "127.0.0.1:1", "max.block.ms": 1, **settings}).start()

    with pytest.raises(ConfigError) as caught:
        run(main())
    assert all(word in str(caught.value) for word in words)
