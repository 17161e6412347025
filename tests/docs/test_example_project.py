"""The example project of the testing guide passes in a directory of its own, with plain pytest and with xdist."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT

EXAMPLE = ROOT / "examples" / "testing"
SECONDS_MAX = 240


def test_the_example_project_passes(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "6 passed" in ran.stdout
