"""An answer that is given by a call: taken once, and then nothing holds on to who took it."""

from __future__ import annotations

import weakref

import pytest

from strandline.broker.server.pending_response import Body, Later


class Taker:
    """Knows what it waits for, as a waiting request does; it is its own connection."""

    def __init__(self, later: Later) -> None:
        self.later = later
        self.taken: list[Body] = []
        later.request = self  # type: ignore[assignment]

    @property
    def connection(self) -> Taker:
        return self

    def given(self, request: Taker, body: Body) -> None:
        assert request is self
        self.taken.append(body)


def test_it_is_taken_when_it_is_given() -> None:
    taker = Taker(Later())
    assert taker.later.given is None
    taker.later.give((b"answer",))
    assert taker.taken == [(b"answer",)]
    assert taker.later.given == (b"answer",)


def test_whoever_abandons_it_is_not_told() -> None:
    taker = Taker(Later())
    taker.later.abandon()
    taker.later.give((b"answer",))
    assert taker.taken == []


@pytest.mark.parametrize("end", [lambda later: later.give((b"",)), Later.abandon])
def test_no_cycle_is_left_for_the_collector(end: object) -> None:
    """It would stop the loop for tens of milliseconds whenever enough of them had gathered."""
    taker = Taker(Later())
    end(taker.later)  # type: ignore[operator]
    gone = weakref.ref(taker)
    del taker
    assert gone() is None
