"""Rates over samples and token buckets, as Kafka's quotas measure them."""

from __future__ import annotations

import pytest

from strandline.base.quota_windows import RateWindow, TokenBucket


def used_by(window: RateWindow, limit: float, chunk: float, seconds: float) -> float:
    """Returns the use of a client that uses as much as possible, and waits whenever it is told to."""
    now, used = 1000.0, 0.0
    while now < 1000.0 + seconds:
        window.record(chunk, now)
        used += chunk
        now += max(window.throttle_s(limit, now), chunk / 1e9)
    return used


def test_ten_seconds_of_the_rate_may_be_used_at_once() -> None:
    window = RateWindow(1.0, 11)
    window.record(10_000, 5.0)
    assert window.throttle_s(1000, 5.0) == 0
    window.record(1000, 5.0)
    assert window.throttle_s(1000, 5.0) == pytest.approx(1.0)


@pytest.mark.parametrize("chunk", [100, 10_000, 500_000])
def test_the_rate_is_held_within_five_percent(chunk: float) -> None:
    limit, seconds = 1_000_000.0, 330.0
    burst = limit * 10
    used = used_by(RateWindow(1.0, 11), limit, chunk, seconds)
    assert (used - burst) / seconds == pytest.approx(limit, rel=0.05)


def test_use_that_is_older_than_the_samples_is_forgotten() -> None:
    window = RateWindow(1.0, 11)
    window.record(100_000, 5.0)
    assert window.throttle_s(1000, 15.9) > 0
    assert window.throttle_s(1000, 16.1) == 0


def test_a_bucket_is_full_at_first_and_may_be_overdrawn_once() -> None:
    bucket = TokenBucket(11.0)
    assert bucket.throttle_s(2.0, 0.0) == 0
    bucket.spend(22, 2.0, 0.0)
    assert bucket.throttle_s(2.0, 0.0) == 0
    bucket.spend(10, 2.0, 0.0)
    assert bucket.throttle_s(2.0, 0.0) == pytest.approx(5.0)
    assert bucket.throttle_s(2.0, 4.0) == pytest.approx(1.0)
    assert bucket.throttle_s(2.0, 5.0) == 0


def test_a_bucket_does_not_overflow() -> None:
    bucket = TokenBucket(10.0)
    bucket.spend(10, 1.0, 0.0)
    bucket.spend(10, 1.0, 1_000_000.0)
    bucket.spend(1, 1.0, 1_000_000.0)
    assert bucket.throttle_s(1.0, 1_000_000.0) == pytest.approx(1.0)
