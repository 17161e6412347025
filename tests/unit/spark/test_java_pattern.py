"""Patterns of Java: which names they match, and what is refused."""

from __future__ import annotations

import re

import pytest

from strandline.spark.java_pattern import to_python_pattern

NAMES = ("orders", "Orders.v2", "orders-2026_eu", "a+b")


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("orders", ["orders", "orders-2026_eu"]),
        (r"\Q.v\E\d", ["Orders.v2"]),
        (r"\Qa+b", ["a+b"]),
        (r"\p{Lu}", ["Orders.v2"]),
        (r"^\P{Upper}+$", ["orders", "orders-2026_eu", "a+b"]),
        (r"^[\p{L}\p{N}.]+\z", ["orders", "Orders.v2"]),
        (r"(?<two>\d\d)2\d_|(?<six>26)_", ["orders-2026_eu"]),
        (r"(?<digit>2)0\k<digit>", ["orders-2026_eu"]),
        (r"(?<=v)2", ["Orders.v2"]),
        (r"[\[+]", ["a+b"]),
        (r"orders\\|&&", []),
        (r"rs\pP", ["Orders.v2", "orders-2026_eu"]),
    ],
)
def test_a_pattern_matches_what_it_matches_in_java(pattern: str, matched: list[str]) -> None:
    assert [name for name in NAMES if re.search(to_python_pattern(pattern), name)] == matched


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("[a-z&&[^x]]", "nested character classes"),
        ("[a-c[x-z]]", "nested character classes"),
        (r"\p{InGreek}", "not supported"),
        (r"[\P{Upper}]", "inside brackets"),
    ],
)
def test_a_pattern_that_only_java_has_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        to_python_pattern(pattern)
