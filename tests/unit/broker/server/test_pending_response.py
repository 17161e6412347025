"""A response that is completed by a call: taken once, and then nothing holds on to its taker."""

from __future__ import annotations

import weakref

import pytest

from strandline.broker.server.pending_response import PendingResponse
from strandline.broker.server.request_context import Body


class Taker:
    """Knows what it waits for, as a waiting request does; it is its own connection."""

    def __init__(self, pending: PendingResponse) -> None:
        self.pending = pending
        self.taken: list[Body] = []
        pending.request = self  # type: ignore[assignment]

    @property
    def connection(self) -> Taker:
        return self

    def completed(self, request: Taker, body: Body) -> None:
        assert request is self
        self.taken.append(body)


def test_it_is_taken_when_it_is_complete() -> None:
    taker = Taker(PendingResponse())
    assert taker.pending.body is None
    taker.pending.complete((b"response",))
    assert taker.taken == [(b"response",)]
    assert taker.pending.body == (b"response",)


def test_a_cancelled_one_tells_nobody() -> None:
    taker = Taker(PendingResponse())
    taker.pending.cancel()
    taker.pending.complete((b"response",))
    assert taker.taken == []


@pytest.mark.parametrize("end", [lambda pending: pending.complete((b"",)), PendingResponse.cancel])
def test_no_cycle_is_left_for_the_collector(end: object) -> None:
    """It would stop the loop for tens of milliseconds whenever enough of them had gathered."""
    taker = Taker(PendingResponse())
    end(taker.pending)  # type: ignore[operator]
    gone = weakref.ref(taker)
    del taker
    assert gone() is None
