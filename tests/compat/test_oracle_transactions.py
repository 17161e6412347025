"""The same conversations about transactions, with Apache Kafka and with Strandline, give the same answers.

One after the other: Kafka's brokers ask its coordinator for several transactions at once, and answer with the code that
fits the oldest client among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.compat.oracle_groups import Talk, prepare
from tests.compat.oracle_transactions import CONVERSATIONS
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

TOPICS = {"orders": 4, "payments": 2, "fenced": 1, "marked": 1}
SETTINGS = {
    "group.coordinator.append.linger.ms": "0",
    "offset.metadata.max.bytes": "100",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
Held = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def held(
    java: Path, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Held, Held]]:
    from strandline.testing import running_broker

    directory = tmp_path_factory.mktemp("transactions-oracle")
    kafka = ApacheKafka(
        java=java, jars=kafka_jars, directory=directory, settings=SETTINGS, jvm_options=QUICK_START
    )
    with running_broker(**SETTINGS) as broker, kafka:
        yield hold_all(broker.bootstrap), hold_all(kafka.bootstrap)


def hold_all(bootstrap: str) -> Held:
    topic_ids = prepare(bootstrap, TOPICS)
    held: Held = {}
    for name, conversation in CONVERSATIONS.items():
        with ExitStack() as stack:
            talk = Talk(bootstrap, topic_ids, stack)
            conversation(talk)
            held[name] = talk.answers
    return held


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_conversation_goes_as_with_apache_kafka(held: tuple[Held, Held], conversation: str) -> None:
    ours, theirs = (found[conversation] for found in held)
    different = {name: (ours.get(name), theirs[name]) for name in theirs if ours.get(name) != theirs[name]}
    assert list(different) == []
    assert list(ours) == list(theirs)
