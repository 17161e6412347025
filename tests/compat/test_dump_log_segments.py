"""Apache Kafka's DumpLogSegments reads every file of a partition without a complaint.

The tool prints complaints on standard error, except two that it prints among the rest: bytes that are no batch
and a batch with a wrong checksum (`isvalid: false`).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from strandline.partition.producers import BATCHES_REMEMBERED
from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient
from tests.compat.clients.interface import CALL_TIMEOUT_S
from tests.compat.dumped_logs import dump, joined
from tests.compat.records import CODECS, EVERY_SHAPE, Sample, numbered
from tests.compat.server import CreateTopic, PrivateServer, Server
from tests.oracle.kafka_tools import KafkaTools, ToolResult
from tests.oracle.readiness import wait_until_writable

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

# The smallest that Kafka allows.
SEGMENT_BYTES = 1_048_576
RECORDS_PER_BATCH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The fields of a batch that DumpLogSegments printed, and its records."""

    fields: Mapping[str, str]
    records: tuple[Mapping[str, str], ...]

    def number(self, name: str) -> int:
        return int(self.fields[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class LongLog:
    """A partition of several segments with many index entries, written by one idempotent producer."""

    directory: Path
    samples: tuple[Sample, ...]

    def files(self, suffix: str) -> list[Path]:
        return sorted(self.directory.glob(f"*{suffix}"))


@pytest.fixture
def client(probe: ConfluentKafkaClient) -> ConfluentKafkaClient:
    return probe


@pytest.fixture(scope="module")
def long_log(server: Server, probe: ConfluentKafkaClient) -> LongLog:
    topic = f"long-log-{uuid.uuid4().hex[:8]}"
    samples = write_long_log(probe, server, topic)
    return LongLog(directory=server.data_dir / f"{topic}-0", samples=samples)


def test_several_segments_hold_the_records_that_were_written(
    long_log: LongLog, kafka_tools: KafkaTools
) -> None:
    segments = long_log.files(".log")
    assert len(segments) >= 3
    records = [
        record for each in segments for batch in dump_log(kafka_tools, each) for record in batch.records
    ]
    assert [int(record["offset"]) for record in records] == list(range(len(long_log.samples)))
    for record, sample in zip(records, long_log.samples, strict=True):
        assert record["key"] == text(sample.key)
        assert record["payload"] == text(sample.value)
        assert int(record["CreateTime"]) == sample.timestamp_ms


def test_segment_is_named_after_its_first_offset_and_no_larger_than_allowed(
    long_log: LongLog, kafka_tools: KafkaTools
) -> None:
    for segment in long_log.files(".log"):
        batches = dump_log(kafka_tools, segment)
        assert batches[0].number("baseOffset") == int(segment.stem)
        assert segment.stat().st_size <= SEGMENT_BYTES


def test_offset_index_points_at_batches(long_log: LongLog, kafka_tools: KafkaTools) -> None:
    for segment in long_log.files(".log")[:-1]:
        positions = {
            batch.number("lastOffset"): batch.number("position") for batch in dump_log(kafka_tools, segment)
        }
        entries = numbers(dump(kafka_tools, [segment.with_suffix(".index")]), "offset", "position")
        assert len(entries) > 100
        assert all(positions[offset] == position for offset, position in entries)
        distances = [later[1] - earlier[1] for earlier, later in pairwise(entries)]
        assert min(distances) > 4096, "an entry follows index.interval.bytes after the one before"


def test_time_index_points_at_batches_with_these_timestamps(
    long_log: LongLog, kafka_tools: KafkaTools
) -> None:
    for segment in long_log.files(".log")[:-1]:
        times = {
            batch.number("lastOffset"): batch.number("CreateTime") for batch in dump_log(kafka_tools, segment)
        }
        entries = numbers(dump(kafka_tools, [segment.with_suffix(".timeindex")]), "timestamp", "offset")
        assert len(entries) > 100
        assert all(times[offset] == timestamp for timestamp, offset in entries)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_indexes_of_closed_segments_pass_the_sanity_check(
    long_log: LongLog, kafka_tools: KafkaTools, suffix: str
) -> None:
    closed = long_log.files(suffix)[:-1]
    printed = dump(kafka_tools, closed, "--index-sanity-check").stdout
    assert printed.count("passed sanity check") == len(closed)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_indexes_of_all_segments_agree_with_the_log(
    long_log: LongLog, kafka_tools: KafkaTools, suffix: str
) -> None:
    dump(kafka_tools, long_log.files(suffix), "--verify-index-only")


def test_producer_snapshot_at_a_roll_holds_the_last_sequence_before_it(
    long_log: LongLog, kafka_tools: KafkaTools
) -> None:
    rolls = [int(segment.stem) for segment in long_log.files(".log")[1:]]
    snapshots = long_log.files(".snapshot")
    assert [int(snapshot.stem) for snapshot in snapshots] == rolls
    for snapshot in snapshots:
        offset = int(snapshot.stem)
        entries = [fields(line) for line in dump(kafka_tools, [snapshot]).lines if "producerId" in line]
        assert 1 <= len(entries) <= BATCHES_REMEMBERED
        ends = [int(each["lastOffset"]) for each in entries]
        assert ends == sorted(ends), "a reader that keeps the last entry of a producer keeps its newest batch"
        entry = entries[-1]
        assert int(entry["lastSequence"]) == int(entry["lastOffset"]) == offset - 1
        assert entry["producerEpoch"] == "0"
        assert entry["coordinatorEpoch"] == "-1"
        assert entry["currentTxnFirstOffset"] == "OptionalLong.empty"
        assert int(entry["timestamp"]) == long_log.samples[offset - 1].timestamp_ms


def test_idempotent_batches_carry_producer_id_and_consecutive_sequences(
    long_log: LongLog, kafka_tools: KafkaTools
) -> None:
    batches = [batch for each in long_log.files(".log") for batch in dump_log(kafka_tools, each)]
    assert len({batch.number("producerId") for batch in batches}) == 1
    assert all(batch.number("producerId") >= 0 for batch in batches)
    for batch in batches:
        assert batch.number("baseSequence") == batch.number("baseOffset")
        assert batch.number("lastSequence") == batch.number("lastOffset")
        assert batch.number("partitionLeaderEpoch") == 0
        assert batch.fields["magic"] == "2"


@pytest.mark.parametrize("codec", CODECS)
def test_batches_stay_as_their_producer_compressed_them(
    server: Server,
    client: ConfluentKafkaClient,
    create: CreateTopic,
    kafka_tools: KafkaTools,
    topic: str,
    codec: str,
) -> None:
    create(topic)
    client.write(topic, EVERY_SHAPE, codec=codec)
    (segment,) = (server.data_dir / f"{topic}-0").glob("*.log")
    batches = dump_log(kafka_tools, segment)
    assert {batch.fields["compresscodec"] for batch in batches} == {codec}
    records = [record for batch in batches for record in batch.records]
    for record, sample in zip(records, EVERY_SHAPE, strict=True):
        assert int(record["keySize"]) == size(sample.key)
        assert int(record["valueSize"]) == size(sample.value)
        assert record["headerKeys"] == f"[{','.join(name for name, _ in sample.headers)}]"


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_broker_recompresses_when_the_topic_names_a_codec(
    server: Server,
    client: ConfluentKafkaClient,
    create: CreateTopic,
    kafka_tools: KafkaTools,
    topic: str,
    codec: str,
) -> None:
    create(topic, configs={"compression.type": codec})
    client.write(topic, numbered(100), codec="gzip" if codec == "zstd" else "zstd")
    (segment,) = (server.data_dir / f"{topic}-0").glob("*.log")
    batches = dump_log(kafka_tools, segment)
    expected = "none" if codec == "uncompressed" else codec
    assert {batch.fields["compresscodec"] for batch in batches} == {expected}
    payloads = [record["payload"] for batch in batches for record in batch.records]
    assert payloads == [text(sample.value) for sample in numbered(100)]


def test_metadata_log_names_the_topic_and_its_partitions(
    server: Server, client: ConfluentKafkaClient, create: CreateTopic, kafka_tools: KafkaTools, topic: str
) -> None:
    create(topic, partitions=2, configs={"retention.ms": "86400000"})
    segments = sorted((server.data_dir / "__cluster_metadata-0").glob("*.log"))
    printed = without_false_alarm(
        kafka_tools.run("DumpLogSegments", "--cluster-metadata-decoder", "--files", joined(segments)),
        segments,
    ).stdout
    (topic_record,) = [line for line in printed.splitlines() if f'"name":"{topic}"' in line]
    assert '"type":"TOPIC_RECORD"' in topic_record
    topic_id = re.findall(r'"topicId":"([^"]+)"', topic_record)[0]
    partitions = [line for line in printed.splitlines() if "PARTITION_RECORD" in line and topic_id in line]
    assert len(partitions) == 2
    (config,) = [line for line in printed.splitlines() if "CONFIG_RECORD" in line and topic in line]
    assert '"name":"retention.ms","value":"86400000"' in config


def test_every_file_that_a_stopped_broker_leaves_is_sound(
    private_server: PrivateServer, kafka_tools: KafkaTools, topic: str, tmp_path: Path
) -> None:
    data_dir = tmp_path / "data"
    with private_server({"log.dirs": str(data_dir)}) as server:
        samples = write_long_log(ConfluentKafkaClient(server.bootstrap), server, topic)
    partition = data_dir / f"{topic}-0"
    indexes = sorted([*partition.glob("*.index"), *partition.glob("*.timeindex")])
    dump(kafka_tools, indexes, "--index-sanity-check")
    dump(kafka_tools, indexes, "--verify-index-only")
    # A clean shutdown adds a snapshot of the producers at the end of the log.
    last = max(partition.glob("*.snapshot"))
    assert int(last.stem) == len(samples)
    assert f"lastSequence: {len(samples) - 1} " in dump(kafka_tools, [last]).stdout
    segments = sorted(partition.glob("*.log"))
    batches = [batch for segment in segments for batch in dump_log(kafka_tools, segment)]
    assert sum(len(batch.records) for batch in batches) == len(samples)


def write_long_log(client: ConfluentKafkaClient, server: Server, topic: str) -> tuple[Sample, ...]:
    client.create_topic(topic, configs={"segment.bytes": str(SEGMENT_BYTES)})
    wait_until_writable(server.bootstrap, topic)
    samples = numbered(14_000, size=220)
    producer = client.producer(enable_idempotence=True, batch_num_messages=RECORDS_PER_BATCH)
    for sample in samples:
        producer.produce(topic, sample.value, sample.key, partition=0, timestamp=sample.timestamp_ms)
    assert producer.flush(CALL_TIMEOUT_S) == 0
    return samples


def dump_log(tools: KafkaTools, segment: Path) -> list[Batch]:
    """Every batch of a segment with its records, after checking that the tool had nothing to complain about."""
    result = without_false_alarm(
        tools.run("DumpLogSegments", "--deep-iteration", "--print-data-log", "--files", segment), [segment]
    )
    assert "invalid bytes" not in result.stdout
    batches = list(_batches(result.lines))
    assert batches
    assert all(batch.fields["isvalid"] == "true" for batch in batches)
    return batches


def without_false_alarm(result: ToolResult, segments: Sequence[Path]) -> ToolResult:
    """Returns the output without the complaints that every later segment gets because it does not begin at offset 0."""
    complaints = result.stderr
    for segment in segments:
        if int(segment.stem) > 0:
            alarm = f"Non-consecutive offsets in {segment}\n  -1 is followed by {int(segment.stem)}\n"
            complaints = complaints.replace(alarm, "")
    return ToolResult(exit_code=result.exit_code, stdout=result.stdout, stderr=complaints).succeeded()


def numbers(result: ToolResult, first: str, second: str) -> list[tuple[int, int]]:
    """Returns the pairs of an index dump."""
    pairs = re.findall(rf"^{first}: (\d+) {second}: (\d+)$", result.stdout, flags=re.MULTILINE)
    return [(int(one), int(other)) for one, other in pairs]


def fields(line: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+): (\S+)", line))


def text(data: bytes | None) -> str:
    assert data is not None
    return data.decode("ascii")


def size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _batches(lines: Sequence[str]) -> Iterator[Batch]:
    current: dict[str, str] = {}
    records: list[dict[str, str]] = []
    for line in lines:
        if line.startswith("baseOffset: "):
            if current:
                yield Batch(fields=current, records=tuple(records))
            current, records = fields(line), []
        elif line.startswith("| offset: "):
            records.append(fields(line))
    if current:
        yield Batch(fields=current, records=tuple(records))
