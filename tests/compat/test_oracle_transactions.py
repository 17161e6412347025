"""The same conversations about transactions, with Apache Kafka and with Strandline, give the same responses.

One after the other: Kafka's brokers ask its coordinator for several transactions at once, and answer with the code that
fits the oldest client among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.oracle_conversations import Held, check_same, held_with_both, hold
from tests.compat.oracle_groups import prepare
from tests.compat.oracle_transactions import CONVERSATIONS

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

TOPICS = {"orders": 4, "payments": 2, "fenced": 1, "marked": 1, "doomed": 1}
CONVERSATIONS_THAT_READ = (
    "transactions of version 1",
    "transactions of version 2",
    "fencing of transactions",
    "markers",
)
SETTINGS = {
    "group.coordinator.append.linger.ms": "0",
    "offset.metadata.max.bytes": "100",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@pytest.fixture(scope="module")
def held(
    java: Path, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Held, Held]]:
    directory = tmp_path_factory.mktemp("transactions-oracle")
    with held_with_both(_hold_all, SETTINGS, java, kafka_jars, directory) as held:
        yield held


def _hold_all(bootstrap: str) -> Held:
    topic_ids = prepare(bootstrap, TOPICS)
    return {name: hold(bootstrap, topic_ids, conversation) for name, conversation in CONVERSATIONS.items()}


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_conversation_goes_as_with_apache_kafka(held: tuple[Held, Held], conversation: str) -> None:
    check_same(held, conversation)


@pytest.mark.parametrize("conversation", CONVERSATIONS_THAT_READ)
def test_both_brokers_have_records_to_read(held: tuple[Held, Held], conversation: str) -> None:
    for found in held:
        answers = found[conversation]
        assert isinstance(answers, dict)
        last_read = [answers[question] for question in answers if " read " in question][-1]
        assert last_read["responses"][0]["partitions"][0]["records"] > 0, "the size of the records"
