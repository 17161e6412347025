"""The guide's table of how clients behave under each fault is true."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.testing import BrokerProcess, running_broker
from tests.compat.fault_behaviour import (
    COMMIT_FAULTS,
    COMMITTERS,
    FAULTS,
    PYTHON_CLIENTS,
    column,
    commit_column,
    java,
    java_commit,
    table_in,
)
from tests.oracle.java_worker import JavaWorker

IS_SOAK = os.environ.get("STRANDLINE_SOAK") == "1"
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "faults.md"


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with running_broker() as started:
        yield started


@pytest.mark.parametrize("client", PYTHON_CLIENTS)
def test_clients_behave_as_the_guide_says(broker: BrokerProcess, client: str) -> None:
    said = table_in(GUIDE.read_text(), "writes")[client]
    assert set(said) == set(FAULTS)
    assert column(broker, PYTHON_CLIENTS[client]) == said


@pytest.mark.parametrize("client", COMMITTERS if IS_SOAK else ("librdkafka",))
def test_commits_end_as_the_guide_says(broker: BrokerProcess, client: str) -> None:
    said = table_in(GUIDE.read_text(), "commits")[client]
    assert set(said) == set(COMMIT_FAULTS)
    assert commit_column(broker, COMMITTERS[client]) == said


@pytest.mark.oracle
@pytest.mark.xdist_group("apache-kafka")
def test_java_behaves_as_the_guide_says(broker: BrokerProcess, java_worker: JavaWorker) -> None:
    assert column(broker, java(java_worker)) == table_in(GUIDE.read_text(), "writes")["java"]


@pytest.mark.oracle
@pytest.mark.xdist_group("apache-kafka")
@pytest.mark.skipif(not IS_SOAK, reason="one of the long ones: STRANDLINE_SOAK=1 runs it")
def test_commits_of_java_end_as_the_guide_says(broker: BrokerProcess, java_worker: JavaWorker) -> None:
    said = table_in(GUIDE.read_text(), "commits")["java"]
    assert commit_column(broker, java_commit(java_worker)) == said
