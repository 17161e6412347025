"""Kafka Streams' word count with exactly_once_v2: every input is counted once, whichever process dies meanwhile.

Every update of a count is written, so the counts of one word in the output must be 1, 2, 3 …: a repetition would be a
record counted twice, a gap one whose outcome was lost.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.testing.clusters import Cluster, running_cluster
from tests.oracle.fetch import JAVA, KAFKA_STREAMS_JARS
from tests.oracle.java_worker import JavaWorker
from tests.oracle.require import require

WORDS = ("log", "leader", "epoch", "offset", "segment", "replica", "batch", "marker")
PARTITIONS = 2
SECONDS_MAX = 180.0


def word_count() -> JavaWorker:
    source = Path(__file__).parent / "java" / "WordCount.java"
    return JavaWorker(java=require(JAVA), jars=require(KAFKA_STREAMS_JARS), source=source)


def lines(first: int, count: int) -> list[str]:
    """Three words each, in every combination sooner or later."""
    return [
        " ".join(WORDS[(number * step + number // 7) % len(WORDS)] for step in (1, 3, 5))
        for number in range(first, first + count)
    ]


class Scene:
    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.written: Counter[str] = Counter()
        self._directory = directory
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        topics = [NewTopic(name, PARTITIONS, 3) for name in ("lines", "counts")]
        for created in admin.create_topics(topics).values():
            created.result(60)
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        self._reader = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._reader.assign(
            [TopicPartition("counts", number, OFFSET_BEGINNING) for number in range(PARTITIONS)]
        )
        self.counts: dict[str, list[int]] = defaultdict(list)

    def write(self, first: int, count: int) -> None:
        for number, line in enumerate(lines(first, count)):
            self._producer.produce("lines", line, partition=number % PARTITIONS)
            self.written.update(line.split())
        assert self._producer.flush(SECONDS_MAX) == 0

    def start(self, worker: JavaWorker, instance: str) -> None:
        settings = {
            "bootstrap.servers": self.cluster.bootstrap,
            "application.id": "word-count",
            "client.id": instance,
            "state.dir": str(self._directory / instance),
            "processing.guarantee": "exactly_once_v2",
            "replication.factor": "3",
            "num.stream.threads": "1",
            "statestore.cache.max.bytes": "0",
            "commit.interval.ms": "50",
            "session.timeout.ms": "6000",
            "auto.offset.reset": "earliest",
        }
        question = {"operation": "start", "settings": settings, "input": "lines", "output": "counts"}
        worker.call(question, timeout_s=SECONDS_MAX)

    def until_counted(self, share: float) -> None:
        """Reads on until this share of the words is in the output, as far as it is committed."""
        wanted = int(self.written.total() * share)
        deadline = time.monotonic() + SECONDS_MAX
        while sum(map(len, self.counts.values())) < wanted:
            assert time.monotonic() < deadline, (
                f"{sum(map(len, self.counts.values()))} of {wanted} words counted"
            )
            self._read(0.2)

    def _read(self, seconds: float) -> None:
        for message in self._reader.consume(num_messages=500, timeout=seconds):
            assert message.error() is None, message.error()
            key, value = message.key(), message.value()
            assert key is not None
            assert value is not None
            self.counts[key.decode()].append(int(value))

    def check(self) -> None:
        self._read(1.0)  # nothing more may come
        expected = {word: list(range(1, count + 1)) for word, count in self.written.items()}
        assert self.counts == expected

    def close(self) -> None:
        self._reader.close()


@pytest.mark.timeout(500)
def test_every_word_is_counted_once_while_the_application_and_a_leader_are_killed(tmp_path: Path) -> None:
    with running_cluster(nodes=3) as cluster, word_count() as worker:
        scene = Scene(cluster, tmp_path)
        try:
            scene.write(0, 400)
            scene.start(worker, "first")
            scene.until_counted(0.3)
            worker.kill()
            scene.write(400, 400)
            scene.start(worker, "second")
            scene.until_counted(0.6)
            cluster.node(2).kill()
            scene.write(800, 400)
            scene.until_counted(1.0)
            cluster.node(2).start()
            scene.write(1200, 100)
            scene.until_counted(1.0)
            assert worker.call({"operation": "stop"}, timeout_s=SECONDS_MAX) == {"result": "NOT_RUNNING"}
            scene.check()
        finally:
            scene.close()
