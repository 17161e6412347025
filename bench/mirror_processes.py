"""Runs a mirror as a process between two clusters: ours, or MirrorMaker 2 with the heap of its start script."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.oracle.fetch import JAVA, KAFKA_MIRROR_JARS

OURS, THEIRS = "strandline mirror", "MirrorMaker 2"
WAIT_SECONDS = 240.0
LOG_LINES = 15
# What connect-mirror-maker.sh passes, and times in the log.
_JVM_OPTIONS = (
    *("-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"),
)
_FACTORS = ("heartbeats.topic", "checkpoints.topic", "offset-syncs.topic", "config.storage", "offset.storage")


class StepFailedError(Exception):
    """A step of the benchmark did not reach its end; the message ends with the mirror's log."""


def write_config(directory: Path, source: str, target: str, topics: str) -> Path:
    """Writes the file of a mirror. Its source's alias is the directory's name, so that each step begins from
    nothing."""
    alias = directory.name
    lines = {
        "clusters": f"{alias},target",
        f"{alias}.bootstrap.servers": source,
        "target.bootstrap.servers": target,
        f"{alias}->target.enabled": "true",
        f"{alias}->target.topics": topics,
        f"target->{alias}.enabled": "false",
        "replication.factor": "1",
        "status.storage.replication.factor": "1",
        "emit.heartbeats.enabled": "false",
        "refresh.topics.interval.seconds": "5",
        **{f"{each}.replication.factor": "1" for each in _FACTORS},
    }
    config = directory / "mirror.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return config


def start(kind: str, config: Path, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "strandline.cli.main", "mirror", "--config", str(config)]
    if kind == THEIRS:
        java, jars = JAVA.locate(), KAFKA_MIRROR_JARS.locate()
        assert java is not None
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        command = [str(java), *_JVM_OPTIONS, "-cp", f"{jars}/*", main, str(config), "--clusters", "target"]
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output)


@contextmanager
def mirror(
    kind: str, source: str, target: str, topics: str, directory: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs one of the two mirrors between the clusters."""
    process = start(kind, write_config(directory, source, target, topics), directory / "log")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool], what: str, log: Path, pause: float = 0.05) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            lines = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
            raise StepFailedError(f"{what} within {WAIT_SECONDS:g} s:\n{lines}")
        time.sleep(pause)


def create_topic(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)


def ends(consumer: Consumer, topic: str, partitions: int) -> list[int]:
    """Returns the end offsets of the partitions; 0 while there is no such topic, or no leader."""
    if topic not in consumer.list_topics(timeout=30).topics:
        return [0] * partitions
    return [_end(consumer, TopicPartition(topic, each)) for each in range(partitions)]


def _end(consumer: Consumer, where: TopicPartition) -> int:
    try:
        return int(consumer.get_watermark_offsets(where, timeout=30)[1])
    except KafkaException:  # It is being created.
        return 0
