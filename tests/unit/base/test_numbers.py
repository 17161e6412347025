from __future__ import annotations

import pytest

from strandline.base.numbers import natural


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("2147483648", 2_147_483_648)])
def test_digits_are_a_number(text: str, number: int) -> None:
    assert natural(text) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 1", "1_000", "²", "٣", "9" * 5000])
def test_a_text_that_is_no_plain_number_is_none(text: str) -> None:
    assert natural(text) is None
