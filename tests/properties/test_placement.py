"""Replicas spread over brokers and racks, whatever the cluster looks like."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from strandline.controller.image import BrokerRegistration
from strandline.controller.placement import place, racks_of, stripe

from .effort import effort


def broker(node_id: int, rack: str | None) -> BrokerRegistration:
    return BrokerRegistration(
        node_id=node_id,
        epoch=0,
        incarnation=bytes(16),
        endpoints=(),
        rack=rack,
        fenced=False,
        in_controlled_shutdown=False,
        log_dirs=(),
    )


@st.composite
def clusters(draw: st.DrawFn, *, even: bool = False) -> list[BrokerRegistration]:
    racks = draw(st.integers(1, 4))
    sizes = [draw(st.integers(1, 3))] * racks if even else [draw(st.integers(1, 4)) for _ in range(racks)]
    names = [None] if racks == 1 and draw(st.booleans()) else [f"rack-{n}" for n in range(racks)]
    ids = iter(draw(st.permutations(range(sum(sizes)))))
    return [broker(next(ids), name) for name, size in zip(names, sizes, strict=True) for _ in range(size)]


STARTS = st.integers(0, 1 << 16)
COUNTS = st.integers(1, 60)


@effort(150)
@given(clusters(), COUNTS, STARTS, st.data())
def test_every_partition_has_its_replicas_on_different_brokers_and_as_many_racks_as_there_are(
    brokers: list[BrokerRegistration], count: int, first: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    racks = {b.node_id: b.rack for b in brokers}
    placed = place(brokers, count, factor, first)
    assert len(placed) == count
    for replicas in placed:
        assert len(replicas) == factor
        assert len(set(replicas)) == factor
        assert set(replicas) <= set(racks)
        assert len({racks[node] for node in replicas}) == min(factor, len(set(racks.values())))


@effort(100)
@given(clusters(), COUNTS, STARTS, st.data())
def test_leaders_are_spread_as_evenly_as_can_be(
    brokers: list[BrokerRegistration], count: int, first: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    leaders = Counter(replicas[0] for replicas in place(brokers, count, factor, first))
    least = 0 if len(leaders) < len(brokers) else min(leaders.values())
    assert max(leaders.values()) - least <= 1


@effort(100)
@given(clusters(even=True), STARTS, st.data())
def test_replicas_are_spread_evenly_over_racks_of_one_size(
    brokers: list[BrokerRegistration], first: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    count = len(brokers) * len(brokers)
    held = Counter(node for replicas in place(brokers, count, factor, first) for node in replicas)
    assert max(held.values()) - min(held.values()) <= 2, (
        "a turn that is not complete may give a broker one more"
    )


@effort(50)
@given(clusters(), STARTS)
def test_a_leader_s_followers_are_not_always_the_same(brokers: list[BrokerRegistration], first: int) -> None:
    racks = Counter(b.rack for b in brokers)
    if len(brokers) < 3 or min(racks.values()) < 2:
        return
    placed = place(brokers, 6 * len(brokers), 2, first)
    for leader in {replicas[0] for replicas in placed}:
        assert len({replicas[1] for replicas in placed if replicas[0] == leader}) > 1


def test_the_stripe_goes_through_racks_in_turn() -> None:
    brokers = [broker(n, rack) for n, rack in ((1, "a"), (2, "a"), (3, "b"), (4, "b"), (5, "c"), (6, "c"))]
    assert stripe(racks_of(brokers)) == [1, 3, 5, 2, 4, 6]
