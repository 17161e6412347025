"""Small files: byte for byte as Apache Kafka writes them, and refused where they do not follow its format."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from strandline.base.ids import TopicPartition, parse_uuid
from strandline.base.producer_entry import ProducerEntry
from strandline.node.disk import RealDisk
from strandline.storage import checkpoints
from strandline.storage.checkpoints import MalformedCheckpoint
from strandline.storage.directory import LogDirectory, UnusableDirectory, format_directory
from strandline.storage.producer_state import CorruptSnapshot, parse_snapshot, render_snapshot

TOPIC_ID = "JlBDFnkHR_6bWXVQ1yHMJw"
OFFSETS = {TopicPartition("b", 1): 7, TopicPartition("a.b_c-d", 0): 12345678901, TopicPartition("b", 0): 0}


def test_offsets_are_written_as_kafka_writes_them() -> None:
    data = checkpoints.render_offsets(OFFSETS)
    assert data == b"0\n3\na.b_c-d 0 12345678901\nb 0 0\nb 1 7\n"
    assert checkpoints.parse_offsets(data) == OFFSETS
    assert checkpoints.render_offsets({}) == b"0\n0\n"


def test_an_empty_file_is_an_empty_checkpoint() -> None:
    assert checkpoints.parse_offsets(b"") == {}
    assert checkpoints.parse_epochs(b"") == []


@pytest.mark.parametrize(
    "data",
    [
        b"1\n0\n",
        b"0\n",
        b"0\nx\n",
        b"0\n2\na 0 5\n",
        b"0\n1\na 0 5\nb 0 5\n",
        b"0\n1\na 0 5",
        b"0\n1\na 0\n",
        b"0\n1\na 0 x\n",
        b"0\n1\na x 5\n",
        b"\xff\xfe",
        bytes(30),
    ],
)
def test_offsets_in_another_format_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedCheckpoint):
        checkpoints.parse_offsets(data)


@pytest.mark.parametrize(
    "data", [b"0\n2\n1 5\n1 7\n", b"0\n2\n1 5\n2 5\n", b"0\n2\n2 5\n1 7\n", b"0\n1\n1 5 6\n"]
)
def test_epochs_that_do_not_ascend_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedCheckpoint):
        checkpoints.parse_epochs(data)


def test_partition_metadata_is_written_as_kafka_writes_it() -> None:
    topic_id = parse_uuid(TOPIC_ID)
    data = checkpoints.render_partition_metadata(topic_id)
    assert data == b"version: 0\ntopic_id: JlBDFnkHR_6bWXVQ1yHMJw"
    assert checkpoints.parse_partition_metadata(data) == topic_id
    assert checkpoints.parse_partition_metadata(data + b"\n") == topic_id


@pytest.mark.parametrize(
    "data", [b"", b"version: 1\ntopic_id: x", b"version: 0\n", b"version: 0\ntopic_id: short"]
)
def test_partition_metadata_in_another_format_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"partition\.metadata|UUID|padding|base64"):
        checkpoints.parse_partition_metadata(data)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    format_directory(RealDisk(), str(path), cluster_id="c1", node_id=3, directory_id=parse_uuid(TOPIC_ID))
    return path


def test_meta_properties_say_whose_directory_it_is(directory: Path) -> None:
    text = (directory / "meta.properties").read_text()
    assert text == f"cluster.id=c1\ndirectory.id={TOPIC_ID}\nnode.id=3\nversion=1\n"
    opened = LogDirectory(RealDisk(), str(directory), 3)
    assert (opened.cluster_id, opened.directory_id) == ("c1", parse_uuid(TOPIC_ID))


def test_meta_properties_of_kafka_are_understood(directory: Path) -> None:
    (directory / "meta.properties").write_text(
        f"#\n#Sun Jun 15 15:06:40 UTC 2025\nnode.id=3\ndirectory.id={TOPIC_ID}\nversion=1\ncluster.id=c1\n"
    )
    assert LogDirectory(RealDisk(), str(directory), 3).cluster_id == "c1"


def test_another_node_s_directory_is_refused_and_left_free(directory: Path) -> None:
    with pytest.raises(UnusableDirectory, match="belongs to node 3, and this is node 4"):
        LogDirectory(RealDisk(), str(directory), 4)
    LogDirectory(RealDisk(), str(directory), 3)


def test_a_directory_in_use_is_refused(directory: Path) -> None:
    first = LogDirectory(RealDisk(), str(directory), 3)
    with pytest.raises(UnusableDirectory, match=f"in use by process {os.getpid()}; stop it"):
        LogDirectory(RealDisk(), str(directory), 3)
    first.release()
    LogDirectory(RealDisk(), str(directory), 3)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xff", b"node.id=3\n", b"node.id=3\ncluster.id=c\ndirectory.id=x\n"]
)
def test_a_directory_whose_identity_cannot_be_read_is_refused(directory: Path, content: bytes) -> None:
    (directory / "meta.properties").write_bytes(content)
    with pytest.raises(UnusableDirectory):
        LogDirectory(RealDisk(), str(directory), 3)


def test_the_clean_marker_is_kafka_s_and_is_taken_once(directory: Path) -> None:
    disk = RealDisk()
    opened = LogDirectory(disk, str(directory), 3)
    assert not opened.is_clean
    opened.mark_clean(41)
    opened.release()
    assert (directory / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":41}'
    opened = LogDirectory(disk, str(directory), 3)
    assert (opened.is_clean, opened.clean_epoch) == (True, 41)
    opened.release()
    assert not LogDirectory(disk, str(directory), 3).is_clean


def test_a_clean_marker_without_contents_still_says_that_the_end_was_clean(directory: Path) -> None:
    (directory / ".kafka_cleanshutdown").write_bytes(b"")
    assert LogDirectory(RealDisk(), str(directory), 3).is_clean


def test_a_malformed_checkpoint_is_ignored_and_said(directory: Path) -> None:
    (directory / "recovery-point-offset-checkpoint").write_bytes(b"0\n9\n")
    opened = LogDirectory(RealDisk(), str(directory), 3)
    assert opened.recovery_points == {}
    assert "recovery-point-offset-checkpoint" in opened.notes[0]


def test_checkpoints_keep_partitions_that_nobody_opened(directory: Path) -> None:
    disk = RealDisk()
    opened = LogDirectory(disk, str(directory), 3)
    opened.high_watermarks[TopicPartition("a", 0)] = 5
    opened.log_starts |= {TopicPartition("a", 0): 0, TopicPartition("b", 0): 4}
    disk.write_whole(*opened.render_high_watermarks())
    disk.write_whole(*opened.render_log_starts())
    opened.release()
    assert (directory / "replication-offset-checkpoint").read_bytes() == b"0\n1\na 0 5\n"
    assert (directory / "log-start-offset-checkpoint").read_bytes() == b"0\n1\nb 0 4\n"
    opened = LogDirectory(disk, str(directory), 3)
    assert opened.high_watermarks == {TopicPartition("a", 0): 5}
    assert opened.log_starts == {TopicPartition("b", 0): 4}


ENTRY = ProducerEntry(
    producer_id=9,
    epoch=2,
    last_sequence=7,
    last_offset=41,
    offset_delta=3,
    timestamp=1000,
    coordinator_epoch=-1,
)


def test_a_snapshot_is_kafka_s() -> None:
    data = render_snapshot([ENTRY])
    assert data[:2] == b"\x00\x01"
    assert data[6:10] == b"\x00\x00\x00\x01"
    assert data[10:] == bytes.fromhex(
        "0000000000000009 0002 00000007 0000000000000029 00000003 00000000000003e8 ffffffff ffffffffffffffff"
    )
    assert parse_snapshot(data) == [ENTRY]


def test_a_snapshot_with_any_byte_changed_or_missing_is_corrupt() -> None:
    data = render_snapshot([ENTRY, ENTRY._replace(producer_id=10)])
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x40
        with pytest.raises(CorruptSnapshot):
            parse_snapshot(bytes(damaged))
        with pytest.raises(CorruptSnapshot):
            parse_snapshot(data[:position])
