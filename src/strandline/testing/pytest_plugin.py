"""Fixtures for users' tests; nothing is imported or started until one is used."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from strandline.testing.clusters import Cluster
    from strandline.testing.process import BrokerProcess
    from strandline.testing.registry_process import RegistryProcess

_numbers = count(1)


@pytest.fixture(scope="session")
def strandline_broker() -> Iterator[BrokerProcess]:
    """A broker for the whole session; `.bootstrap` is what clients need."""
    from strandline.testing.process import running_broker

    with running_broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def strandline_registry(
    strandline_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    """A schema registry beside `strandline_broker` for the whole session; `.url` is what its clients need."""
    from strandline.testing.registry_process import running_registry

    log = tmp_path_factory.mktemp("strandline-registry") / "registry.log"
    with running_registry(strandline_broker.bootstrap, log) as registry:
        yield registry


@pytest.fixture
def strandline_cluster() -> Iterator[Cluster]:
    """Three nodes for one test, which may kill, pause, stop and start them; `.bootstrap` is what clients need."""
    from strandline.testing.clusters import cluster

    with cluster(nodes=3) as started:
        yield started


@pytest.fixture
def strandline_topic(request: pytest.FixtureRequest) -> str:
    """A topic name of this test's own; the broker creates the topic on first use."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in request.node.name)
    return f"{plain[:200]}-{next(_numbers)}"
