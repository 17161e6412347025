"""Apache Kafka reads a log that Strandline has compacted: by its dump tool, and by its broker on a copy of the files.

Both read every file; the broker must serve the same records at the same offsets, and go on from there.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from strandline.base.ids import TopicPartition as Partition
from strandline.storage.checkpoints import parse_offsets
from strandline.wire.record_batch import DELETE_HORIZON_FLAG, headers_in
from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient
from tests.compat.dumped_logs import cluster_id, dump, joined
from tests.compat.server import STRANDLINE, PrivateServer, compat_target
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka
from tests.oracle.kafka_tools import KafkaTools
from tests.oracle.readiness import wait_until_writable

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.xdist_group("apache-kafka"),
    pytest.mark.skipif(compat_target() != STRANDLINE, reason="it is about files that Strandline writes"),
]

TOPIC = "compacted"
KEYS = 40
ROUNDS = 60
WAIT_S_MAX = 60.0
Seen = list[tuple[int, bytes | None, bytes | None]]


@pytest.fixture(scope="module")
def compacted(private_server: PrivateServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Seen]:
    """The data directory of a stopped broker with a compacted log, and what a consumer read from it."""
    data = tmp_path_factory.mktemp("compacted") / "data"
    with private_server({"log.dirs": str(data), "log.cleaner.backoff.ms": "200"}) as server:
        client = ConfluentKafkaClient(server.bootstrap)
        client.create_topic(
            TOPIC,
            configs={
                "cleanup.policy": "compact",
                "segment.bytes": "1048576",
                "min.cleanable.dirty.ratio": "0.01",
                "file.delete.delay.ms": "0",
                "delete.retention.ms": "86400000",
            },
        )
        wait_until_writable(server.bootstrap, TOPIC)
        write(server.bootstrap)
        deadline = time.monotonic() + WAIT_S_MAX
        while not is_clean(data):
            assert time.monotonic() < deadline, "the log is not compacted"
            time.sleep(0.1)
        seen = read_all(server.bootstrap)
    return data, seen


def is_clean(data: Path) -> bool:
    """Returns True if everything except the active segment is compacted."""
    checkpoint = data / "cleaner-offset-checkpoint"
    if not checkpoint.exists():
        return False
    active = max(int(path.stem) for path in (data / f"{TOPIC}-0").glob("*.log"))
    return parse_offsets(checkpoint.read_bytes()).get(Partition(TOPIC, 0)) == active


def write(bootstrap: str) -> None:
    """Every key many times, in two codecs, committed and aborted, with tombstones."""
    value = b"x" * 900
    for codec in ("none", "zstd"):
        plain = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20})
        for number in range(ROUNDS):
            for key in range(KEYS):
                content = None if key % 10 == 9 else b"%d:" % number + value
                plain.produce(TOPIC, content, b"%s-%d" % (codec.encode(), key), partition=0)
            plain.poll(0)
        assert plain.flush(30) == 0
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "compacted"})
    transactional.init_transactions(30)
    for number in range(10):
        transactional.begin_transaction()
        for key in range(KEYS):
            transactional.produce(TOPIC, b"%d:" % number + value, b"t-%d" % key, partition=0)
        if number % 2:
            transactional.abort_transaction(30)
        else:
            transactional.commit_transaction(30)
    # Closes the segment before, so that the whole of it can be compacted.
    last = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(1200):
        last.produce(TOPIC, value, b"last-%d" % (number % 3), partition=0)
    assert last.flush(30) == 0


def read_all(bootstrap: str) -> Seen:
    """Offsets, keys and values of everything that is committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        seen: Seen = []
        deadline = time.monotonic() + WAIT_S_MAX
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error():
                return seen
            seen.append((message.offset(), message.key(), message.value()))
        raise AssertionError("the end was not reached")
    finally:
        consumer.close()


def test_a_consumer_sees_the_newest_of_every_key(compacted: tuple[Path, Seen]) -> None:
    _, seen = compacted
    newest = {key: value for _, key, value in seen}
    for codec in (b"none", b"zstd"):
        for key in range(KEYS):
            value = newest[b"%s-%d" % (codec, key)]
            assert value is None if key % 10 == 9 else value and value.startswith(b"%d:" % (ROUNDS - 1))
    assert all(newest[b"t-%d" % key].startswith(b"8:") for key in range(KEYS))  # type: ignore[union-attr]
    assert len(seen) < ROUNDS * KEYS, "it is compacted"


def test_dump_log_segments_reads_every_file(
    compacted: tuple[Path, Seen], kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    directory = tmp_path / f"{TOPIC}-0"
    shutil.copytree(compacted[0] / f"{TOPIC}-0", directory)
    segments = sorted(directory.glob("*.log"))
    assert len(segments) >= 2
    indexes = sorted([*directory.glob("*.index"), *directory.glob("*.timeindex")])
    dump(kafka_tools, indexes, "--verify-index-only")
    # The tool expects offset 0 first in every file, and takes every gap for a fault.
    result = kafka_tools.run("DumpLogSegments", "--deep-iteration", "--files", joined(segments))
    assert "isvalid: false" not in result.stdout
    assert "invalid bytes" not in result.stdout
    headers = [header for segment in segments for _, header in headers_in(segment.read_bytes())]
    assert result.stdout.count("isvalid: true") == len(headers)
    horizons = sum(1 for header in headers if header.attributes & DELETE_HORIZON_FLAG)
    assert horizons > 0
    assert result.stdout.count("deleteHorizonMs: OptionalLong[") == horizons


def test_apache_kafka_serves_the_same_records_from_a_copy_of_the_files(
    compacted: tuple[Path, Seen], java: Path, kafka_jars: Path, tmp_path: Path
) -> None:
    data, seen = compacted
    copy = tmp_path / "data"
    shutil.copytree(data, copy)
    kafka = ApacheKafka(
        java=java,
        jars=kafka_jars,
        directory=tmp_path / "kafka",
        # Its own cleaner would find something to do in what is clean for ours.
        settings={"log.dirs": str(copy), "log.cleaner.enable": "false"},
        jvm_options=QUICK_START,
        cluster_id=cluster_id(copy),
    )
    with kafka:
        assert read_all(kafka.bootstrap) == seen
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        producer.produce(TOPIC, b"of kafka", b"after", partition=0)
        assert producer.flush(30) == 0
        assert read_all(kafka.bootstrap)[-1][1:] == (b"after", b"of kafka")
