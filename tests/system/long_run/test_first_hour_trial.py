"""A newcomer's first hour from scratch, on every Python that the classifiers name; `make soak`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.first_hour import PYTHONS, build_wheel, interpreter_of, try_out

INSTALLED_MB_MAX = 35

pytestmark = [
    pytest.mark.skipif(os.environ.get("STRANDLINE_SOAK") != "1", reason="long: set STRANDLINE_SOAK=1"),
    pytest.mark.timeout(1800),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize("version", PYTHONS)
def test_a_wheel_installs_small_and_typed_and_works_with_three_clients(
    version: str, wheel: Path, tmp_path: Path
) -> None:
    python = interpreter_of(version)
    if python is None:
        pytest.skip(f"Python {version} is not on this machine")
    found = try_out(python, wheel, tmp_path)
    assert "20 passed" in found.tests
    assert found.types.startswith("Success")
    assert found.installed_mb <= INSTALLED_MB_MAX
