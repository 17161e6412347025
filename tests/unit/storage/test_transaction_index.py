"""The transaction index on disk: written with the markers, made again by recovery, cut with the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.base.aborted_transaction import AbortedTransaction
from strandline.partition.producers import Producers
from strandline.storage.log import Log
from strandline.storage.transaction_index import TransactionIndex
from strandline.wire.record_batch import TRANSACTIONAL_FLAG, read_header
from strandline.wire.records.markers import Marker, marker_batch
from tests.batches import NOW_MS, batch, resealed
from tests.unit.storage.cleaning import clean as clean_log
from tests.unit.storage.logs import Store


def send(log: Log, producer_id: int, sequence: int) -> None:
    data = resealed(batch(producer_id=producer_id, epoch=0, sequence=sequence), attributes=TRANSACTIONAL_FLAG)
    offset = log.log_end_offset
    log.append(memoryview(data), read_header(data), offset, 0, NOW_MS)
    _producers(log).appended(read_header(data), offset)


def end(log: Log, producer_id: int, *, is_commit: bool) -> None:
    data, header = marker_batch(producer_id, 0, Marker(is_commit, 0), NOW_MS)
    offset = log.log_end_offset
    producers = _producers(log)
    aborted = producers.aborted_by(producer_id, Marker(is_commit, 0), offset)
    log.append(memoryview(data), header, offset, 0, NOW_MS, aborted)
    producers.ended(header, Marker(is_commit, 0), offset)


def _producers(log: Log) -> Producers:
    assert isinstance(log.producers, Producers)
    return log.producers


def rows(log: Log) -> list[AbortedTransaction]:
    return [row for segment in log.segments for row in segment.transaction_index.rows()]


def fill(log: Log) -> list[AbortedTransaction]:
    send(log, 1, 0)
    send(log, 2, 0)
    end(log, 2, is_commit=False)
    log.roll(NOW_MS)
    end(log, 1, is_commit=False)
    send(log, 2, 1)
    end(log, 2, is_commit=True)
    log.roll(NOW_MS)
    send(log, 1, 1)
    end(log, 1, is_commit=False)
    return [AbortedTransaction(2, 1, 2, 0), AbortedTransaction(1, 0, 3, 4), AbortedTransaction(1, 6, 7, 8)]


def test_rows_of_a_clean_log_are_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    log = store.open()
    expected = fill(log)
    assert rows(log) == expected
    log.close()
    assert rows(store.open(clean=True)) == expected


def test_recovery_makes_lost_and_damaged_rows_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    expected = fill(store.open())
    for path in tmp_path.glob("*.txnindex"):
        path.write_bytes(b"\x00" * 7)
    assert rows(store.open()) == expected
    (tmp_path / f"{0:020}.txnindex").write_bytes(b"\x00" * 7)
    assert rows(store.open(clean=True)) == expected


def test_recovery_after_a_crash_finds_open_transactions(tmp_path: Path) -> None:
    store = Store(tmp_path)
    log = store.open()
    fill(log)
    send(log, 2, 2)
    again = store.open(recovery_point=4)
    assert _producers(again).transactions.last_stable_offset(100) == 8
    assert _producers(again).is_open(2, 0)


def test_truncation_takes_rows_of_markers_that_are_gone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    log = store.open()
    expected = fill(log)
    log.truncate_to(7)
    log.rebuild_producers(Producers)
    assert rows(log) == expected[:2]
    assert _producers(log).transactions.last_stable_offset(100) == 6
    log.truncate_to(3)
    log.rebuild_producers(Producers)
    assert rows(log) == expected[:1]
    assert _producers(log).transactions.last_stable_offset(100) == 0


def test_a_reader_is_told_of_aborted_transactions_that_end_in_later_segments(tmp_path: Path) -> None:
    log = Store(tmp_path).open()
    expected = fill(log)
    first = log.read(0, 8, 1 << 20, whole_first_batch=True)
    assert first is not None
    assert log.aborted_in(first, 0, 8) == expected[:2]
    last = log.read(6, 8, 1 << 20, whole_first_batch=True)
    assert last is not None
    assert log.aborted_in(last, 6, 8) == expected[2:]


@pytest.mark.parametrize("clean", [True, False])
def test_rows_are_made_again_where_all_indexes_of_a_segment_were_removed(tmp_path: Path, clean: bool) -> None:
    """That is how Kafka's are repaired; without the rows readers would be given what was aborted."""
    store = Store(tmp_path)
    log = store.open()
    expected = fill(log)
    log.close()
    for number in store.names(".log"):
        for suffix in (".index", ".timeindex", ".txnindex"):
            store.file(number, suffix).unlink(missing_ok=True)
    assert rows(store.open(clean=clean, recovery_point=log.log_end_offset)) == expected


class Crash(Exception):
    """The process ends here."""


def test_a_swap_that_ended_at_the_last_rename_keeps_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, cleanup_policy="compact", segment_bytes=100_000)
    log = store.open()
    fill(log)
    log.roll(NOW_MS)
    rename = store.disk.rename

    def ending(old: str, new: str) -> None:
        if old.endswith(".log.swap"):
            raise Crash
        rename(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(store.disk, "rename", ending)
        with pytest.raises(Crash):
            clean_log(store, log)
    expected = TransactionIndex(store.disk, store.files, str(store.file(0, ".txnindex"))).rows()
    assert expected
    again = store.open(recovery_point=log.log_end_offset)
    assert again.segments[0].transaction_index.rows() == expected
