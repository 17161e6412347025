"""The shipped notebook runs whole, and prints what is stored in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.notebooks import cells_of

pytest.importorskip("pyspark")

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "notebooks" / "first-query.ipynb"


def run() -> subprocess.CompletedProcess[str]:
    """In a process of its own: a session of this process would have other settings."""
    return subprocess.run(
        [sys.executable, "-m", "tests.spark.notebooks", str(NOTEBOOK)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
        check=False,
    )


def test_the_notebook_prints_what_is_stored_in_it() -> None:
    done = run()
    assert done.returncode == 0, done.stdout
    printed = [cell.printed for cell in cells_of(NOTEBOOK) if cell.printed]
    assert "1000 orders read\n" in printed
    assert "500 orders read\n" in printed, "the second run reads only what is new"
