"""Every client reads records that another client wrote, with any codec."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.compat.clients.aiokafka_client import AiokafkaClient
from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient
from tests.compat.clients.interface import KafkaClient
from tests.compat.clients.java_client import JavaClient
from tests.compat.clients.kafka_python_client import KafkaPythonClient
from tests.compat.contract import read_samples
from tests.compat.records import CODECS, EVERY_SHAPE, Sample
from tests.compat.server import Server

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "java")

ClientNamed = Callable[[str], KafkaClient]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A topic whose partition n holds `samples` in the n-th codec."""

    topic: str
    samples: list[Sample]


@pytest.fixture(scope="module")
def client_named(server: Server, request: pytest.FixtureRequest) -> ClientNamed:
    def client(name: str) -> KafkaClient:
        match name:
            case "confluent-kafka":
                return ConfluentKafkaClient(server.bootstrap)
            case "kafka-python":
                return KafkaPythonClient(server.bootstrap)
            case "aiokafka":
                return AiokafkaClient(server.bootstrap)
            case _:
                assert name == "java"
                return JavaClient(server.bootstrap, request.getfixturevalue("java_worker"))

    return client


@pytest.fixture(scope="module", params=CLIENTS)
def written(request: pytest.FixtureRequest, client_named: ClientNamed) -> Written:
    writer = client_named(request.param)
    topic = f"written-by-{request.param}-{uuid.uuid4().hex[:8]}"
    samples = [sample for sample in EVERY_SHAPE if writer.can_write(sample)]
    writer.create_topic(topic, partitions=len(CODECS))
    for partition, codec in enumerate(CODECS):
        writer.write(topic, samples, partition=partition, codec=codec, idempotent=True)
    return Written(topic=topic, samples=samples)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("reader", CLIENTS)
def test_records_are_read_as_another_client_wrote_them(
    written: Written, reader: str, codec: str, client_named: ClientNamed
) -> None:
    client = client_named(reader)
    partition = CODECS.index(codec)
    assert (
        read_samples(client, written.topic, partition=partition, count=len(written.samples))
        == written.samples
    )
