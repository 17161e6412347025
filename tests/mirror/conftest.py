"""Two brokers for the tests of a module, and a scene of its own for each test: topics have names of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.testing.process import BrokerProcess, running_broker
from tests.mirror.scene import Scene, scene


@pytest.fixture(scope="module")
def east() -> Iterator[BrokerProcess]:
    with running_broker(group_min_session_timeout_ms=1000) as broker:
        yield broker


@pytest.fixture(scope="module")
def west() -> Iterator[BrokerProcess]:
    with running_broker(group_min_session_timeout_ms=1000) as broker:
        yield broker


@pytest.fixture
def two(east: BrokerProcess, west: BrokerProcess, tmp_path: Path) -> Iterator[Scene]:
    with scene(tmp_path, east=east.bootstrap, west=west.bootstrap) as found:
        yield found
