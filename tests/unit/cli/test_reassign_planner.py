"""The rules of a reassignment plan, for random clusters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.ids import TopicPartition
from strandline.cli.reassign.planner import plan


@st.composite
def clusters(
    draw: st.DrawFn,
) -> tuple[dict[TopicPartition, tuple[int, ...]], list[int], dict[int, str | None], int]:
    brokers = list(range(1, draw(st.integers(2, 8)) + 1))
    rack_count = draw(st.integers(1, 4))
    racks: dict[int, str | None] = {node: f"r{node % rack_count}" for node in brokers}
    factor = draw(st.integers(1, len(brokers)))
    current = {
        TopicPartition("t", number): tuple(draw(st.permutations(brokers))[:factor])
        for number in range(draw(st.integers(1, 12)))
    }
    return current, brokers, racks, factor


@given(clusters())
def test_replicas_are_distinct_balanced_and_over_racks(
    cluster: tuple[dict[TopicPartition, tuple[int, ...]], list[int], dict[int, str | None], int],
) -> None:
    current, brokers, racks, factor = cluster
    found = plan(current, brokers, racks)
    for replicas in found.values():
        assert len(replicas) == factor == len(set(replicas))
        assert set(replicas) <= set(brokers)
        assert len({racks[node] for node in replicas}) >= min(factor, len(set(racks.values()))) - 1
    leaders = [replicas[0] for replicas in found.values()]
    assert all(leader in found[each] for each, leader in zip(found, leaders, strict=True))


def test_a_balanced_cluster_is_left_as_it_is() -> None:
    current = {TopicPartition("t", i): ((i % 3) + 1, (i + 1) % 3 + 1) for i in range(6)}
    assert plan(current, [1, 2, 3], {}) == current


def test_a_broker_that_goes_gives_only_its_own_replicas() -> None:
    current = {TopicPartition("t", i): ((i % 4) + 1, (i + 1) % 4 + 1) for i in range(8)}
    found = plan(current, [1, 2, 3], {})
    moved = sum(len(set(found[each]) - set(current[each])) for each in current)
    assert all(4 not in replicas for replicas in found.values())
    assert moved == sum(4 in replicas for replicas in current.values())


def test_a_broker_that_comes_gets_its_share_and_others_move_nothing_between_them() -> None:
    current = {TopicPartition("t", i): ((i % 2) + 1, (i + 1) % 2 + 1) for i in range(6)}
    found = plan(current, [1, 2, 3], {})
    held = {node: sum(node in replicas for replicas in found.values()) for node in (1, 2, 3)}
    assert held == {1: 4, 2: 4, 3: 4}
    assert all(set(found[each]) - set(current[each]) <= {3} for each in current)


def test_more_replicas_go_to_other_racks() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    found = plan({TopicPartition("t", 0): (1,)}, [1, 2, 3, 4, 5], racks, 3)
    assert found[TopicPartition("t", 0)][0] == 1
    assert {racks[node] for node in found[TopicPartition("t", 0)]} == {"a", "b", "c"}


def test_too_few_brokers_are_refused() -> None:
    with pytest.raises(ValueError, match="3 replicas need 3 brokers; there are 2"):
        plan({TopicPartition("t", 0): (1, 2)}, [1, 2], {}, 3)
