"""Strandline's own client against both brokers: every test here runs on Strandline and on Apache Kafka.

Both brokers live for the whole session; what needs Apache Kafka is in the xdist group `apache-kafka`, so that one
worker starts the only JVM.
"""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Iterator

import pytest

from tests.compat.server import Server
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka
from tests.oracle.fetch import JAVA, KAFKA_JARS
from tests.oracle.require import require

_numbers = itertools.count()

# Groups of the new protocol have their rhythm from the broker; as shipped it is too slow for tests.
QUICK_GROUPS = {
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.session.timeout.ms": "2500",
    "group.consumer.min.session.timeout.ms": "2500",
    "group.min.session.timeout.ms": "2500",
}

# Rules are kept, and everybody may do everything all the same.
KEEPS_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}

APACHE_ONLY = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]
BOTH = ["strandline", pytest.param("apache", marks=APACHE_ONLY)]


@pytest.fixture(scope="session")
def strandline_server() -> Iterator[Server]:
    from strandline.testing import running_broker

    quick = {name.replace(".", "_"): value for name, value in QUICK_GROUPS.items()}
    with running_broker(auto_create_topics_enable="false", **quick) as broker:
        yield broker


@pytest.fixture(scope="session")
def apache_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("apache-kafka")
    with ApacheKafka(
        java=require(JAVA),
        jars=require(KAFKA_JARS),
        directory=directory,
        jvm_options=QUICK_START,
        settings={"auto.create.topics.enable": "false", **QUICK_GROUPS, **KEEPS_ACLS},
    ) as kafka:
        yield kafka


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest) -> Server:
    """Starts a broker on which topics are not created by use."""
    found: Server = request.getfixturevalue(f"{request.param}_server")
    return found


@pytest.fixture(params=[pytest.param("apache", marks=APACHE_ONLY)])
def apache_bootstrap(apache_server: Server) -> str:
    """Returns Apache Kafka's address, for tests of features that Strandline does not have yet."""
    return apache_server.bootstrap


@pytest.fixture
def bootstrap(server: Server) -> str:
    return server.bootstrap


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """Returns a name that nobody has used; the test creates the topic."""
    claim = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    return f"{claim[:50]}-{next(_numbers)}-{uuid.uuid4().hex[:6]}"
