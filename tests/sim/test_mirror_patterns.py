"""The page about patterns of several sites is made from its results, and its results are those of today's code."""

from __future__ import annotations

import pytest

from bench import mirror_patterns
from bench.mirror_patterns import CASES, Case
from tests.properties.effort import IS_SOAK

FEW = (Case("stretch cluster", 20, 2), Case("active-passive", 20, 1), Case("active-active", 100, 1))
# A change of the code may draw other delays: figures have to be near, not equal.
FACTOR = 2.0
NEAR = {"lost": 5, "listed": 5, "read_again": 150, "acknowledged_ms": 10, "far_ms": 20}
NEAR_OTHERWISE = 2.0  # seconds


def test_page_is_made_from_its_results_and_not_by_hand() -> None:
    page = mirror_patterns.page(mirror_patterns.recorded())
    assert mirror_patterns.PAGE.read_text() == page, "`python -m bench.mirror_patterns --page-only` makes it"


def test_page_has_every_case() -> None:
    assert tuple(mirror_patterns.recorded()) == CASES


@pytest.mark.parametrize("case", CASES if IS_SOAK else FEW, ids=str)
def test_results_of_the_page_are_those_of_the_code(case: Case) -> None:
    """A run also checks that `verify` lists every record that is missing, and that a moved group skips nothing."""
    found, expected = mirror_patterns.play(case), mirror_patterns.recorded()[case]
    assert found.keys() == expected.keys()
    for name, value in found.items():
        low, high = sorted((value, expected[name]))
        is_near = high <= low * FACTOR or high - low <= NEAR.get(name, NEAR_OTHERWISE)
        assert is_near, (
            f"{name} is {value} and was {expected[name]}: `python -m bench.mirror_patterns` plays it again"
        )
    if case.pattern == "stretch cluster":
        assert found["lost"] == 0
