"""Which seeds a test runs with: a fixed list in the suite, many more in `make soak`, one when a failure is replayed.

A failing test prints the command that replays it (see conftest.py): it sets STRANDLINE_SEED.
"""

from __future__ import annotations

import os

import pytest

SOAK_FACTOR = 50


def seeds(count: int) -> pytest.MarkDecorator:
    """Runs a test with this many seeds."""
    if "STRANDLINE_SEED" in os.environ:
        chosen = [int(os.environ["STRANDLINE_SEED"])]
    elif os.environ.get("STRANDLINE_SOAK"):
        chosen = list(range(count * SOAK_FACTOR))
    else:
        chosen = list(range(count))
    return pytest.mark.parametrize("seed", chosen)
