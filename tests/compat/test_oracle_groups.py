"""The same conversations about groups, with Apache Kafka and with Strandline, give the same answers field by field.

What may differ is said in docs/internals/divergence.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.compat import oracle_groups_classic, oracle_groups_consumer, oracle_groups_offsets
from tests.compat.oracle_groups import Talk, prepare
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

CONVERSATIONS: dict[str, Callable[[Talk], None]] = {
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
Held = dict[str, dict[str, Any] | BaseException]


@pytest.fixture(scope="module")
def held(
    java: Path, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Held, Held]]:
    from strandline.testing import running_broker

    directory = tmp_path_factory.mktemp("groups-oracle")
    kafka = ApacheKafka(
        java=java, jars=kafka_jars, directory=directory, settings=SETTINGS, jvm_options=QUICK_START
    )
    with running_broker(**SETTINGS) as broker, kafka:
        yield _hold_all(broker.bootstrap), _hold_all(kafka.bootstrap)


def _hold_all(bootstrap: str) -> Held:
    """Conversations run beside each other: most of their time is waiting."""
    topic_ids = prepare(bootstrap, TOPICS)
    held: Held = {}

    def hold(name: str, conversation: Callable[[Talk], None]) -> None:
        with ExitStack() as stack:
            talk = Talk(bootstrap, topic_ids, stack)
            try:
                conversation(talk)
                held[name] = talk.answers
            except BaseException as error:
                error.add_note(f"after {list(talk.answers)}")
                held[name] = error

    threads = [threading.Thread(target=hold, args=item, daemon=True) for item in CONVERSATIONS.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return held


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_conversation_goes_as_with_apache_kafka(held: tuple[Held, Held], conversation: str) -> None:
    ours, theirs = (found[conversation] for found in held)
    if isinstance(theirs, BaseException):
        raise theirs
    if isinstance(ours, BaseException):
        raise ours
    different = {name: (ours.get(name), theirs[name]) for name in theirs if ours.get(name) != theirs[name]}
    assert different == {}, "(ours, theirs) by question"
