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
    from strandline.testing.torture.verdict import TrialResult

_numbers = count(1)
_SETTINGS = "strandline_settings"
_TORTURE = "strandline_torture"


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

    config.addinivalue_line(
        "markers",
        "strandline_torture(command, role='consumer', guarantee=None, faults=None): runs the test once for each fault "
        "of `strandline torture`; the fixture strandline_trial has the verdict",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that has the marker runs once for each fault that concerns its program."""
    marker = metafunc.definition.get_closest_marker(_TORTURE)
    if marker is None or "strandline_trial" not in metafunc.fixturenames:
        return
    from strandline.testing.torture.trials import BY_NAME

    role = marker.kwargs.get("role", "consumer")
    names = marker.kwargs.get("faults") or [name for name, trial in BY_NAME.items() if role in trial.roles]
    for name in names:
        if name not in BY_NAME:
            raise pytest.UsageError(f"{_TORTURE}: there is no fault {name!r}; there is {', '.join(BY_NAME)}")
    metafunc.parametrize("strandline_trial", names, indirect=True)


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
def strandline_torture_cluster() -> Iterator[Cluster]:
    """Three nodes on which all trials of a session run."""
    from strandline.testing.clusters import cluster
    from strandline.testing.torture.stage import CLUSTER_SETTINGS

    with cluster(nodes=3, **CLUSTER_SETTINGS) as started:  # type: ignore[arg-type]
        yield started


@pytest.fixture
def strandline_trial(request: pytest.FixtureRequest, strandline_torture_cluster: Cluster) -> TrialResult:
    """The verdict on the program of the marker `strandline_torture` under one fault: `check()` it."""
    from strandline.testing.torture.run import Torture
    from strandline.testing.torture.trials import BY_NAME

    marker = request.node.get_closest_marker(_TORTURE)
    if marker is None:
        raise pytest.UsageError("strandline_trial needs the marker strandline_torture(command=…)")
    options = {
        name: value for name, value in marker.kwargs.items() if name in ("role", "guarantee", "quiet_s")
    }
    command = marker.args[0] if marker.args else marker.kwargs["command"]
    result = Torture(strandline_torture_cluster, command, **options).run(BY_NAME[request.param])
    if result.skipped:
        pytest.skip(result.skipped)
    return result


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
