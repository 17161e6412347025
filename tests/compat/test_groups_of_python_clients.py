"""Consumer groups of confluent-kafka, kafka-python and aiokafka, in both protocols: members join, leave, crash.

Every record is processed at least once; as long as nobody crashes, and no commit is refused by a rebalance,
exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compat.members.host import QUICK_SESSIONS, python_host
from tests.compat.members.stories import Kind, Story, tell
from tests.compat.server import PrivateServer

pytestmark = pytest.mark.xdist_group("groups of Python clients")  # their stories are told once

KINDS = {
    "confluent-kafka range": Kind(client="confluent", settings={"partition.assignment.strategy": "range"}),
    "confluent-kafka roundrobin": Kind(
        client="confluent", settings={"partition.assignment.strategy": "roundrobin"}
    ),
    "confluent-kafka cooperative-sticky": Kind(
        client="confluent", settings={"partition.assignment.strategy": "cooperative-sticky"}
    ),
    "confluent-kafka consumer protocol": Kind(client="confluent", settings={"group.protocol": "consumer"}),
    "confluent-kafka consumer protocol, range": Kind(
        client="confluent", settings={"group.protocol": "consumer", "group.remote.assignor": "range"}
    ),
    "kafka-python range": Kind(client="kafka-python", settings={"assignor": "range"}),
    "kafka-python cooperative-sticky": Kind(
        client="kafka-python", settings={"assignor": "cooperative-sticky"}
    ),
    "aiokafka range": Kind(client="aiokafka", settings={"assignor": "range"}),
    "aiokafka roundrobin": Kind(client="aiokafka", settings={"assignor": "roundrobin"}),
}


@pytest.fixture(scope="module")
def stories(
    private_server: PrivateServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Story]]:
    directory = tmp_path_factory.mktemp("journals")
    with private_server(QUICK_SESSIONS) as server, python_host() as host, python_host() as doomed:
        yield tell(KINDS, server.bootstrap, directory, host, doomed)


@pytest.mark.parametrize("kind", KINDS)
def test_members_join_leave_and_crash_and_every_record_is_processed(
    stories: dict[str, Story], kind: str
) -> None:
    failure = stories[kind].failure
    if failure is not None:
        raise failure
