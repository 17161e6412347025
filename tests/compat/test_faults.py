"""Every fault in requests, with every client: it fires, and the client's view agrees with the log.

Two of them run always; `test_fault_guide.py` has all of them with the defaults of each client. The others need
STRANDLINE_SOAK=1.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client.sync import Admin, Consumer, Producer
from strandline.testing import BrokerProcess, running_broker
from strandline.testing.faults import BrokerFault
from tests.compat.clients.aiokafka_client import AiokafkaClient
from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient
from tests.compat.clients.java_client import JavaClient
from tests.compat.clients.kafka_python_client import KafkaPythonClient
from tests.compat.records import Sample, Written, numbered

IS_SOAK = os.environ.get("STRANDLINE_SOAK") == "1"
_topics = count()
# Faults after which a response comes only when the fault is cleared, or when the client's own long timeout is over.
_SILENT = ("drop_request", "drop_response", "black_hole")
_WRITE_FAULTS: dict[str, dict[str, Any]] = {
    "error": {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"},
    "drop_request": {"api": "Produce"},
    "drop_response": {"api": "Produce"},
    "disconnect": {"api": "Produce"},
    "disconnect-applied": {"api": "Produce", "applied": True},
    "delay": {"api": "Produce", "ms": 200},
    "black_hole": {"api": "Produce"},
    "throttle": {"api": "Produce", "ms": 200},
    "tear": {"api": "Produce", "bytes": 7},
    "barrier": {"api": "Produce"},
}


class StrandlineClient:
    """Our own client, as far as these tests ask."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def write(self, topic: str, samples: Sequence[Sample], *, idempotent: bool = False) -> list[Written]:
        with Producer(bootstrap_servers=self._bootstrap, enable_idempotence=idempotent) as producer:
            sent = [producer.send(topic, sample.value, key=sample.key, partition=0) for sample in samples]
            return [Written(partition=0, offset=each.result(60).offset) for each in sent]

    def read(self, topic: str, *, count: int) -> list[bytes | None]:
        values: list[bytes | None] = []
        with Consumer(bootstrap_servers=self._bootstrap) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek_to_beginning()
            while len(values) < count:
                values += [record.value for record in consumer.poll(1.0)]
        return values


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with running_broker() as started:
        yield started


@pytest.fixture(
    params=[
        "librdkafka",
        "aiokafka",
        "kafka-python",
        "strandline",
        pytest.param("java", marks=[pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]),
    ]
)
def client(request: pytest.FixtureRequest, broker: BrokerProcess) -> Any:
    match request.param:
        case "librdkafka":
            return ConfluentKafkaClient(broker.bootstrap)
        case "aiokafka":
            return AiokafkaClient(broker.bootstrap)
        case "kafka-python":
            return KafkaPythonClient(broker.bootstrap)
        case "strandline":
            return StrandlineClient(broker.bootstrap)
        case _:
            return JavaClient(broker.bootstrap, request.getfixturevalue("java_worker"))


@pytest.fixture
def topic(broker: BrokerProcess) -> str:
    name = f"faults-{next(_topics)}"
    with Admin(broker.client_settings) as admin:
        admin.create_topic(name, partitions=1)
    return name


def set_fault(broker: BrokerProcess, kind: str, **options: Any) -> BrokerFault:
    made: BrokerFault = getattr(broker.faults, kind.partition("-")[0])(**options)
    return made


@pytest.mark.parametrize("kind", _WRITE_FAULTS if IS_SOAK else ("drop_response", "barrier"))
def test_idempotent_write_survives_a_fault_once(
    broker: BrokerProcess, client: Any, topic: str, kind: str
) -> None:
    written: list[Written] = []
    samples = numbered(3)
    with set_fault(broker, kind, topic=topic, **_WRITE_FAULTS[kind]) as fault:
        writing = threading.Thread(
            target=lambda: written.extend(client.write(topic, samples, idempotent=True))
        )
        writing.start()
        if kind == "barrier":
            fault.wait_held(timeout=30)
            assert end_offset(broker, topic) == 0, "a request at a barrier is not applied"
            fault.release()
        elif kind in _SILENT:
            fault.wait_fired(timeout=30)
            fault.clear()
        writing.join(60)
        assert not writing.is_alive()
        fault.assert_fired()
    assert [each.offset for each in written] == [0, 1, 2]
    assert end_offset(broker, topic) == 3, "the retry of an applied request is no second copy"


def test_fetch_that_is_refused_dropped_or_torn_is_repeated(
    broker: BrokerProcess, client: Any, topic: str
) -> None:
    samples = numbered(5)
    client.write(topic, samples)
    faults = broker.faults
    with (
        faults.error("Fetch", "NOT_LEADER_OR_FOLLOWER", topic=topic) as refused,
        faults.disconnect("Fetch", topic=topic) as cut,
        faults.tear("Fetch", topic=topic, bytes=40) as torn,
        faults.throttle("Fetch", topic=topic, ms=100) as throttled,
    ):
        assert len(client.read(topic, count=5)) == 5
        # The first that is due strikes, so each had a request of its own.
        for fault in (refused, cut, torn):
            fault.assert_fired(1)
        assert throttled.seen >= 4


def test_error_of_one_partition_leaves_the_others_alone(broker: BrokerProcess, topic: str) -> None:
    with Admin(broker.client_settings) as admin:
        admin.create_topic(f"{topic}-two", partitions=2)
    with (
        broker.faults.error("Produce", "MESSAGE_TOO_LARGE", topic=f"{topic}-two", partition=1) as fault,
        Producer(broker.client_settings, linger_ms=50) as producer,
    ):
        sent = [producer.send(f"{topic}-two", b"x", partition=number) for number in (0, 1)]
        assert sent[0].result(30).offset == 0
        with pytest.raises(Exception, match="MESSAGE_TOO_LARGE"):
            sent[1].result(30)
        fault.assert_fired(1)


def end_offset(broker: BrokerProcess, topic: str) -> int:
    with Consumer(broker.client_settings) as consumer:
        return next(iter(consumer.end_offsets([TopicPartition(topic, 0)]).values()))
