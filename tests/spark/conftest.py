"""One Spark session and one broker for the tests that share them: an xdist group, so that one worker has the JVM.

Tests that start drivers of their own are another group, which may run beside it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline.client.sync import Admin
from strandline.testing import running_broker
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka
from tests.oracle.fetch import ICEBERG_JARS, JAVA, KAFKA_JARS, SPARK_AVRO_JARS, SPARK_KAFKA_JARS
from tests.oracle.require import require

_HERE = Path(__file__).parent
_numbers = itertools.count()


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            shares_session = "spark" in getattr(item, "fixturenames", ())
            item.add_marker(pytest.mark.xdist_group("spark" if shares_session else "spark-drivers"))
            # A JVM that starts on a busy machine can take a minute by itself.
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from tests.spark.sessions import session

    needed = (SPARK_KAFKA_JARS, SPARK_AVRO_JARS, ICEBERG_JARS)
    jars = [each for each in (oracle.locate() for oracle in needed) if each is not None]
    started = session(tmp_path_factory.mktemp("spark"), jars)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Any]:
    # Transactions that run out of time are looked for every ten seconds as shipped.
    quick = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": "200"}
    with running_broker(auto_create_topics_enable="false", **quick) as started:
        yield started


@pytest.fixture
def bootstrap(broker: Any) -> str:
    found: str = broker.bootstrap
    return found


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap_servers=bootstrap) as opened:
        yield opened


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that nobody has used; the test creates the topic."""
    claim = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    return f"{claim[:50]}-{next(_numbers)}"


@pytest.fixture
def apache(tmp_path: Path) -> Iterator[ApacheKafka]:
    """A broker of Apache Kafka, for tests that are marked with `oracle`."""
    with ApacheKafka(
        java=require(JAVA), jars=require(KAFKA_JARS), directory=tmp_path / "kafka", jvm_options=QUICK_START
    ) as kafka:
        yield kafka
