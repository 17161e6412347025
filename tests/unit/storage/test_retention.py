"""Retention: which of the oldest segments are deleted, by time, by size, and below the log start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.storage import retention
from strandline.storage.segment import Segment
from tests.batches import NOW_MS, batch
from tests.unit.storage.logs import BATCH_BYTES, Store, append, filled, topic_config, two_batches_each


@pytest.mark.parametrize(
    ("age_ms", "retention_ms", "expired"),
    [
        (0, 10_000, 0),
        (10_000, 10_000, 0),
        # The first segment's largest timestamp is 1,001 ms, the second's 3,001 ms after the first record.
        (11_001, 10_000, 0),
        (11_002, 10_000, 1),
        (13_001, 10_000, 1),
        (13_002, 10_000, 2),
        (10**9, 10_000, 5),
        (10**9, -1, 0),
    ],
)
def test_segments_expire_by_their_largest_timestamp(
    tmp_path: Path, age_ms: int, retention_ms: int, expired: int
) -> None:
    log = filled(two_batches_each(tmp_path))
    config = topic_config(retention_ms=retention_ms)
    assert retention.expired_by_time(log.segments, config, NOW_MS + age_ms) == expired


def test_expiry_stops_at_the_first_segment_that_is_young_enough(tmp_path: Path) -> None:
    log = two_batches_each(tmp_path).open()
    for timestamp in (0, 0, 9_000_000, 0, 0, 0):
        append(log, batch(2, timestamp=NOW_MS + timestamp))
    config = topic_config(retention_ms=1000)
    assert retention.expired_by_time(log.segments, config, NOW_MS + 10_000) == 1


def test_segments_whose_records_have_no_timestamps_expire_by_when_they_were_written(tmp_path: Path) -> None:
    log = Store(tmp_path, segment_bytes=BATCH_BYTES).open()
    for _ in range(3):
        append(log, batch(1, timestamp=-1))
    for segment, second in zip(log.segments, (1, 2, 3), strict=True):
        os.utime(segment.log_path, (second, second))
    config = topic_config(retention_ms=10_000)
    assert [
        retention.expired_by_time(log.segments, config, now_ms) for now_ms in (11_000, 11_001, 12_001, 13_001)
    ] == [0, 1, 2, 3]


def test_an_empty_segment_never_expires(tmp_path: Path) -> None:
    log = Store(tmp_path).open()
    assert retention.expired_by_time(log.segments, topic_config(retention_ms=1), NOW_MS * 2) == 0
    assert retention.expired_by_size(log.segments, topic_config(retention_bytes=0), 0) == 0


@pytest.mark.parametrize(
    ("retention_bytes", "expired"),
    [
        (-1, 0),
        (10 * BATCH_BYTES, 0),
        (8 * BATCH_BYTES + 1, 0),
        (8 * BATCH_BYTES, 1),
        (5 * BATCH_BYTES, 2),
        (2 * BATCH_BYTES, 4),
        (0, 5),
    ],
)
def test_segments_go_while_enough_stays(tmp_path: Path, retention_bytes: int, expired: int) -> None:
    log = filled(two_batches_each(tmp_path))
    config = topic_config(retention_bytes=retention_bytes)
    assert retention.expired_by_size(log.segments, config, log.size) == expired


@pytest.mark.parametrize(("start", "count"), [(0, 0), (3, 0), (4, 1), (7, 1), (8, 2), (20, 4)])
def test_segments_below_the_log_start_can_go(tmp_path: Path, start: int, count: int) -> None:
    log = filled(two_batches_each(tmp_path))
    assert retention.below_start(log.segments, start) == count


def test_a_segment_that_compaction_emptied_does_not_hold_up_those_after_it(tmp_path: Path) -> None:
    log = filled(two_batches_each(tmp_path))
    log.segments[0].size = 0
    config = topic_config(retention_ms=1000, retention_bytes=0)
    assert retention.expired_by_time(log.segments, config, NOW_MS + 10**9) == 5
    assert retention.expired_by_size(log.segments, config, log.segments[1].size) == 2


def test_a_check_looks_at_the_segments_that_it_deletes_and_not_at_the_whole_log(tmp_path: Path) -> None:
    log = filled(two_batches_each(tmp_path))
    looked_at = []

    def oldest_first() -> Iterator[Segment]:
        for segment in log.segments_below(log.log_end_offset):
            looked_at.append(segment.base_offset)
            yield segment

    config = topic_config(retention_ms=10_000, retention_bytes=log.size - log.segments[0].size)
    assert retention.expired_by_time(oldest_first(), config, NOW_MS + 11_002) == 1
    assert retention.expired_by_size(oldest_first(), config, log.size) == 1
    assert looked_at == [0, 4, 0, 4]


def test_segments_above_an_offset_are_not_below_it(tmp_path: Path) -> None:
    log = filled(two_batches_each(tmp_path))
    assert [segment.base_offset for segment in log.segments_below(7)] == [0]
    assert [segment.base_offset for segment in log.segments_below(8)] == [0, 4]
    assert len(list(log.segments_below(log.log_end_offset))) == len(log.segments)
