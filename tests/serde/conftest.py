"""A broker with a registry, and confluent-kafka's serializers as the oracle."""

from __future__ import annotations

import asyncio
import inspect
from itertools import count

import pytest

_numbers = count(1)


@pytest.fixture
def topic() -> str:
    """A topic of this test's own."""
    return f"serde-{next(_numbers)}"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
