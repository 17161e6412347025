"""How hard tests try: a fixed sample by default, many more with fresh seeds when STRANDLINE_SOAK=1."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

IS_SOAK = os.environ.get("STRANDLINE_SOAK") == "1"
# A test that takes long, and of which a shorter relative runs in `make test`.
in_soak = pytest.mark.skipif(not IS_SOAK, reason="long: set STRANDLINE_SOAK=1")


def effort(examples: int, soak: int | None = None) -> settings:
    """Settings for one property; a soak tries `soak` examples, or fifty times as many."""
    return settings(
        max_examples=(soak or examples * 50) if IS_SOAK else examples,
        derandomize=not IS_SOAK,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
