"""Every file and folder that ARCHITECTURE.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+\.py)?|[a-z_0-9]+\.py)`")


def test_every_file_that_the_architecture_names_exists() -> None:
    source = ROOT / "src/strandline"
    names = {path.name for path in source.rglob("*.py")}
    found = NAMED.findall((ROOT / "ARCHITECTURE.md").read_text())
    assert len(found) > 80
    missing = [
        name for name in found if not ((source / name).exists() or ("/" not in name and name in names))
    ]
    assert missing == []
