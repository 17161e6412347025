"""Rules for all tests.

Properties are tried with a fixed sample, however busy the machine is; soaks try others. Tests of a module that share
brokers stay with one worker, so that these are started once.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.properties.effort import IS_SOAK

settings.register_profile(
    "strandline",
    deadline=None,
    derandomize=not IS_SOAK,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("strandline")

_HERE = Path(__file__).parent
_SHARING = frozenset({"mirror", "registry", "security", "serde", "system/cli", "system/cluster"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        is_sharing = item.path.parent.relative_to(_HERE).as_posix() in _SHARING
        if is_sharing and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
