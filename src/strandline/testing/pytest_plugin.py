"""Fixtures for users' tests; nothing is imported or started until one is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from strandline.testing.clusters import Cluster
    from strandline.testing.faults import BrokerFaults
    from strandline.testing.process import BrokerProcess
    from strandline.testing.registry_process import RegistryProcess

_numbers = count(1)
_SETTINGS = "strandline_settings"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        _SETTINGS,
        "settings of brokers that fixtures start, as KEY=VALUE by Kafka's names",
        type="linelist",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "strandline_settings(name=value, …): settings of the broker or cluster of this test, with _ for . in names",
    )


def _settings_of(request: pytest.FixtureRequest) -> dict[str, str | int | bool]:
    """Those of the ini file, and on top of them those of the test's marker."""
    settings: dict[str, str | int | bool] = {}
    for line in request.config.getini(_SETTINGS):
        key, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"{_SETTINGS}: {line!r} is not KEY=VALUE")
        settings[key.strip().replace(".", "_")] = value.strip()
    if request.scope == "function":
        for marker in reversed(list(request.node.iter_markers(_SETTINGS))):
            settings |= marker.kwargs
    return settings


@pytest.fixture(scope="session")
def strandline_broker(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A broker for the whole session; `.bootstrap` is what clients need."""
    from strandline.testing.process import running_broker

    with running_broker(**_settings_of(request)) as broker:  # type: ignore[arg-type]
        yield broker


@pytest.fixture
def strandline_faults(strandline_broker: BrokerProcess) -> Iterator[BrokerFaults]:
    """Sets faults on `strandline_broker`; all are cleared at the end of the test."""
    faults = strandline_broker.faults
    yield faults
    if strandline_broker.is_running:
        faults.clear()


@pytest.fixture
def strandline_own_broker(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A broker for one test, which may stop, kill and start it."""
    from strandline.testing.process import running_broker

    with running_broker(**_settings_of(request)) as broker:  # type: ignore[arg-type]
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
def strandline_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three nodes for one test, which may kill, pause, stop and start them; `.bootstrap` is what clients need."""
    from strandline.testing.clusters import cluster

    with cluster(nodes=3, **_settings_of(request)) as started:  # type: ignore[arg-type]
        yield started


@pytest.fixture(scope="session")
def strandline_topic_factory(strandline_broker: BrokerProcess) -> Iterator[Callable[..., str]]:
    """A function that creates a topic on `strandline_broker` and returns its name; all are deleted at the end.

    Its arguments are `partitions`, `configs` and `name`, of which any may be left out.
    """
    from strandline.client.sync import Admin

    created: list[str] = []
    with Admin(strandline_broker.client_settings) as admin:

        def create(
            name: str | None = None,
            *,
            partitions: int = 1,
            configs: dict[str, str | int | bool] | None = None,
        ) -> str:
            topic = name or f"topic-{next(_numbers)}"
            admin.create_topic(topic, partitions=partitions, configs=configs or {})
            created.append(topic)
            return topic

        yield create
        if strandline_broker.is_running:
            left = set(created) & set(admin.list_topics())
            admin.delete_topics(sorted(left))


@pytest.fixture
def strandline_topic(request: pytest.FixtureRequest) -> str:
    """The name of a topic of this test's own, which the broker creates on first use. `strandline_topic_factory` makes
    topics that exist before, with partitions and configs."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in request.node.name)
    return f"{plain[:200]}-{next(_numbers)}"
