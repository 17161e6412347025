"""The records that a cleaning leaves of a log, rule by rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.storage.compaction.cleaning import SizedSegment, groups_of
from strandline.storage.compaction.planning import extent_of, plan_of
from strandline.storage.log import Log
from strandline.storage.segment import DamagedSegment
from strandline.wire.compression import NAMES
from strandline.wire.record_batch import DELETE_HORIZON_FLAG, checksum, headers_in, read_header, records_in
from tests.batches import BODY_AT, NOW_MS
from tests.hostile_batches import CODECS, lies
from tests.unit.storage.cleaning import batches_of, clean, end_transaction, kept, write
from tests.unit.storage.logs import Store, append, contents

DAY_MS = 86_400_000


def opened(tmp_path: Path, **settings: object) -> tuple[Store, Log]:
    store = Store(tmp_path / "t-0", **{"cleanup_policy": "compact", **settings})
    return store, store.open()


def test_the_newest_record_of_each_key_stays_at_its_offset(tmp_path: Path) -> None:
    store, log = opened(tmp_path)
    write(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    write(log, (b"c", b"1"), (b"a", b"3"))
    log.roll(NOW_MS)
    write(log, (b"b", b"9"))
    finished = clean(store, log)
    assert kept(log) == [(1, b"b", b"1"), (3, b"c", b"1"), (4, b"a", b"3"), (5, b"b", b"9")]
    assert finished.cleaned_to == 5
    assert (finished.records_read, finished.records_written) == (5, 3)


def test_the_active_segment_is_neither_cleaned_nor_asked(tmp_path: Path) -> None:
    store, log = opened(tmp_path)
    write(log, (b"a", b"1"))
    log.roll(NOW_MS)
    write(log, (b"a", b"2"), (b"a", b"3"))
    clean(store, log)
    assert [offset for offset, _, _ in kept(log)] == [0, 1, 2]


def test_nothing_at_or_above_the_last_stable_offset_is_cleaned(tmp_path: Path) -> None:
    store, log = opened(tmp_path)
    for number in range(4):
        write(log, (b"a", b"%d" % number))
        log.roll(NOW_MS)
    clean(store, log, last_stable_offset=2)
    # Offset 0 has a later record below 2; those from 2 on are left alone.
    assert [offset for offset, _, _ in kept(log)] == [1, 2, 3]


def test_a_segment_with_a_young_record_is_left_alone(tmp_path: Path) -> None:
    store, log = opened(tmp_path, min_compaction_lag_ms=1000)
    write(log, (b"a", b"1"), timestamp=NOW_MS - 5000)
    log.roll(NOW_MS)
    write(log, (b"a", b"2"), timestamp=NOW_MS - 4000)
    log.roll(NOW_MS)
    write(log, (b"a", b"3"), timestamp=NOW_MS - 500)
    log.roll(NOW_MS)
    clean(store, log)
    assert [offset for offset, _, _ in kept(log)] == [1, 2]


@pytest.mark.parametrize("codec", range(5), ids=NAMES)
def test_batches_keep_codec_epoch_sequences_and_offsets(tmp_path: Path, codec: int) -> None:
    store, log = opened(tmp_path)
    write(log, *[(b"%d" % (n % 7), b"v%d" % n * 20) for n in range(50)], codec=codec, producer=(9, 3, 100))
    log.roll(NOW_MS)
    before = read_header(batches_of(log)[0])
    clean(store, log)
    data = batches_of(log)[0]
    header = read_header(data)
    assert header.record_count == 7
    assert checksum(memoryview(data)) == header.crc
    for field in (
        "base_offset",
        "last_offset_delta",
        "leader_epoch",
        "attributes",
        "base_sequence",
        "producer_id",
        "producer_epoch",
    ):
        assert getattr(header, field) == getattr(before, field), field
    assert [record.offset for record in records_in(data)] == list(range(43, 50))
    assert {record.value for record in records_in(data)} == {b"v%d" % n * 20 for n in range(43, 50)}


def test_a_batch_of_which_everything_stays_is_copied_as_it_is(tmp_path: Path) -> None:
    store, log = opened(tmp_path)
    write(log, (b"a", b"1"), (b"b", b"2"), codec=4)
    log.roll(NOW_MS)
    before = batches_of(log)[0]
    clean(store, log)
    assert batches_of(log)[0] == before


def test_max_timestamp_is_that_of_what_stays(tmp_path: Path) -> None:
    store, log = opened(tmp_path)
    write(log, (b"a", b"1"), timestamp=NOW_MS + 900)
    write(log, (b"b", b"1"), timestamp=NOW_MS + 100)
    write(log, (b"a", b"2"), timestamp=NOW_MS + 200)
    log.roll(NOW_MS)
    clean(store, log)
    assert log.segments[0].largest_timestamp() == (NOW_MS + 200, 2)
    assert log.offset_by_time(NOW_MS + 150, 0) == (NOW_MS + 200, 2)


def test_a_tombstone_stays_for_delete_retention_ms_after_it_was_first_met(tmp_path: Path) -> None:
    store, log = opened(tmp_path, delete_retention_ms=DAY_MS)
    write(log, (b"a", b"1"))
    write(log, (b"a", None), (b"b", b"1"), timestamp=NOW_MS + 5)
    log.roll(NOW_MS)
    write(log, (b"z", b"z"))
    clean(store, log, now_ms=NOW_MS + 1000)
    assert kept(log) == [(1, b"a", None), (2, b"b", b"1"), (3, b"z", b"z")]
    header = read_header(batches_of(log)[0])
    assert header.attributes & DELETE_HORIZON_FLAG
    assert header.base_timestamp == NOW_MS + 1000 + DAY_MS
    assert {record.timestamp for record in records_in(batches_of(log)[0])} == {NOW_MS + 5}
    # Met again before its time it stays, and its time does not move.
    clean(store, log, now_ms=NOW_MS + 999 + DAY_MS)
    assert read_header(batches_of(log)[0]) == header
    clean(store, log, now_ms=NOW_MS + 1000 + DAY_MS)
    assert kept(log) == [(2, b"b", b"1"), (3, b"z", b"z")]


def test_a_record_without_a_key_goes(tmp_path: Path) -> None:
    from strandline.wire.record_batch import Record, build_batch
    from tests.unit.storage.logs import append

    store, log = opened(tmp_path)
    append(log, build_batch([Record(0, NOW_MS, None, b"x"), Record(1, NOW_MS, b"k", b"y")]))
    log.roll(NOW_MS)
    write(log, (b"z", b"z"))
    clean(store, log)
    assert kept(log) == [(1, b"k", b"y"), (2, b"z", b"z")]


def test_the_last_batch_of_what_was_cleaned_stays_as_a_header(tmp_path: Path) -> None:
    """Otherwise nobody could tell up to where the log goes (redpanda#13639)."""
    store, log = opened(tmp_path, delete_retention_ms=0)
    write(log, (b"a", b"1"))
    write(log, (b"a", None))
    log.roll(NOW_MS)
    clean(store, log)
    clean(store, log, now_ms=NOW_MS + 1)
    (data,) = batches_of(log)
    header = read_header(data)
    assert (header.base_offset, header.last_offset, header.record_count, header.size) == (1, 1, 0, 61)
    assert checksum(memoryview(data)) == header.crc
    assert records_in(data) == []


def test_the_last_sequence_of_a_known_producer_stays(tmp_path: Path) -> None:
    store, log = opened(tmp_path)
    write(log, (b"a", b"1"), (b"a", b"2"), producer=(5, 0, 0))
    write(log, (b"a", b"3"), producer=(6, 0, 0))
    log.roll(NOW_MS)
    write(log, (b"a", b"4"))
    log.roll(NOW_MS)
    before = log.producers.entries()
    clean(store, log)
    assert kept(log) == [(3, b"a", b"4")]
    assert [read_header(data).record_count for data in batches_of(log)] == [0, 0, 1]
    log = store.open(recovery_point=0)
    assert log.producers.entries() == before


def test_the_batches_of_a_forgotten_producer_go(tmp_path: Path) -> None:
    store, log = opened(tmp_path)
    write(log, (b"a", b"1"), producer=(5, 0, 0))
    log.roll(NOW_MS)
    write(log, (b"a", b"4"))
    log.roll(NOW_MS)
    log.producers.expire(NOW_MS * 2)  # type: ignore[attr-defined]
    clean(store, log)
    assert contents(log) == [(1, 1)]


def test_data_of_an_aborted_transaction_goes_and_its_marker_after_delete_retention_ms(tmp_path: Path) -> None:
    store, log = opened(tmp_path, delete_retention_ms=DAY_MS)
    write(log, (b"a", b"0"))
    write(log, (b"a", b"aborted"), producer=(5, 0, 0), is_transactional=True)
    marker = end_transaction(log, 5, 0, commit=False)
    log.roll(NOW_MS)
    write(log, (b"y", b"1"), producer=(5, 0, 1))
    log.roll(NOW_MS)
    write(log, (b"z", b"z"))
    assert len(log.segments[0].transaction_index.rows()) == 1

    clean(store, log)
    # The aborted record does not even replace the committed one of its key.
    assert kept(log) == [(0, b"a", b"0"), (3, b"y", b"1"), (4, b"z", b"z")]
    assert marker in [read_header(data).base_offset for data in batches_of(log)]
    assert [row.last_offset for row in log.segments[0].transaction_index.rows()] == [marker]

    # Now no batch is left of it: its row goes, and the marker has its time from now on.
    clean(store, log, now_ms=NOW_MS + 1)
    assert log.segments[0].transaction_index.rows() == []
    headers = {read_header(data).base_offset: read_header(data) for data in batches_of(log)}
    assert headers[marker].base_timestamp == NOW_MS + 1 + DAY_MS
    assert headers[marker].attributes & DELETE_HORIZON_FLAG

    clean(store, log, now_ms=NOW_MS + 1 + DAY_MS)
    assert marker not in [read_header(data).base_offset for data in batches_of(log)]


def test_a_commit_marker_stays_while_its_transaction_has_records(tmp_path: Path) -> None:
    store, log = opened(tmp_path, delete_retention_ms=0)
    write(log, (b"a", b"1"), producer=(5, 0, 0), is_transactional=True)
    marker = end_transaction(log, 5, 0, commit=True)
    log.roll(NOW_MS)
    for number in range(2):
        write(log, (b"z", b"%d" % number))
        log.roll(NOW_MS)
        clean(store, log, now_ms=NOW_MS + number)
        assert marker in [read_header(data).base_offset for data in batches_of(log)]
    log.producers.expire(NOW_MS * 2)  # type: ignore[attr-defined]
    write(log, (b"a", b"2"))
    log.roll(NOW_MS)
    # This takes the data, the next sees the marker alone, the last has waited long enough.
    for number in range(3):
        clean(store, log, now_ms=NOW_MS + 10 + number)
    assert marker not in [read_header(data).base_offset for data in batches_of(log)]


def test_small_segments_become_one_and_their_snapshots_go(tmp_path: Path) -> None:
    store, log = opened(tmp_path)
    for number in range(6):
        write(log, (b"%d" % (number % 3), b"x"))
        log.roll(NOW_MS)
    clean(store, log)
    assert store.names(".log") == [0, 6]
    assert store.names(".snapshot") == [6]
    assert [path.name for path in store.path.glob("*.cleaned")] == []
    assert contents(log) == [(3, 3), (4, 4), (5, 5)]


@pytest.mark.parametrize(
    ("sizes", "limits", "expected"),
    [
        ([(10, 8, 12)] * 4, (20, 1000), [2, 2]),
        ([(10, 8, 12)] * 4, (1000, 24), [2, 2]),
        ([(10, 800, 0)] * 3, (1000, 1600), [2, 1]),
        ([(30, 0, 0)] * 2, (20, 1000), [1, 1]),
        ([(0, 0, 0)] * 3, (20, 1000), [3]),
    ],
)
def test_segments_are_merged_as_far_as_bytes_and_indexes_allow(
    tmp_path: Path, sizes: list[tuple[int, int, int]], limits: tuple[int, int], expected: list[int]
) -> None:
    segments = [SizedSegment(n, size, n + 1, *indexes) for n, (size, *indexes) in enumerate(sizes)]
    _, log = opened(tmp_path)
    extent = extent_of(log, None, 0, NOW_MS)
    plan = plan_of(log, extent, now_ms=NOW_MS, key_bytes_max=1, read_bytes=1)
    plan = plan._replace(segment_bytes=limits[0], segment_index_bytes=limits[1])
    assert [len(group) for group in groups_of(segments, plan)] == expected


def test_segments_whose_offsets_are_too_far_apart_are_not_merged(tmp_path: Path) -> None:
    _, log = opened(tmp_path)
    plan = plan_of(log, extent_of(log, None, 0, NOW_MS), now_ms=NOW_MS, key_bytes_max=1, read_bytes=1)
    far = 1 << 31
    segments = [
        SizedSegment(0, 10, 5, 0, 0),
        SizedSegment(5, 10, far, 0, 0),
        SizedSegment(far, 1, far + 1, 0, 0),
    ]
    assert [len(group) for group in groups_of(segments, plan)] == [2, 1]


def test_a_full_map_ends_the_cleaning_early_and_the_next_goes_on(tmp_path: Path) -> None:
    store, log = opened(tmp_path)
    for number in range(40):
        write(log, (b"%d" % (number % 20), b"%d" % number))
        if number % 4 == 3:
            log.roll(NOW_MS)
    cleaned_to, rounds = 0, 0
    while cleaned_to < 40:
        finished = clean(store, log, cleaned_to=cleaned_to, key_bytes_max=1000)
        assert finished.cleaned_to > cleaned_to
        cleaned_to = finished.cleaned_to
        rounds += 1
    assert rounds > 3
    assert [offset for offset, _, _ in kept(log)] == list(range(20, 40))


def test_a_batch_larger_than_the_buffer_is_read_whole(tmp_path: Path) -> None:
    store, log = opened(tmp_path)
    write(log, (b"a", b"x" * 5000), (b"b", b"y" * 5000))
    write(log, (b"a", b"z" * 5000))
    log.roll(NOW_MS)
    clean(store, log, read_bytes=100)
    assert [offset for offset, _, _ in kept(log)] == [1, 2]


def test_damage_is_reported_with_its_place_and_nothing_is_swapped(tmp_path: Path) -> None:
    store, log = opened(tmp_path)
    write(log, (b"a", b"1"))
    write(log, (b"a", b"2"))
    log.roll(NOW_MS)
    path = store.file(0)
    data = bytearray(path.read_bytes())
    data[-1] ^= 0x55
    path.write_bytes(bytes(data))
    position = len(data) // 2
    with pytest.raises(DamagedSegment, match=rf"0\.log is damaged at position {position}: the CRC is wrong"):
        clean(store, log)
    assert path.read_bytes() == bytes(data)


def test_a_reader_under_way_goes_on_in_the_old_file(tmp_path: Path) -> None:
    store, log = opened(tmp_path)
    write(log, (b"a", b"1"))
    write(log, (b"a", b"2"))
    log.roll(NOW_MS)
    region = log.read(0, log.log_end_offset, 1000, whole_first_batch=True)
    assert region is not None
    before = region.file.read_at(region.position, region.size)
    clean(store, log)
    assert region.file.read_at(region.position, region.size) == before


def test_indexes_of_a_cleaned_segment_find_every_batch(tmp_path: Path) -> None:
    store, log = opened(tmp_path, index_interval_bytes=200)
    for number in range(200):
        write(log, (b"%d" % (number % 50), b"x" * 40), timestamp=NOW_MS + number)
        if number % 20 == 19:
            log.roll(NOW_MS)
    clean(store, log)
    assert log.segments[0].offset_index.contents()
    for offset in range(200):
        holder = [segment for segment in log.segments if segment.base_offset <= offset][-1]
        place = holder.find(offset)
        assert place is not None
        assert place.base_offset == max(offset, 150)
        assert log.offset_by_time(NOW_MS + offset, 0) == (NOW_MS + max(offset, 150), max(offset, 150))


@pytest.mark.parametrize("codec", CODECS)
def test_batches_that_cannot_be_read_stay_as_they_are_and_the_rest_is_cleaned(
    tmp_path: Path, codec: int
) -> None:
    """0.1.0 let such batches in. Keys that one of them seems to have must not cost other records."""
    store, log = opened(tmp_path)
    write(log, (b"k", b"old"), (b"other", b"stays"))
    bad = list(lies(codec).values())
    poison = [each for each in bad if read_header(each).record_count < 100]
    for each in poison:
        append(log, each)
    write(log, (b"k", b"new"))
    log.roll(NOW_MS)
    end = log.log_end_offset
    finished = clean(store, log)
    assert finished.cleaned_to == end
    assert len(finished.malformed) == min(10, len(poison))
    data = b"".join(path.read_bytes() for path in sorted(tmp_path.glob("t-0/*.log")))
    batches = [data[at : at + header.size] for at, header in headers_in(data)]
    assert [each[BODY_AT:] for each in batches[1:-1]] == [each[BODY_AT:] for each in poison]
    (first, last) = (records_in(data), records_in(batches[-1]))
    assert [record.value for record in (*first, *last)] == [b"stays", b"new"]
