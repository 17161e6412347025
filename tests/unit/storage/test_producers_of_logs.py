"""The known producers after a log was cut, began again, or was opened with fewer records than it had."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.base.producer_entry import ProducerEntry
from strandline.partition.producers import Producers
from strandline.storage.log import Log
from strandline.storage.producer_state import parse_snapshot, render_snapshot
from strandline.wire.codec import encode
from strandline.wire.record_batch import TRANSACTIONAL_FLAG
from strandline.wire.records.producer_snapshot import ProducerEntry as SnapshotEntry
from strandline.wire.records.producer_snapshot import ProducerSnapshot
from tests.batches import batch, header, resealed
from tests.disks import WatchedDisk
from tests.unit.storage.cleaning import batches_of, clean, end_transaction, write
from tests.unit.storage.logs import Store, append


def with_open_transaction(store: Store) -> Log:
    log = store.open()
    append(log, batch(2, producer_id=7, epoch=0, sequence=0))
    append(log, resealed(batch(2, producer_id=9, epoch=0, sequence=0), attributes=TRANSACTIONAL_FLAG))
    return log


def test_a_log_that_begins_again_knows_no_producer_of_before(tmp_path: Path) -> None:
    """The marker of an open transaction may be in what was left out: nothing would ever end it."""
    store = Store(tmp_path)
    with_open_transaction(store).close()
    log = store.open(clean=True)
    assert len(log.producers.entries()) == 2
    log.restart_at(1000)
    log.rebuild_producers(Producers)
    assert log.producers.entries() == []
    log.close()
    assert store.open(clean=True).producers.entries() == []


def test_a_log_whose_start_is_behind_its_end_knows_no_producer_of_before(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with_open_transaction(store).close()
    log = store.open(recovery_point=4, start_offset=100)
    assert (log.log_start_offset, log.producers.entries()) == (100, [])


def filled(log: Log, count: int) -> None:
    for number in range(count):
        append(log, batch(1, producer_id=number % 3, epoch=0, sequence=number // 3))


def expected_after(count: int) -> object:
    producers = Producers()
    for number in range(count):
        producers.appended(header(batch(1, producer_id=number % 3, epoch=0, sequence=number // 3)), number)
    return producers.entries()


@pytest.mark.parametrize("is_reopened", [False, True])
def test_a_cut_near_the_end_reads_a_small_part_of_the_log(tmp_path: Path, is_reopened: bool) -> None:
    """A node that went back for each of its partitions would otherwise read all their last segments, on the loop."""
    disk = WatchedDisk()
    store = Store(tmp_path, disk)
    log = store.open()
    filled(log, 9000)
    if is_reopened:
        log = store.open()
    disk.reads.clear()
    log.truncate_to(8900)
    log.rebuild_producers(Producers)
    assert log.producers.entries() == expected_after(8900)
    assert disk.bytes_read(".log") < log.size // 5
    log.truncate_to(5)
    log.rebuild_producers(Producers)
    assert log.producers.entries() == expected_after(5)


def test_of_a_producer_without_sequences_compaction_keeps_one_batch(tmp_path: Path) -> None:
    """Offsets that are committed in transactions are such: their markers would grow with every transaction."""
    store = Store(tmp_path, cleanup_policy="compact", segment_bytes=4000, delete_retention_ms=0)
    log = store.open()
    now_ms = 1_800_000_000_000
    for _ in range(200):
        write(log, (b"k", b"v"), producer=(5, 0, -1), is_transactional=True)
        end_transaction(log, 5, 0, commit=True)
    cleaned_to = None
    for _ in range(4):
        now_ms += 1000
        log.roll(now_ms)
        write(log, (b"other", b"v"))
        log.roll(now_ms)
        cleaned_to = clean(store, log, now_ms=now_ms, cleaned_to=cleaned_to).cleaned_to
    assert len(batches_of(log)) < 10
    log.close()
    assert store.open(clean=True).producers.entries() == log.producers.entries()


def test_a_snapshot_has_the_bytes_of_kafka_s_schema() -> None:
    entries = [ProducerEntry(7, 1, 2, 3, 4, 5, 6, 7), ProducerEntry(1 << 40, 0, -1, -1, 0, -1)]
    data = render_snapshot(entries)
    rows = tuple(SnapshotEntry(**entry._asdict()) for entry in entries)
    expected = ProducerSnapshot(crc=int.from_bytes(data[2:6], "big"), producer_entries=rows)
    assert data == b"\x00\x01" + bytes(encode(expected, 1))
    assert parse_snapshot(data) == entries
