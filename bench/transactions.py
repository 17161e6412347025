"""Measures transactions beside Apache Kafka's: `python -m bench.transactions`, `--rounds N`, `--quick` for one round.

librdkafka has transaction version 1, our own client version 2 (KIP-890): the rows name the client.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from statistics import median

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.pairs import Benchmark, Scenario, main
from bench.peers import Peer
from bench.topics import log_bytes
from strandline.client.producer.producer import Producer as OwnProducer
from tests.oracle.readiness import wait_until_writable

SETTINGS = {
    "transaction.state.log.num.partitions": "10",
    "offsets.topic.num.partitions": "10",
    "group.initial.rebalance.delay.ms": "0",
}
ABOUT = """Both brokers have ten partitions of `__transaction_state` and `__consumer_offsets` and one node; Kafka runs
with the heap and options of its own scripts, after a warm-up. A transaction writes one record of 100 bytes to each of
its partitions; the time of a commit is that of the client's call. The cost of exactly-once in throughput is the
difference of the last two rows, where the same records of 1 kB are written by one idempotent producer, in transactions
of a thousand and without. Published figures say 20 to 30 % for Kafka."""
PARTITIONS = (1, 10, 100)
RATE_S = 2.0
COMMITS = 300
IDS = 30
LOOP_RECORDS, LOOP_BATCH = 6_000, 100
BULK_RECORDS, BULK_BATCH = 40_000, 1_000
RECORD, LARGE_RECORD = b"x" * 100, b"x" * 1000
_WAIT_S = 60


def _topic(partitions: int) -> str:
    return f"over-{partitions}"


def _producer(peer: Peer, transactional_id: str | None = None) -> Producer:
    settings: dict[str, str | int | bool] = {
        "bootstrap.servers": peer.bootstrap,
        "log_level": 0,
        "linger.ms": 0,
        "enable.idempotence": True,
    }
    if transactional_id is not None:
        settings["transactional.id"] = transactional_id
    producer = Producer(settings)
    if transactional_id is not None:
        producer.init_transactions(_WAIT_S)
    return producer


def _one_transaction(producer: Producer, partitions: int) -> float:
    """Commits one transaction, and returns the seconds of the commit."""
    producer.begin_transaction()
    for partition in range(partitions):
        producer.produce(_topic(partitions), RECORD, partition=partition)
    assert producer.flush(_WAIT_S) == 0
    begun_s = time.perf_counter()
    producer.commit_transaction(_WAIT_S)
    return time.perf_counter() - begun_s


async def rate(peer: Peer, name: str, partitions: int) -> float:
    """Returns the transactions per second, one after another."""

    def run() -> float:
        producer = _producer(peer, name)
        _one_transaction(producer, partitions)
        begun_s, count = time.perf_counter(), 0
        while time.perf_counter() - begun_s < RATE_S:
            _one_transaction(producer, partitions)
            count += 1
        return count / (time.perf_counter() - begun_s)

    return await asyncio.to_thread(run)


async def own_rate(peer: Peer, name: str, partitions: int) -> float:
    producer = OwnProducer(bootstrap_servers=peer.bootstrap, transactional_id=name, linger_ms=0)
    await producer.start()
    await producer.init_transactions()
    begun_s, count = 0.0, -1
    while count < 0 or time.perf_counter() - begun_s < RATE_S:
        if count < 0:
            count, begun_s = 0, time.perf_counter()
        producer.begin_transaction()
        for partition in range(partitions):
            await producer.send(_topic(partitions), RECORD, partition=partition)
        await producer.commit_transaction()
        count += 1
    took_s = time.perf_counter() - begun_s
    await producer.close()
    return count / took_s


async def commit_p99(peer: Peer, name: str, partitions: int) -> float:
    def run() -> float:
        producer = _producer(peer, name)
        took_s = sorted(_one_transaction(producer, partitions) for _ in range(COMMITS))
        return took_s[math.ceil(0.99 * COMMITS) - 1] * 1000

    return await asyncio.to_thread(run)


async def init_time(peer: Peer, name: str) -> float:
    """Returns the milliseconds in which a new producer gets its id and epoch; the median of several."""

    def run() -> float:
        took_s = []
        for number in range(IDS):
            begun_s = time.perf_counter()
            _producer(peer, f"{name}-{number}")
            took_s.append(time.perf_counter() - begun_s)
        return median(took_s) * 1000

    return await asyncio.to_thread(run)


async def marker_bytes(peer: Peer, name: str) -> float:
    """Returns the bytes that a commit adds to a partition's log."""

    def run() -> float:
        producer = _producer(peer, name)
        topic = _topic(1)
        producer.begin_transaction()
        producer.produce(topic, RECORD, partition=0)
        assert producer.flush(_WAIT_S) == 0
        before = log_bytes(peer, topic)
        producer.commit_transaction(_WAIT_S)
        deadline = time.monotonic() + _WAIT_S
        while log_bytes(peer, topic) == before:  # a commit is answered before its markers are written
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return float(log_bytes(peer, topic) - before)

    return await asyncio.to_thread(run)


async def loop_rate(peer: Peer, name: str) -> float:
    """Returns the records per second that are read, transformed and written, with their offsets in the transaction."""

    def run() -> float:
        consumer = Consumer(
            {
                "bootstrap.servers": peer.bootstrap,
                "group.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        consumer.subscribe(["in"])
        producer = _producer(peer, name)
        done, begun_s = 0, 0.0
        while done < LOOP_RECORDS:
            records = consumer.consume(LOOP_BATCH, timeout=0.05)
            if not records:
                continue
            begun_s = begun_s or time.perf_counter()
            producer.begin_transaction()
            for record in records:
                producer.produce("out", (record.value() or b"").upper(), partition=record.partition())
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(
                [
                    TopicPartition(each.topic, each.partition, each.offset)
                    for each in positions
                    if each.offset >= 0
                ],
                consumer.consumer_group_metadata(),
                _WAIT_S,
            )
            producer.commit_transaction(_WAIT_S)
            done += len(records)
        took_s = time.perf_counter() - begun_s
        consumer.close()
        return done / took_s

    return await asyncio.to_thread(run)


async def bulk_rate(peer: Peer, name: str, *, is_transactional: bool) -> float:
    def run() -> float:
        producer = _producer(peer, name if is_transactional else None)
        begun_s = time.perf_counter()
        for first in range(0, BULK_RECORDS, BULK_BATCH):
            if is_transactional:
                producer.begin_transaction()
            for number in range(first, first + BULK_BATCH):
                producer.produce(_topic(10), LARGE_RECORD, partition=number % 10)
            if is_transactional:
                producer.commit_transaction(_WAIT_S)
            else:
                producer.poll(0)
        assert producer.flush(_WAIT_S) == 0
        return BULK_RECORDS / (time.perf_counter() - begun_s)

    return await asyncio.to_thread(run)


def prepare(peer: Peer) -> None:
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 0})
    topics = {_topic(count): count for count in PARTITIONS} | {"in": 1, "out": 1}
    for created in admin.create_topics([NewTopic(topic, n, 1) for topic, n in topics.items()]).values():
        created.result(_WAIT_S)
    for topic, count in topics.items():
        wait_until_writable(peer.bootstrap, topic, partitions=count)
    producer = Producer({"bootstrap.servers": peer.bootstrap, "log_level": 0})
    for number in range(LOOP_RECORDS):
        producer.produce("in", f"record {number}".encode())
    assert producer.flush(_WAIT_S) == 0


def _by_partitions(
    name: str, what: str, measure: Callable[[Peer, str, int], Awaitable[float]], figure: str = "per_s"
) -> Iterator[Scenario]:
    """Returns the scenarios for one and for many partitions; `what` has a placeholder for their number."""
    for count in PARTITIONS:
        yield Scenario(
            name=f"{name}-{count}",
            what=what.format(f"{count} partition{'s' if count > 1 else ''}"),
            figure=figure,
            more_is_better=figure == "per_s",
            measure=lambda peer, name, count=count: measure(peer, name, count),  # type: ignore[misc]
        )


SCENARIOS = (
    Scenario(
        name="init",
        what="new transactional id to producer id and epoch",
        figure="ms",
        more_is_better=False,
        measure=init_time,
    ),
    *_by_partitions("rate", "transactions per second, {} (librdkafka)", rate),
    *_by_partitions("own-rate", "transactions per second, {} (our client)", own_rate),
    *_by_partitions("commit", "p99 of a commit, {} (librdkafka)", commit_p99, figure="p99_ms"),
    Scenario(
        name="loop",
        what="records per second, read, transformed and written by hundreds (librdkafka)",
        figure="per_s",
        more_is_better=True,
        measure=loop_rate,
    ),
    Scenario(
        name="marker",
        what="bytes of a marker",
        figure="bytes",
        more_is_better=False,
        measure=marker_bytes,
    ),
    Scenario(
        name="bulk-transactions",
        what="records of 1 kB per second, in transactions of 1,000",
        figure="per_s",
        more_is_better=True,
        measure=lambda peer, name: bulk_rate(peer, name, is_transactional=True),
    ),
    Scenario(
        name="bulk-plain",
        what="records of 1 kB per second, without transactions",
        figure="per_s",
        more_is_better=True,
        measure=lambda peer, name: bulk_rate(peer, name, is_transactional=False),
    ),
)

BENCHMARK = Benchmark(
    name="transactions",
    title="Transactions beside Apache Kafka",
    about=ABOUT,
    settings=SETTINGS,
    scenarios=SCENARIOS,
    prepare=prepare,
)

if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
