"""Server-side assignors, whatever members subscribe to and had before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.groups.consumer.assignors import AssignableMember, Targets, range_assignor, uniform_assignor

TOPICS = [bytes((number,)) * 16 for number in range(6)]
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), min_size=1)
SUBSCRIPTIONS = st.lists(st.frozensets(st.sampled_from(TOPICS)), min_size=1, max_size=7)


def sizes(targets: Targets) -> dict[str, int]:
    return {member: sum(map(len, partitions.values())) for member, partitions in targets.items()}


def places(targets: Targets) -> list[tuple[bytes, int]]:
    return sorted(
        (topic, index) for held in targets.values() for topic, indexes in held.items() for index in indexes
    )


@given(COUNTS, SUBSCRIPTIONS, SUBSCRIPTIONS)
def test_every_partition_goes_to_one_member_that_wants_it(
    counts: dict[bytes, int], first: list[frozenset[bytes]], second: list[frozenset[bytes]]
) -> None:
    """And the uniform one leaves no partition with a member that has two more than another that wants it, too."""
    for assignor in (uniform_assignor, range_assignor):
        targets: Targets = {}
        for subscriptions in (first, second):
            wishes = {
                f"m{number}": AssignableMember(topics, targets.get(f"m{number}", {}))
                for number, topics in enumerate(subscriptions)
            }
            targets = assignor(wishes, counts)
            wanted = frozenset[bytes]().union(*subscriptions)
            assert places(targets) == [
                (topic, index)
                for topic in sorted(counts)
                if topic in wanted
                for index in range(counts[topic])
            ]
            assert all(topic in wishes[member].topics for member in targets for topic in targets[member])
            if assignor is uniform_assignor:
                has = sizes(targets)
                for giver, held in targets.items():
                    for topic, indexes in held.items():
                        takers = [member for member in wishes if topic in wishes[member].topics]
                        assert not indexes or has[giver] - min(has[taker] for taker in takers) < 2


@given(COUNTS, SUBSCRIPTIONS)
def test_nothing_moves_when_nothing_has_changed(
    counts: dict[bytes, int], subscriptions: list[frozenset[bytes]]
) -> None:
    wishes = {f"m{number}": AssignableMember(topics, {}) for number, topics in enumerate(subscriptions)}
    targets = uniform_assignor(wishes, counts)
    again = {member: AssignableMember(wish.topics, targets[member]) for member, wish in wishes.items()}
    assert uniform_assignor(again, counts) == targets
