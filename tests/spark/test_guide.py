"""The snippets of docs/guides/spark.md run in order, in a process of their own, and print what the page shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ON_SPARK, ROOT

pytest.importorskip("pyspark")

PAGE_SECONDS_MAX = 500


@pytest.mark.parametrize("page", sorted(ON_SPARK))
def test_the_snippets_of_the_page_run(page: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.docs.page_run", page, str(tmp_path / "page")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PAGE_SECONDS_MAX,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
