"""Two clusters and mirrors between them, as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.testing.clusters import wait_until

STOP_SECONDS = 30.0
# So that tests need not wait for what takes seconds otherwise.
QUICK = {
    "refresh.topics.interval.seconds": "0.3",
    "refresh.groups.interval.seconds": "0.3",
    "emit.checkpoints.interval.seconds": "0.3",
    "sync.group.offsets.interval.seconds": "0.3",
    "sync.topic.configs.interval.seconds": "0.3",
    "sync.topic.acls.interval.seconds": "0.3",
    "emit.heartbeats.enabled": "false",
}


class MirrorProcess:
    """`strandline mirror`, which may be killed and started again."""

    def __init__(self, config: Path, *options: str, log: Path) -> None:
        self._config = config
        self._options = options
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert self._process is None, "it runs already"
        command = [sys.executable, "-m", "strandline.cli.main", "mirror", "--config", str(self._config)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen([*command, *self._options], stdout=log, stderr=log)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def pause(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        assert self._process is not None
        return self._process.wait(seconds)

    def _end(self, number: int) -> int:
        if self._process is None:
            return 0
        process, self._process = self._process, None
        with suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


class Scene:
    """A directory, and the addresses of clusters by their aliases."""

    def __init__(self, directory: Path, **bootstrap: str) -> None:
        self.directory = directory
        self.bootstrap = bootstrap
        self.librdkafka: dict[str, dict[str, str]] = {}  # more settings for the tests' own clients, by alias
        self._mirrors: list[MirrorProcess] = []

    def config(self, properties: Mapping[str, str], name: str = "mirror.properties") -> Path:
        """Writes a file with the clusters, quick intervals and these properties."""
        found = {"clusters": ",".join(self.bootstrap), **QUICK}
        for alias, address in self.bootstrap.items():
            found[f"{alias}.bootstrap.servers"] = address
            found[f"{alias}.consumer.session.timeout.ms"] = "2000"
            found[f"{alias}.consumer.heartbeat.interval.ms"] = "400"
        path = self.directory / name
        path.write_text("".join(f"{key}={value}\n" for key, value in {**found, **properties}.items()))
        return path

    def mirror(self, config: Path, *options: str, instance: str = "one") -> MirrorProcess:
        """Makes a mirror that is not started; the end of the scene kills it."""
        log = self.directory / f"mirror-{instance}.log"
        mirror = MirrorProcess(config, "--instance", instance, *options, log=log)
        self._mirrors.append(mirror)
        return mirror

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs `strandline mirror …`."""
        command = [sys.executable, "-m", "strandline.cli.main", "mirror", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def close(self) -> None:
        for mirror in self._mirrors:
            mirror.kill()

    # Topics and records

    def admin(self, alias: str) -> AdminClient:
        return AdminClient(
            {"socket.timeout.ms": 30_000, "bootstrap.servers": self.bootstrap[alias], "log_level": 0}
        )

    def create_topic(self, alias: str, name: str, partitions: int = 1, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(name, partitions, 1, config=settings)
        admin = self.admin(alias)  # kept until the result is there
        admin.create_topics([new])[name].result(30)

    def produce(self, alias: str, topic: str, values: list[str], **settings: Any) -> None:
        """Writes records, in turns over the partitions, and waits until all are acknowledged."""
        count = len(self.admin(alias).list_topics(topic, timeout=30).topics[topic].partitions)
        producer = Producer(
            {"bootstrap.servers": self.bootstrap[alias], "log_level": 0, "linger.ms": 2, **settings}
        )
        for number, value in enumerate(values):
            producer.produce(
                topic, value.encode(), key=f"k{number % 7}", partition=number % count, headers={"n": value}
            )
            producer.poll(0)
        assert producer.flush(60) == 0

    def read(self, alias: str, topic: str, count: int, seconds: float = 40.0) -> list[Message]:
        """Waits until a topic has so many committed records, and returns all of them."""
        found: list[Message] = []

        def is_complete() -> bool:
            found[:] = self.read_all(alias, topic)
            return len(found) >= count

        wait_until(is_complete, seconds, f"{topic} at {alias} did not get {count} records")
        return found

    def read_all(self, alias: str, topic: str) -> list[Message]:
        """Returns all committed records that a topic has now; none if there is no such topic."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap[alias],
                "group.id": "reader of the test",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "allow.auto.create.topics": False,
                "log_level": 0,
                **self.librdkafka.get(alias, {}),
            }
        )
        try:
            topics = consumer.list_topics(timeout=30).topics
            if topic not in topics:
                return []
            partitions = [TopicPartition(topic, each, OFFSET_BEGINNING) for each in topics[topic].partitions]
            consumer.assign(partitions)
            found, ended = [], set()
            while len(ended) < len(partitions):
                message = consumer.poll(10)
                assert message is not None, "a partition must end"
                if message.error() is None:
                    found.append(message)
                else:
                    ended.add(message.partition())
            return found
        finally:
            consumer.close()


def values_of(messages: list[Message]) -> list[str]:
    return [message.value().decode() for message in messages]


@contextmanager
def scene(directory: Path, **bootstrap: str) -> Iterator[Scene]:
    """Yields a scene, and ends its mirrors."""
    directory.mkdir(parents=True, exist_ok=True)
    found = Scene(directory, **bootstrap)
    try:
        yield found
    finally:
        found.close()
