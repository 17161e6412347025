"""Deadlines by name, against the plainest thing that could keep them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.groups.timers import Timers


def test_a_deadline_that_is_put_off_is_due_at_its_new_time_and_not_before() -> None:
    timers = Timers()
    timers.schedule(("session",), 10.0)
    timers.schedule(("session",), 20.0)
    assert list(timers.due(15.0)) == []
    assert timers.next_deadline() == 20.0
    assert list(timers.due(20.0)) == [("session",)]
    assert (timers.has(("session",)), timers.next_deadline()) == (False, None)


def test_a_deadline_that_is_put_off_for_ever_takes_one_place() -> None:
    """A member that commits a thousand times a second would otherwise leave as many behind."""
    timers = Timers()
    for number in range(1000):
        timers.schedule(("session",), 10.0 + number)
    assert len(timers._heap) == 1


_acts = st.one_of(
    st.tuples(st.just("schedule"), st.sampled_from("abc"), st.integers(0, 20)),
    st.tuples(st.just("cancel"), st.sampled_from("abc"), st.just(0)),
    st.tuples(st.just("pass"), st.just(""), st.integers(0, 8)),
)


@given(st.lists(_acts, max_size=60))
def test_deadlines_are_met_in_their_order_each_at_its_time(acts: list[tuple[str, str, int]]) -> None:
    timers = Timers()
    plain: dict[str, tuple[int, int]] = {}
    now = 0
    for number, (act, name, value) in enumerate(acts):
        if act == "schedule":
            timers.schedule((name,), now + value)
            plain[name] = (now + value, number)
        elif act == "cancel":
            timers.cancel((name,))
            plain.pop(name, None)
        else:
            now += value
            due = sorted(
                (deadline, order, name) for name, (deadline, order) in plain.items() if deadline <= now
            )
            assert list(timers.due(now)) == [(name,) for _, _, name in due]
            for _, _, name in due:
                del plain[name]
        looked_at = timers.next_deadline()
        if plain:
            assert looked_at is not None
            assert looked_at <= min(plain.values())[0]
