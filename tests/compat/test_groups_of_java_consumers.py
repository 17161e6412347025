"""Consumer groups of Apache Kafka's Java consumer with each of its assignors and in the consumer protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.members.host import QUICK_SESSIONS, java_host
from tests.compat.members.stories import Kind, Story, tell
from tests.compat.server import PrivateServer

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]


def classic(assignor: str) -> Kind:
    name = f"org.apache.kafka.clients.consumer.{assignor}"
    return Kind(client="java", settings={"partition.assignment.strategy": name})


KINDS = {
    "range": classic("RangeAssignor"),
    "roundrobin": classic("RoundRobinAssignor"),
    "sticky": classic("StickyAssignor"),
    "cooperative-sticky": classic("CooperativeStickyAssignor"),
    "consumer protocol": Kind(client="java", settings={"group.protocol": "consumer"}),
    "consumer protocol, range": Kind(
        client="java", settings={"group.protocol": "consumer", "group.remote.assignor": "range"}
    ),
}


@pytest.fixture(scope="module")
def stories(
    private_server: PrivateServer, java: Path, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Story]]:
    directory = tmp_path_factory.mktemp("journals")
    with (
        private_server(QUICK_SESSIONS) as server,
        java_host(java, kafka_jars) as host,
        java_host(java, kafka_jars) as doomed,
    ):
        yield tell(KINDS, server.bootstrap, directory, host, doomed)


@pytest.mark.parametrize("kind", KINDS)
def test_members_join_leave_and_crash_and_every_record_is_processed(
    stories: dict[str, Story], kind: str
) -> None:
    failure = stories[kind].failure
    if failure is not None:
        raise failure
