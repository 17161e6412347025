"""Faults in requests: which they strike and how often, on a process and on an embedded broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import pytest

from strandline.client import Consumer as AsyncConsumer
from strandline.client import Producer as AsyncProducer
from strandline.client.errors import KafkaError
from strandline.client.sync import Admin, Consumer, Producer
from strandline.testing import BrokerProcess, broker, running_broker
from strandline.testing.fault_channels import BrokerGone
from strandline.testing.faults import BrokerFaults, FaultError

_names = count()


@pytest.fixture(scope="module")
def process() -> Iterator[BrokerProcess]:
    with running_broker() as started:
        yield started


@pytest.fixture
def faults(process: BrokerProcess) -> Iterator[BrokerFaults]:
    yield process.faults
    process.faults.clear()


@pytest.fixture
def topic(process: BrokerProcess) -> str:
    name = f"t{next(_names)}"
    with Admin(process.client_settings) as admin:
        admin.create_topic(name, partitions=1)
    return name


def write(process: BrokerProcess, topic: str, number: int = 1, **settings: object) -> list[int]:
    """Writes records one after the other, each in a request of its own; their offsets."""
    with Producer(process.client_settings, retry_backoff_ms=10, **settings) as producer:  # type: ignore[arg-type]
        return [producer.send(topic, b"x").result(30).offset for _ in range(number)]


def test_nth_and_times_say_which_matching_requests_are_struck(
    process: BrokerProcess, faults: BrokerFaults, topic: str
) -> None:
    fault = faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic=topic, nth=3, times=2)
    assert write(process, topic, 2) == [0, 1]
    assert (fault.fired, fault.seen) == (0, 2)
    with pytest.raises(AssertionError, match="has not fired at all: 0 fired, 2 matching"):
        fault.assert_fired()
    assert write(process, topic, 2) == [2, 3]
    fault.assert_fired(2)
    assert fault.seen == 6, "two of the four were sent three times in all"


def test_probability_is_decided_by_the_seed(process: BrokerProcess, faults: BrokerFaults, topic: str) -> None:
    struck = []
    for _ in range(2):
        with faults.delay("Produce", topic=topic, ms=1, probability=0.5, seed=7, times=None) as fault:
            write(process, topic, 20)
            struck.append(fault.fired)
            assert fault.seen == 20
    assert struck[0] == struck[1]
    assert 3 < struck[0] < 17


@pytest.mark.parametrize(
    ("matcher", "other"),
    [({"client_id": "mine"}, {"client_id": "other"}), ({"version": 13}, {"version": 12})],
)
def test_matchers_tell_requests_apart(
    process: BrokerProcess,
    faults: BrokerFaults,
    topic: str,
    matcher: dict[str, object],
    other: dict[str, object],
) -> None:
    with (
        faults.delay("Produce", ms=1, topic=topic, times=None, **matcher) as mine,
        faults.delay("Produce", ms=1, topic=topic, times=None, **other) as others,
    ):
        write(process, topic, client_id="mine")
        assert (mine.fired, others.fired) == (1, 0)
        assert mine.strikes[0]["client_id"] == "mine"
        assert mine.strikes[0]["api"] == "Produce"


def test_one_connection_can_be_struck(process: BrokerProcess, faults: BrokerFaults, topic: str) -> None:
    with Producer(process.client_settings, retry_backoff_ms=10) as producer:
        with faults.delay("Produce", ms=1) as seen:
            producer.send(topic, b"x").result(30)
        address = seen.strikes[0]["connection"]
        with faults.disconnect("Produce", connection=address, times=None) as fault:
            producer.send(topic, b"x").result(30)
            assert fault.fired == 1, "the retry comes by another connection"


def test_commit_of_one_group_is_refused_and_the_other_is_not(
    process: BrokerProcess, faults: BrokerFaults, topic: str
) -> None:
    write(process, topic, 3)
    settings = {**process.client_settings, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    with faults.error("OffsetCommit", "GROUP_AUTHORIZATION_FAILED", group="refused") as fault:
        for group in ("refused", "taken"):
            with Consumer(settings, group_id=group) as consumer:
                consumer.subscribe([topic])
                read = 0
                while read < 3:
                    read += len(consumer.poll(1.0))
                if group == "taken":
                    consumer.commit()
                else:
                    with pytest.raises(KafkaError, match="GROUP_AUTHORIZATION_FAILED"):
                        consumer.commit()
        fault.assert_fired(1)


def test_response_that_is_held_after_the_request_is_applied(
    process: BrokerProcess, faults: BrokerFaults, topic: str
) -> None:
    with (
        Producer(process.client_settings) as producer,
        Consumer(process.client_settings) as consumer,
        faults.barrier("Produce", topic=topic, applied=True) as barrier,
    ):
        sent = producer.send(topic, b"x")
        barrier.wait_held()
        ((_, end),) = consumer.end_offsets([(topic, 0)]).items()
        assert end == 1, "it is applied"
        with pytest.raises(TimeoutError, match="has held 1 of 2; matching requests: 1"):
            barrier.wait_held(2, timeout=0.05)
        assert not sent.done()
        barrier.release()
        assert sent.result(10).offset == 0


def test_error_after_a_request_is_applied_leaves_its_record(
    process: BrokerProcess, faults: BrokerFaults, topic: str
) -> None:
    with faults.error("Produce", "INVALID_REQUIRED_ACKS", topic=topic, applied=True) as fault:
        with pytest.raises(KafkaError, match="INVALID_REQUIRED_ACKS"):
            write(process, topic)
        fault.assert_fired(1)
    with Consumer(process.client_settings) as consumer:
        assert list(consumer.end_offsets([(topic, 0)]).values()) == [1]


def test_metadata_of_one_topic_is_refused(process: BrokerProcess, faults: BrokerFaults, topic: str) -> None:
    with faults.error("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", topic=topic, times=2) as fault:
        assert write(process, topic) == [0]
        fault.assert_fired(2)


def test_black_hole_ends_when_it_is_cleared(process: BrokerProcess, faults: BrokerFaults, topic: str) -> None:
    hole = faults.black_hole("Produce", client_id="lost")
    with Producer(process.client_settings, client_id="lost", retry_backoff_ms=10) as producer:
        sent = producer.send(topic, b"x")
        hole.wait_fired()
        assert write(process, topic, client_id="found") == [0]
        assert not sent.done()
        hole.clear()
        assert sent.result(30).offset == 1


def test_fault_of_nodes_does_not_strike_clients(
    process: BrokerProcess, faults: BrokerFaults, topic: str
) -> None:
    with faults.disconnect("Produce", from_nodes=True, times=None) as fault:
        write(process, topic)
        assert (fault.fired, fault.seen) == (0, 0)


def test_faults_end_with_the_life_of_the_broker() -> None:
    with running_broker() as own:
        fault = own.faults.disconnect("Produce", times=None)
        own.kill()
        with pytest.raises(BrokerGone):
            _ = fault.fired
        own.start()
        with Admin(own.client_settings) as admin:
            admin.create_topic("t", partitions=1)
        assert write(own, "t") == [0]
        with pytest.raises(FaultError, match="there is no fault 1"):
            _ = fault.fired


def test_faults_strike_over_tls_and_after_a_login_too() -> None:
    with running_broker(security="SASL_SSL") as secured:
        with Admin(secured.client_settings) as admin:
            admin.create_topic("t", partitions=1)
        faults = secured.faults
        with (
            faults.tear("Produce", bytes=9) as torn,
            faults.error("Produce", "NOT_LEADER_OR_FOLLOWER") as refused,
            faults.disconnect("Produce", applied=True) as cut,
        ):
            assert write(secured, "t") == [0]
            for fault in (torn, refused, cut):
                fault.assert_fired(1)


def test_wrong_description_is_an_error_at_once(faults: BrokerFaults) -> None:
    with pytest.raises(FaultError, match="do you mean"):
        faults.disconnect("Produkt")


def test_embedded_broker_has_the_same_faults_for_asyncio() -> None:
    async def main() -> None:
        async with broker() as b, AsyncProducer(bootstrap_servers=b.bootstrap) as producer:
            await (await producer.send("t", b"0"))
            async with b.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t") as refused:
                await (await producer.send("t", b"1"))
                refused.assert_fired(1)
            async with b.faults.barrier("Produce", topic="t") as barrier:
                sent = await producer.send("t", b"2")
                await barrier.await_held()
                with pytest.raises(RuntimeError, match="await_held"):
                    barrier.wait_held()
                barrier.release()
                assert (await sent).offset == 2
            async with (
                b.faults.drop_response("Fetch", topic="t") as lost,
                AsyncConsumer(bootstrap_servers=b.bootstrap, request_timeout_ms=1000) as consumer,
            ):
                consumer.assign([("t", 0)])
                consumer.seek_to_beginning()
                values: list[bytes | None] = []
                while len(values) < 3:
                    values += [record.value for record in await consumer.poll(1.0)]
                assert values == [b"0", b"1", b"2"]
                await lost.await_fired()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_held_requests_do_not_keep_an_embedded_broker_from_ending() -> None:
    async def main() -> None:
        async with broker() as b:
            producer = AsyncProducer(
                bootstrap_servers=b.bootstrap, request_timeout_ms=500, delivery_timeout_ms=1000, linger_ms=0
            )
            await producer.start()
            barrier = b.faults.barrier("Produce")
            sent = await producer.send("t", b"0")
            await barrier.await_held()
        with suppress(KafkaError):  # it went on, and the broker may have ended before its response
            await sent
        await producer.close()

    asyncio.run(asyncio.wait_for(main(), 30))
