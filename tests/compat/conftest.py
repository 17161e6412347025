"""The broker under test, and the oracles beside it.

STRANDLINE_COMPAT_TARGET chooses the broker: Strandline (unset), Apache Kafka (`apache`, which shows that the
tests themselves are right), or one that runs already (`host:port`, whose files and process are out of reach).

Whatever needs a JVM is in the xdist group `apache-kafka`, so one worker starts them all.
"""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient
from tests.compat.clients.interface import KafkaClient
from tests.compat.server import (
    APACHE,
    STRANDLINE,
    CreateTopic,
    ExternalServer,
    PrivateServer,
    Server,
    compat_target,
)
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka
from tests.oracle.fetch import JAVA, KAFKA_JARS, KCAT
from tests.oracle.java_worker import JavaWorker
from tests.oracle.kafka_tools import KafkaTools
from tests.oracle.readiness import wait_until_writable
from tests.oracle.require import require

pytest.register_assert_rewrite("tests.compat.contract", "tests.compat.members.stories")

HERE = Path(__file__).parent
_topic_numbers = itertools.count()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Against Apache Kafka every test belongs to one worker, because one broker is all two cores can take.

    First, because xdist reads the groups in the same hook.
    """
    if compat_target() == APACHE:
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.xdist_group("apache-kafka"))


@pytest.fixture(scope="session")
def java() -> Path:
    """The `java` executable."""
    return require(JAVA)


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """The directory of Apache Kafka's jars."""
    return require(KAFKA_JARS)


@pytest.fixture(scope="session")
def kcat() -> list[str]:
    """The command that runs kcat."""
    return [str(require(KCAT))]


@pytest.fixture(scope="session")
def kafka_tools(java: Path, kafka_jars: Path) -> Iterator[KafkaTools]:
    with KafkaTools(java=java, jars=kafka_jars) as tools:
        yield tools


@pytest.fixture(scope="session")
def java_worker(java: Path, kafka_jars: Path) -> Iterator[JavaWorker]:
    """The JVM in which the Java clients run."""
    with JavaWorker(java=java, jars=kafka_jars, source=HERE / "java" / "Clients.java") as worker:
        yield worker


@pytest.fixture(scope="session")
def apache_kafka(
    java: Path, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApacheKafka]:
    """Apache Kafka as an oracle, started when the first test asks for it. Needs the xdist group."""
    directory = tmp_path_factory.mktemp("apache-kafka")
    with ApacheKafka(java=java, jars=kafka_jars, directory=directory, jvm_options=QUICK_START) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The broker under test."""
    target = compat_target()
    if target == APACHE:
        yield request.getfixturevalue("apache_kafka")
    elif target == STRANDLINE:
        with _strandline({}) as broker:
            yield broker
    else:
        yield ExternalServer(bootstrap=target)


@pytest.fixture(scope="session")
def private_server(request: pytest.FixtureRequest) -> PrivateServer:
    """A broker with settings of its own, for as long as its context is open.

    It is stopped when the context closes; with `log.dirs` its files can be looked at then. Apache Kafka continues
    as itself with these settings, and afterwards with the usual ones, so that there is never a second one.
    """

    @contextmanager
    def restarted(settings: Mapping[str, str]) -> Iterator[Server]:
        kafka: ApacheKafka = request.getfixturevalue("apache_kafka")
        usual = kafka.settings
        kafka.stop()
        kafka.settings = {**usual, **settings}
        try:
            kafka.start()
            yield kafka
        finally:
            kafka.stop()
            kafka.settings = usual
            kafka.start()

    target = compat_target()
    if target not in (APACHE, STRANDLINE):
        pytest.skip(f"the broker at {target} cannot be given other settings")
    return restarted if target == APACHE else _strandline


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that nobody has used. The test creates the topic."""
    claim = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    return f"{claim[:60]}-{next(_topic_numbers)}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def probe(server: Server) -> ConfluentKafkaClient:
    """A quick client for what a test must know of the broker but does not claim."""
    return ConfluentKafkaClient(server.bootstrap)


@pytest.fixture
def create(client: KafkaClient, server: Server) -> CreateTopic:
    def create(topic: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        client.create_topic(topic, partitions=partitions, configs=configs)
        wait_until_writable(server.bootstrap, topic, partitions=partitions)

    return create


def _strandline(settings: Mapping[str, str]) -> AbstractContextManager[Server]:
    from strandline.testing import running_broker

    others = {name: value for name, value in settings.items() if name != "log.dirs"}
    data_dir = settings.get("log.dirs")
    return running_broker(data_dir=Path(data_dir) if data_dir else None, **others)
