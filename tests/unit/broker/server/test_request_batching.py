"""Requests of many connections in one iteration of the loop; those of one connection by itself."""

from __future__ import annotations

from collections.abc import Callable

from strandline.broker.server.request_batching import _BUSY_ARRIVALS, _IDLE_ROUNDS, RequestBatcher
from strandline.node.clock import RealClock


class Loop:
    """As far as turns know it: a clock that stands within a turn, and what is to be called at its end."""

    def __init__(self) -> None:
        self.now = 0.0
        self._soon: list[Callable[[], None]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, call: Callable[[], None]) -> None:
        self._soon.append(call)

    def end_iteration(self, ms: int = 0) -> None:
        soon, self._soon = self._soon, []
        for call in soon:
            call()
        self.now += ms / 1000


class Connection:
    def __init__(self, name: str, story: list[str]) -> None:
        self._name, self._story = name, story

    def handle_received(self) -> None:
        self._story.append(f"{self._name} handled")

    def send_responses(self) -> None:
        self._story.append(f"{self._name} sent")


class World:
    def __init__(self) -> None:
        self.loop = Loop()
        self.batcher = RequestBatcher(RealClock())
        self.batcher._loop = self.loop  # type: ignore[assignment]
        self.story: list[str] = []
        self.connections = [Connection(str(number), self.story) for number in range(_BUSY_ARRIVALS + 1)]

    def become_busy(self) -> None:
        for connection in self.connections:
            self.batcher.should_defer(connection)
        self.loop.end_iteration(ms=1)
        self.story.clear()


def test_a_connection_by_itself_is_never_put_off() -> None:
    world = World()
    for _ in range(10 * _BUSY_ARRIVALS):
        assert not world.batcher.should_defer(world.connections[0])
        world.loop.end_iteration()


def test_connections_that_are_milliseconds_apart_are_not_put_off() -> None:
    world = World()
    for connection in world.connections * 3:
        assert not world.batcher.should_defer(connection)
        world.loop.end_iteration(ms=1)


def test_requests_that_arrive_together_are_handled_together_and_then_get_their_responses() -> None:
    world = World()
    world.become_busy()
    first, second = world.connections[:2]
    assert world.batcher.should_defer(second)
    assert world.batcher.should_defer(first)
    assert world.story == []
    world.loop.end_iteration()
    assert world.story == ["1 handled", "0 handled", "1 sent", "0 sent"]


def test_requests_that_arrive_while_a_batch_is_handled_are_in_the_next_one() -> None:
    world = World()
    world.become_busy()

    class Provoking(Connection):
        def handle_received(self) -> None:
            super().handle_received()
            world.batcher.should_defer(world.connections[0])

    world.batcher.should_defer(Provoking("p", world.story))
    world.loop.end_iteration()
    assert world.story == ["p handled", "p sent"]
    world.loop.end_iteration()
    assert world.story[2:] == ["0 handled", "0 sent"]


def test_when_the_load_is_over_nobody_is_put_off_any_more() -> None:
    world = World()
    world.become_busy()
    for _ in range(_IDLE_ROUNDS):
        assert world.batcher.should_defer(world.connections[0])
        world.loop.end_iteration(ms=1)
    assert not world.batcher.should_defer(world.connections[0])
