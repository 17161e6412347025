"""Names that are suggested for one that is wrong: near ones only."""

from __future__ import annotations

import pytest

from strandline.pipeline.spec.yaml_lines import nearest


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("amont", ["amount", "id"], ": did you mean amount?"),
        ("Customer_Id", ["customer-id"], ": did you mean customer-id?"),
        # The two have nothing but a letter in common: the names that there are help more.
        ("country", ["amount", "id"], ": known are amount, id"),
        ("country", [], ""),
    ],
)
def test_only_near_names_are_suggested(name: str, known: list[str], expected: str) -> None:
    assert nearest(name, known) == expected
