"""The largest set of pairs in which each left and each right element is used at most once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def maximum_matching(edges: Mapping[int, Sequence[int]], left_count: int) -> dict[int, int]:
    """Pairs right elements with left ones. `edges` has, for each left element, the right elements that it may be paired
    with."""
    partner: dict[int, int] = {}

    def augment(left: int, seen: set[int]) -> bool:
        for right in edges.get(left, ()):
            if right in seen:
                continue
            seen.add(right)
            if right not in partner or augment(partner[right], seen):
                partner[right] = left
                return True
        return False

    for left in range(left_count):
        augment(left, set())
    return partner
