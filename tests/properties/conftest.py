"""A soak takes as long as it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from .effort import IS_SOAK

SOAK_SECONDS_MAX = 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if IS_SOAK and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(SOAK_SECONDS_MAX))
