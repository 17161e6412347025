"""The limits and signals that this process asks of the operating system."""

from __future__ import annotations

import resource
import signal

import pytest

from strandline.node.process import raise_open_file_limit, stop_signals


class Limits:
    """A system that says one hard limit and grants another."""

    def __init__(self, soft: int, hard: int, granted: int) -> None:
        self.soft, self.hard, self.granted = soft, hard, granted

    def get(self, which: int) -> tuple[int, int]:
        assert which == resource.RLIMIT_NOFILE
        return self.soft, self.hard

    def set(self, which: int, limits: tuple[int, int]) -> None:
        assert limits[1] == self.hard
        if limits[0] > self.granted:
            raise ValueError("current limit exceeds maximum limit")
        self.soft = limits[0]


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        (Limits(1024, 4096, 4096), 4096),
        (Limits(256, resource.RLIM_INFINITY, 10_240), 10_240),
        (Limits(1024, 1_000_000, 70_000), 65_536),
        (Limits(256, 300, 256), 256),
        (Limits(4096, 4096, 4096), 4096),
    ],
)
def test_the_limit_of_open_files_is_raised_as_far_as_it_goes(
    limits: Limits, reached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    assert raise_open_file_limit() == limits.soft == reached


def test_a_hangup_ends_a_process_in_order_unless_nohup_says_otherwise() -> None:
    before = signal.getsignal(signal.SIGHUP)
    try:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        assert set(stop_signals()) == {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        assert set(stop_signals()) == {signal.SIGTERM, signal.SIGINT}
    finally:
        signal.signal(signal.SIGHUP, before)
