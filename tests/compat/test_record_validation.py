"""Batches with a right CRC and wrong contents: Strandline refuses all that Apache Kafka refuses, and clients read on.

Where Strandline is stricter the batch is one that some client cannot read, or reads otherwise than others; these are
listed by name, so that a new difference fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from strandline.base.errors import ErrorCode
from strandline.testing import running_broker
from strandline.wire import compression
from tests.batches import batch, resealed
from tests.compat.clients.aiokafka_client import AiokafkaClient
from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient
from tests.compat.clients.java_client import JavaClient
from tests.compat.server import Server
from tests.compat.wire import WireClient
from tests.hostile_batches import CODECS, broken_streams, lies, mutated, stricter_than_kafka
from tests.oracle.apache_kafka import ApacheKafka
from tests.oracle.java_worker import JavaWorker
from tests.oracle.readiness import wait_until_writable
from tests.raw_produce import produce
from tests.record_times import recent_ms

REFUSED = (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP, ErrorCode.MESSAGE_TOO_LARGE)
# Kafka reads offset deltas only of compressed batches, does not compare the length of a compressed record with its
# fields, and lets two codecs' streams be followed by anything.
KAFKA_TAKES = (
    *(f"none: offset deltas {what}" for what in ("all 0", "descend")),
    *(f"none: {what}" for what in ("offset delta beyond the batch", "negative offset delta")),
    *(
        f"{codec}: {what}"
        for codec in compression.NAMES[1:]
        for what in ("negative record length", "record length too large", "record length too small")
    ),
    *(
        f"{codec}: {what}"
        for codec in compression.NAMES
        for what in ("key length of -2", "varint beyond 32 bits")
    ),
    "gzip: something after it",
    "lz4: something after it",
)


def every_lie() -> dict[str, bytes]:
    named = {
        f"{compression.NAMES[codec]}: {name}": data
        for codec in CODECS
        for name, data in (lies(codec) | stricter_than_kafka(codec)).items()
    }
    return named | broken_streams()


def verdicts(server: Server, topic: str, cases: dict[str, bytes]) -> dict[str, int]:
    ConfluentKafkaClient(server.bootstrap).create_topic(topic, partitions=1, configs={"retention.ms": "-1"})
    wait_until_writable(server.bootstrap, topic, partitions=1)
    with WireClient(server.bootstrap) as client:
        return {name: produce(client, topic, data) for name, data in cases.items()}


@pytest.fixture(scope="module")
def strandline() -> Iterator[Server]:
    with running_broker() as broker:
        yield broker


@pytest.mark.oracle
@pytest.mark.xdist_group("apache-kafka")
def test_batches_that_apache_kafka_refuses_are_refused(
    strandline: Server, apache_kafka: ApacheKafka, topic: str
) -> None:
    cases = every_lie()
    ours, theirs = verdicts(strandline, topic, cases), verdicts(apache_kafka, topic, cases)
    assert {name: code for name, code in ours.items() if code not in REFUSED} == {}
    assert {name for name, code in theirs.items() if code == ErrorCode.NONE} == set(KAFKA_TAKES)
    # Where Kafka has a code for it, it is the same; where its decoder raises, it has none.
    accidents = (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR)
    differ = {
        name: (ours[name], code) for name, code in theirs.items() if code not in (*accidents, ours[name])
    }
    assert set(differ) == {f"{codec}: timestamp beyond 64 bits" for codec in compression.NAMES}


@pytest.mark.oracle
@pytest.mark.xdist_group("apache-kafka")
def test_mutated_batches_are_taken_only_if_apache_kafka_takes_them(
    strandline: Server, apache_kafka: ApacheKafka, topic: str
) -> None:
    cases = {f"mutated(Random({seed}))": mutated(Random(seed)) for seed in range(400)}
    ours, theirs = verdicts(strandline, topic, cases), verdicts(apache_kafka, topic, cases)
    lax = {name: theirs[name] for name, code in ours.items() if code == 0 and theirs[name] != 0}
    assert lax == {}
    taken = sum(code == 0 for code in ours.values())
    assert 100 < taken < 300


@pytest.mark.oracle
@pytest.mark.xdist_group("apache-kafka")
def test_clients_read_a_topic_to_its_end_after_lies_were_sent_to_it(
    strandline: Server, java_worker: JavaWorker, topic: str
) -> None:
    now_ms = recent_ms()
    good = {
        f"good {number}": batch(2, first=2 * number, codec=number % 5, timestamp=now_ms)
        for number in range(10)
    }
    lying = every_lie() | {"late header": resealed(batch(2, timestamp=now_ms), max_timestamp=1 << 61)}
    cases: dict[str, bytes] = {}
    for name, data in good.items():
        cases |= {name: data} | dict(list(lying.items())[len(cases) % 7 :: 7])
    codes = verdicts(strandline, topic, cases)
    end = 2 * sum(code == 0 for code in codes.values())
    assert end >= 20
    for client in (
        ConfluentKafkaClient(strandline.bootstrap),
        JavaClient(strandline.bootstrap, java_worker),
        AiokafkaClient(strandline.bootstrap),
    ):
        assert client.end_offsets(topic, [0]) == {0: end}
        assert [record.offset for record in client.read(topic, count=end)] == list(range(end))
