"""examples/exactly_once.py kills a query in the middle of a batch, and its copy is exact; `make soak` runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "spark.md"
pytestmark = pytest.mark.skipif(
    os.environ.get("STRANDLINE_SOAK") != "1", reason="it starts two JVMs: `make soak` runs it"
)


def without_numbers(lines: list[str]) -> list[str]:
    """Returns the lines of the example, without the number of open rows at the kill, which differs from run to run."""
    return [re.sub(r"\b(?!60,000\b)\d[\d,]*", "N", line) for line in lines]


def test_the_copy_is_exact_and_the_guide_shows_the_output() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "exactly_once.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=550,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    told = [
        line
        for line in done.stdout.splitlines()
        if "payments" in line or "written" in line or "query" in line
    ]
    shown = GUIDE.read_text().split("$ python examples/exactly_once.py\n")[1].split("```")[0].splitlines()
    assert without_numbers(shown)[:4] == without_numbers(told)[:4]
