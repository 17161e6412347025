"""Skips or fails tests whose oracle is not installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.oracle.fetch import Oracle, oracles_are_required


def require(oracle: Oracle) -> Path:
    """Returns the path of the oracle. Without it the test is skipped, or fails if oracles are required."""
    found = oracle.locate()
    if found is None:
        give_up(f"{oracle.why_missing}; `python -m tests.oracle.fetch` fetches it")
    assert found is not None
    return found


def require_module(name: str, *, install: str) -> None:
    """The same for an optional Python package that a client needs, for a codec for instance."""
    if find_spec(name) is None:
        give_up(f"the Python package {install} is not installed")


def give_up(reason: str) -> None:
    """For what a machine does not offer: a skip with its reason, or a failure where nothing may be skipped."""
    if oracles_are_required():
        pytest.fail(reason)
    pytest.skip(reason)
