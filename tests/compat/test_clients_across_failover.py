"""Java, librdkafka, kafka-python and aiokafka keep producing and consuming when the leader is killed."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer

from strandline.testing.clusters import Cluster, running_cluster
from tests.compat.clients.kafka_python_client import KafkaConsumer, KafkaProducer, TopicPartition
from tests.oracle.kafka_tools import KafkaTools
from tests.system.cluster import story
from tests.system.cluster.story import create, shown, until_in_sync
from tests.waiting import eventually

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

COUNT = 600
PAUSE_S = 0.01
SECONDS_MAX = 60.0
READ_SECONDS_MAX = 180.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster(nodes=3, auto_leader_rebalance_enable="false") as cluster:
        yield cluster


class Work:
    """The numbers that a client writes: until the story is over, so that none is done before the leader dies.

    One that is could stop in that very moment: aiokafka's consumer then tries to commit for ever, and has nobody to
    commit to.
    """

    def __init__(self, over: threading.Event) -> None:
        self._over = over
        self.count: float = math.inf  # unknown as long as it is written

    def numbers(self) -> Iterator[int]:
        number = 0
        while number < COUNT or not self._over.is_set():
            yield number
            number += 1
        self.count = number

    def is_read(self, found: list[str]) -> bool:
        return len(set(found)) >= self.count


class Pair:
    """A producer and a consumer of one kind of client at work on a topic of their own."""

    def __init__(
        self, kind: str, write: Callable[[], None], read: Callable[[], list[str]], work: Work | None = None
    ) -> None:
        self.kind = kind
        self._work = work
        self.read: list[str] = []
        self.errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._guarded, args=(write,)),
            threading.Thread(target=self._guarded, args=(lambda: self.read.extend(read()),)),
        ]
        for thread in self._threads:
            thread.start()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.errors.append(error)

    def finish(self) -> None:
        for thread in self._threads:
            thread.join(READ_SECONDS_MAX + 10)
        assert self.errors == [], (self.kind, self.errors)
        count = COUNT if self._work is None else int(self._work.count)
        assert sorted(set(map(int, self.read))) == list(range(count)), self.kind


def librdkafka(bootstrap: str, work: Work) -> Pair:
    def write() -> None:
        failures: list[object] = []
        producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0, "log_level": 0}
        )
        for number in work.numbers():
            producer.produce(
                "librdkafka", str(number), partition=0, on_delivery=lambda e, _: e and failures.append(e)
            )
            producer.poll(PAUSE_S)
        assert producer.flush(30) == 0
        assert failures == []

    def read() -> list[str]:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "librdkafka",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        consumer.subscribe(["librdkafka"])
        found: list[str] = []
        deadline = time.monotonic() + READ_SECONDS_MAX
        while not work.is_read(found) and time.monotonic() < deadline:
            messages = [message for message in consumer.consume(100, 0.1) if message.error() is None]
            found += [(message.value() or b"").decode() for message in messages]
        consumer.close()
        return found

    return Pair("librdkafka", write, read, work)


def kafka_python(bootstrap: str, work: Work) -> Pair:
    def write() -> None:
        producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", retries=1000, linger_ms=0)
        sent = []
        for number in work.numbers():
            sent.append(producer.send("kafka-python", str(number).encode(), partition=0))
            time.sleep(PAUSE_S)
        for future in sent:
            future.get(30)
        producer.close()

    def read() -> list[str]:
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None)
        consumer.assign([TopicPartition("kafka-python", 0)])
        found: list[str] = []
        deadline = time.monotonic() + READ_SECONDS_MAX
        while not work.is_read(found) and time.monotonic() < deadline:
            for records in consumer.poll(timeout_ms=100).values():
                found += [record.value.decode() for record in records]
        consumer.close()
        return found

    return Pair("kafka-python", write, read, work)


def aiokafka(bootstrap: str, work: Work) -> Pair:
    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, linger_ms=0)
        await producer.start()
        sent = []
        for number in work.numbers():
            sent.append(await producer.send("aiokafka", str(number).encode(), partition=0))
            await asyncio.sleep(PAUSE_S)
        await asyncio.wait_for(asyncio.gather(*sent), 30)
        await producer.stop()

    async def read() -> list[str]:
        consumer = AIOKafkaConsumer(
            "aiokafka", bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id="aiokafka"
        )
        await consumer.start()
        found: list[str] = []
        deadline = time.monotonic() + READ_SECONDS_MAX
        while not work.is_read(found) and time.monotonic() < deadline:
            for records in (await consumer.getmany(timeout_ms=100)).values():
                found += [record.value.decode() for record in records]
        await consumer.stop()
        return found

    return Pair("aiokafka", lambda: asyncio.run(write()), lambda: asyncio.run(read()), work)


def java(bootstrap: str, tools: KafkaTools, directory: Path) -> Pair:
    settings = directory / "producer.properties"
    settings.write_text("retries=1000\nenable.idempotence=true\nacks=all\n")

    def write() -> None:
        done = tools.run_alone(
            *("VerifiableProducer", "--bootstrap-server", bootstrap, "--topic", "java"),
            *("--max-messages", COUNT, "--throughput", 100, "--command-config", settings),
        )
        told = [json.loads(line) for line in done.lines if line.startswith("{")]
        acknowledged = [line for line in told if line["name"] == "producer_send_success"]
        assert len(acknowledged) == COUNT, (len(acknowledged), done.stdout[-500:], done.stderr[-500:])

    def read() -> list[str]:
        done = tools.run_alone(
            *("ConsoleConsumer", "--bootstrap-server", bootstrap, "--topic", "java", "--from-beginning"),
            *("--max-messages", COUNT, "--timeout-ms", 30_000),
        )
        return [line for line in done.lines if line.strip().isdigit()]

    return Pair("java", write, read)


def test_every_client_goes_on_when_the_leader_is_killed_and_when_it_returns(
    cluster: Cluster, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    """All four at once: the node that leads their topics is killed amid the writes."""
    topics = ("librdkafka", "kafka-python", "aiokafka", "java")
    for topic in topics:
        create(cluster, topic)
    bootstrap, over = cluster.bootstrap, threading.Event()
    pairs = [
        librdkafka(bootstrap, Work(over)),
        kafka_python(bootstrap, Work(over)),
        aiokafka(bootstrap, Work(over)),
        java(bootstrap, kafka_tools, tmp_path),
    ]
    try:
        for topic in topics:
            eventually(lambda topic=topic: story.end_offset(cluster.node(1), topic) > 50, SECONDS_MAX)  # type: ignore[misc]
        cluster.node(1).kill()
        eventually(lambda: all(shown(cluster, topic).leader == 2 for topic in topics))
        time.sleep(1)
        cluster.node(1).start()
        for topic in topics:
            until_in_sync(cluster, topic, [1, 2, 3])
    finally:
        over.set()
    for pair in pairs:
        pair.finish()
