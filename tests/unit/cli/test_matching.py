"""`--grep` passes over batches in which nothing can match, and never over one with a match."""

from __future__ import annotations

import argparse
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.cli.records.matching import batch_filter_of, matcher_of
from strandline.client.consumer.record_decoder import ConsumerRecord

TEXTS = st.text("ab=.1 ", max_size=4)


def options(**given_options: object) -> argparse.Namespace:
    none = dict.fromkeys(("grep", "grep_key", "grep_value", "grep_header"))
    return argparse.Namespace(**{**none, "ignore_case": False, "invert": False, **given_options})


def record(key: str, value: str, headers: list[tuple[str, str]]) -> ConsumerRecord:
    encoded = tuple((name, text.encode()) for name, text in headers)
    return ConsumerRecord("t", 0, 0, 0, 0, key.encode(), value.encode(), encoded, 0)


@given(
    st.text("abAB=.1 +*?^$|", min_size=1, max_size=5),
    st.booleans(),
    TEXTS,
    TEXTS,
    st.lists(st.tuples(TEXTS, TEXTS), max_size=2),
)
def test_no_match_is_passed_over(
    pattern: str, ignore_case: bool, key: str, value: str, headers: list[tuple[str, str]]
) -> None:
    try:
        re.compile(pattern)
    except re.error:
        return
    one = record(key, value, headers)
    # The bytes of a batch have its texts in this order, with lengths between them.
    body = (
        b"\x01"
        + one.key
        + b"\x02"
        + one.value
        + b"".join(b"\x03" + name.encode() + b"\x04" + (text or b"") for name, text in one.headers)
    )
    for place in ("grep", "grep_key", "grep_value", "grep_header"):
        asked = options(ignore_case=ignore_case, **{place: pattern})
        is_wanted = batch_filter_of(asked)
        if matcher_of(asked)([one]) and is_wanted is not None:
            assert is_wanted(body), place


@pytest.mark.parametrize(
    ("pattern", "is_sparing"),
    [
        ("needle", True),
        ("ne+dle.*x", True),
        ("a|b", False),
        ("[ab]", False),
        (r"\d", False),
        ("source=tour", True),
    ],
)
def test_batches_without_the_texts_of_a_pattern_are_passed_over(pattern: str, is_sparing: bool) -> None:
    is_wanted = batch_filter_of(options(grep=pattern))
    assert (is_wanted is not None) == is_sparing
    assert is_wanted is None or not is_wanted(b"nothing of the kind")


def test_it_is_given_up_where_most_batches_match_and_not_tried_for_the_inverse() -> None:
    assert batch_filter_of(options(grep="x", invert=True)) is None
    is_wanted = batch_filter_of(options(grep="x"))
    assert is_wanted is not None
    assert not is_wanted(b"y")
    for _ in range(100):
        assert is_wanted(b"x")
    assert is_wanted(b"y"), "it no longer looks"
