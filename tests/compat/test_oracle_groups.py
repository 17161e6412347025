"""The same conversations about groups, with Apache Kafka and with Strandline, give the same responses field by field.

What may differ is said in docs/internals/divergence.md.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat import oracle_groups_classic, oracle_groups_consumer, oracle_groups_offsets
from tests.compat.oracle_conversations import Conversation, Held, check_same, held_with_both, hold
from tests.compat.oracle_groups import prepare

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

CONVERSATIONS: dict[str, Conversation] = {
    **oracle_groups_classic.CONVERSATIONS,
    **oracle_groups_consumer.CONVERSATIONS,
    **oracle_groups_offsets.CONVERSATIONS,
}
TOPICS = {"orders": 4, "other": 1, "payments": 2}
SETTINGS = {
    "group.min.session.timeout.ms": "100",
    "group.max.size": str(oracle_groups_classic.GROUP_MAX_SIZE),
    "group.consumer.max.size": str(oracle_groups_classic.GROUP_MAX_SIZE),
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.coordinator.append.linger.ms": "0",
    "offset.metadata.max.bytes": "100",
    "offsets.topic.num.partitions": "3",
}


@pytest.fixture(scope="module")
def held(
    java: Path, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Held, Held]]:
    directory = tmp_path_factory.mktemp("groups-oracle")
    with held_with_both(_hold_all, SETTINGS, java, kafka_jars, directory) as held:
        yield held


def _hold_all(bootstrap: str) -> Held:
    """Conversations run beside each other: most of their time is waiting."""
    topic_ids = prepare(bootstrap, TOPICS)
    held: Held = {}

    def begin(name: str, conversation: Conversation) -> None:
        held[name] = hold(bootstrap, topic_ids, conversation)

    threads = [threading.Thread(target=begin, args=item, daemon=True) for item in CONVERSATIONS.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return held


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_conversation_goes_as_with_apache_kafka(held: tuple[Held, Held], conversation: str) -> None:
    check_same(held, conversation)
