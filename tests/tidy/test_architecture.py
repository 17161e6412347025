"""Every file and folder that ARCHITECTURE.md and the decisions name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+\.py)?|[a-z_0-9]+\.py)`")


def missing(text: str) -> list[str]:
    """Returns the files and folders of the source that a page names and that do not exist."""
    source = ROOT / "src/strandline"
    names = {path.name for path in source.rglob("*.py")}
    return [
        name
        for name in NAMED.findall(text)
        if not ((source / name).exists() or (ROOT / name).exists() or ("/" not in name and name in names))
    ]


def test_every_file_that_the_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert len(NAMED.findall(text)) > 80
    assert missing(text) == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs/adr").glob("*.md")), ids=lambda page: page.stem)
def test_every_file_that_a_decision_names_exists(page: Path) -> None:
    assert missing(page.read_text()) == []
