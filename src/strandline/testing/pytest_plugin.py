"""Fixtures for users' tests; nothing is imported or started until one is used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from strandline.testing.broker_reports import BrokerReports
    from strandline.testing.clusters import Cluster
    from strandline.testing.embedded import EmbeddedBroker
    from strandline.testing.faults import BrokerFaults
    from strandline.testing.process import BrokerProcess
    from strandline.testing.registry_process import RegistryProcess
    from strandline.testing.torture.verdict import TrialResult

_numbers = count(1)
_SETTINGS = "strandline_settings"
_TORTURE = "strandline_torture"
# Fixtures whose broker belongs to one test, so that the test's own marker can say its settings.
_OWN = frozenset({"strandline_own_broker", "strandline_async_broker", "strandline_cluster"})
_REPORTS: pytest.StashKey[BrokerReports] = pytest.StashKey()


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses a marker with settings on a test whose brokers cannot have them."""
    for item in items:
        for marker in item.iter_markers(_SETTINGS):
            if marker.args:
                raise pytest.UsageError(
                    f"{item.nodeid}: {_SETTINGS}{marker.args!r} is not understood: name each setting, as in "
                    f"{_SETTINGS}(num_partitions=3)"
                )
        names = set(getattr(item, "fixturenames", ()))
        has_own_marker = any(marker.name == _SETTINGS for marker in item.own_markers)
        if has_own_marker and "strandline_broker" in names and not names & _OWN:
            raise pytest.UsageError(
                f"{item.nodeid}: the marker {_SETTINGS} has no effect on strandline_broker, which all tests share; "
                "use strandline_own_broker, or the ini file"
            )


def _settings_of(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Returns the settings of the ini file, overridden by those of the markers of module and test."""
    settings: dict[str, Any] = {}
    for line in request.config.getini(_SETTINGS):
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise pytest.UsageError(f"{_SETTINGS}: {line!r} is not KEY=VALUE")
        settings[key.strip().replace(".", "_")] = value.strip()
    for marker in reversed(list(request.node.iter_markers(_SETTINGS))):
        settings |= marker.kwargs
    return settings


# Reports


def _launched() -> list[BrokerProcess]:
    """Returns the brokers that run or have died. Without any, their module is not loaded, and is not loaded here."""
    module = sys.modules.get("strandline.testing.process")
    return [] if module is None else module.launched_brokers


def _reports(config: pytest.Config) -> BrokerReports:
    if _REPORTS not in config.stash:
        from strandline.testing.broker_reports import BrokerReports

        config.stash[_REPORTS] = BrokerReports()
    return config.stash[_REPORTS]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Notes where the logs of brokers end, so that a report can show what a test has caused."""
    if launched := _launched():
        _reports(item.config).begin(launched)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the logs of brokers to the report of a failing test, and brokers that died to any."""
    report = yield
    if _REPORTS in item.config.stash or _launched():
        _reports(item.config).add_to(report, _launched())
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Names the brokers that died, at the end of the run."""
    module = sys.modules.get("strandline.testing.broker_reports")
    reports = [each for group in terminalreporter.stats.values() for each in group]
    if module is None and not any(getattr(each, "sections", ()) for each in reports):
        return
    from strandline.testing.broker_reports import death_lines

    lines = death_lines(reports)
    if lines:
        terminalreporter.section("brokers of strandline that died")
        for line in lines:
            terminalreporter.line(line)


# Brokers


@pytest.fixture(scope="session")
def strandline_broker(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A broker for the whole session; `.bootstrap` is what clients need."""
    yield from _shared_broker(request, "strandline_broker")


@pytest.fixture(scope="module")
def strandline_module_broker(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A broker for the tests of one module, with the settings of the module's marker."""
    yield from _shared_broker(request, "strandline_module_broker")


def _shared_broker(request: pytest.FixtureRequest, name: str) -> Iterator[BrokerProcess]:
    from strandline.testing.broker_reports import raise_if_died
    from strandline.testing.process import running_broker

    reports = _reports(request.config)
    with running_broker(**_settings_of(request)) as broker:
        reports.share(name, broker)
        try:
            yield broker
        finally:
            reports.unshare(name)
        raise_if_died([broker], also_killed=True)


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
    from strandline.testing.broker_reports import raise_if_died
    from strandline.testing.process import running_broker

    with running_broker(**_settings_of(request)) as broker:
        yield broker
        raise_if_died([broker], also_killed=False)


@pytest.fixture
def strandline_async_broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    """A broker for one test, in this process, ready within a twentieth of a second; its calls are coroutines.

    It runs on a loop of its own in a thread, so that any plugin for async tests can be used, and blocking clients too.
    """
    from strandline.testing.broker_thread import broker_in_thread

    with broker_in_thread(**_settings_of(request)) as broker:
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
    yield from _cluster(request)


@pytest.fixture(scope="module")
def strandline_module_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three nodes for the tests of one module, each of which leaves them as it found them."""
    yield from _cluster(request)


def _cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    from strandline.testing.broker_reports import raise_if_died
    from strandline.testing.clusters import cluster

    with cluster(nodes=3, **_settings_of(request)) as started:
        yield started
        raise_if_died(started.nodes, also_killed=False)


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

    Its arguments are `name`, `partitions` and `configs`, of which any may be left out. The topic can be used when the
    function returns. On other brokers `create_topic` does the same.
    """
    from strandline.client.sync import Admin

    created: list[str] = []

    def create(
        name: str | None = None,
        *,
        partitions: int = 1,
        configs: dict[str, str | int | bool] | None = None,
    ) -> str:
        topic = strandline_broker.create_topic(name, partitions=partitions, configs=configs)
        created.append(topic)
        return topic

    yield create
    if created and strandline_broker.is_running:
        with Admin(strandline_broker.client_settings) as admin:
            left = set(created) & set(admin.list_topics())
            admin.delete_topics(sorted(left))


@pytest.fixture
def strandline_topic(request: pytest.FixtureRequest) -> str:
    """The name of a topic of this test's own, which the broker creates on first use. `strandline_topic_factory` makes
    topics that exist before, with partitions and configs."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in request.node.name)
    return f"{plain[:200]}-{next(_numbers)}"
