"""The status of groups by Burrow's rules, with the default thresholds."""

from __future__ import annotations

import pytest

from strandline.telemetry.lag import (
    ERR,
    OK,
    REWIND,
    STALL,
    STOP,
    WARN,
    EndOffsets,
    LagRules,
    PartitionLag,
    group_status,
)

RULES = LagRules()
MINUTE_MS = 60_000


def seen(*samples: tuple[float, int, int], rules: LagRules = RULES) -> PartitionLag:
    """Of commits: minute, committed offset, end offset."""
    found = PartitionLag()
    for minute, offset, end in samples:
        now_ms = int(minute * MINUTE_MS)
        found.see(offset, end, now_ms, now_ms, rules)
    return found


def status(found: PartitionLag, minute: float) -> str:
    return found.status(int(minute * MINUTE_MS), RULES)


def test_a_consumer_that_keeps_up_is_ok() -> None:
    assert status(seen((0, 100, 100), (1, 200, 201), (2, 300, 300)), 2) == OK


def test_lag_that_comes_and_goes_is_ok() -> None:
    assert status(seen(*((n, 100 * n, 100 * n + (50 if n % 2 else 20)) for n in range(8))), 7.1) == OK


def test_lag_that_never_shrinks_for_five_minutes_is_a_warning() -> None:
    rising = [(n, 100 * n, 120 * n + 10) for n in range(7)]
    assert status(seen(*rising[:4]), 3.1) == OK
    assert status(seen(*rising), 6.1) == WARN


def test_frequent_commits_still_span_five_minutes() -> None:
    samples = [(n / 60, n, 2 * n + 1) for n in range(400)]  # a commit each second
    found = seen(*samples)
    assert len(found.commits) <= 10
    assert status(found, 400 / 60) == WARN


def test_commits_that_do_not_change_are_a_stall() -> None:
    assert status(seen((0, 50, 100), (1, 50, 150), (2, 50, 200)), 2.1) == STALL


def test_a_consumer_without_commits_has_stopped() -> None:
    found = seen((0, 50, 100), (0.5, 60, 120))
    assert status(found, 1.2) == OK
    assert status(found, 2) == STOP


def test_a_consumer_that_had_read_everything_has_not_stopped_when_the_next_record_comes() -> None:
    found = seen((0, 50, 50))
    found.see(50, 50, 0, 30 * MINUTE_MS, RULES)  # still nothing to read
    found.see(50, 51, 0, 31 * MINUTE_MS, RULES)  # committed half an hour ago, and one record is new
    assert status(found, 30.9) == OK
    assert status(found, 32) == STOP


def test_an_offset_that_went_back_is_a_rewind_until_it_is_reached_again() -> None:
    found = seen((0, 500, 1000), (1, 100, 1000))
    assert status(found, 1.1) == REWIND
    found.see(550, 1000, 2 * MINUTE_MS, 2 * MINUTE_MS, RULES)
    assert status(found, 2.1) == OK


@pytest.mark.parametrize(
    ("lag", "partitions", "expected"),
    [
        (0, [], OK),
        (1_000, [OK], OK),
        (1_001, [OK], WARN),
        (10_000, [OK], WARN),
        (10_001, [OK], ERR),
        (1, [OK, WARN], WARN),
        (1, [STOP, OK], ERR),
        (1, [STALL], ERR),
        (1, [REWIND], ERR),
    ],
)
def test_the_status_of_a_group_follows_the_thresholds(lag: int, partitions: list[str], expected: str) -> None:
    assert group_status(lag, partitions, RULES) == expected


def test_the_trend_is_records_per_second() -> None:
    assert seen((0, 0, 100), (1, 0, 700)).trend() == pytest.approx(10.0)
    assert seen((0, 0, 100)).trend() == 0


def test_seconds_are_estimated_between_two_looks() -> None:
    ends = EndOffsets()
    for second in range(0, 101, 10):
        ends.see(second * 100, second * 1000)
    assert ends.lag_s(10_000, 100_000) == 0
    assert ends.lag_s(5_500, 100_000) == pytest.approx(45.0)
    assert ends.lag_s(0, 100_000) == pytest.approx(100.0)
    late = EndOffsets()
    late.see(500, 0)
    assert late.lag_s(100, 1000) is None


def test_the_memory_of_ends_is_limited() -> None:
    ends = EndOffsets()
    for number in range(10_000):
        ends.see(number, number * 1000)
    assert ends.lag_s(9_999 - 30, 10_000_000) == pytest.approx(31, abs=1)
    assert len(ends._seen) <= 60
