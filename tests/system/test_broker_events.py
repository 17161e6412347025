"""The log of a real broker: what it tells at info, what at debug, and levels that are changed while it runs."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import confluent_kafka
import pytest
from confluent_kafka import admin as confluent

from strandline.client.admin.configs import ConfigChange, Operation, ResourceType
from strandline.client.admin.configs import ConfigResource as Resource
from strandline.client.errors import KafkaError
from strandline.client.sync import Admin
from strandline.telemetry.events import LIMITED_LINES
from strandline.testing import BrokerProcess
from tests.record_times import recent_ms


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(
        tmp_path_factory.mktemp("events") / "data",
        {"group.min.session.timeout.ms": "500", "group.initial.rebalance.delay.ms": "0"},
    )
    process.start()
    yield process
    process.stop()


def lines(broker: BrokerProcess, text: str) -> list[str]:
    return [line for line in broker.log_text.splitlines() if text in line]


def told(broker: BrokerProcess, *texts: str, seconds: float = 10) -> None:
    """Waits until there is a line with all of the texts."""
    until = time.monotonic() + seconds
    while not any(all(text in line for text in texts) for line in broker.log_text.splitlines()):
        assert time.monotonic() < until, f"no line with {texts} in:\n{broker.log_text}"
        time.sleep(0.02)


def test_changes_of_topics_and_settings_are_logged(broker: BrokerProcess) -> None:
    client = confluent.AdminClient({"bootstrap.servers": broker.bootstrap})
    client.create_topics([confluent.NewTopic("told", 3, 1)])["told"].result(10)
    told(broker, " info ", "[1] topic created topic=told partitions=3")
    client.create_partitions([confluent.NewPartitions("told", 5)])["told"].result(10)
    told(broker, "partitions added topic=told partitions=2")
    entry = confluent.ConfigEntry(
        "retention.ms", "1000", incremental_operation=confluent.AlterConfigOpType.SET
    )
    resource = confluent.ConfigResource(confluent.ResourceType.TOPIC, "told", incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(10)
    told(broker, 'setting changed resource="topic told" key=retention.ms value=1000')
    client.delete_topics(["told"])["told"].result(10)
    told(broker, "topic deleted topic=told")


def test_records_older_than_retention_are_logged_once_for_a_topic(broker: BrokerProcess) -> None:
    client = confluent.AdminClient({"bootstrap.servers": broker.bootstrap})
    client.create_topics(
        [confluent.NewTopic("old", 2, 1), confluent.NewTopic("kept", 1, 1, config={"retention.ms": "-1"})]
    )["old"].result(10)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(4):
        producer.produce("old", b"x", partition=number % 2, timestamp=recent_ms() - 30 * 86_400_000)
        producer.produce("kept", b"x", timestamp=recent_ms() - 30 * 86_400_000)
        producer.produce("told-new", b"x")
        assert producer.flush(20) == 0
    told(
        broker, " warn ", "records are older than their topic's retention", "topic=old retention_ms=604800000"
    )
    assert len(lines(broker, "records are older than their topic's retention")) == 1


def test_changes_of_groups_are_logged(broker: BrokerProcess) -> None:
    client = confluent.AdminClient({"bootstrap.servers": broker.bootstrap})
    client.create_topics([confluent.NewTopic("grouped", 1, 1)])["grouped"].result(10)
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "tellers", "session.timeout.ms": 6000}
    )
    consumer.subscribe(["grouped"])
    until = time.monotonic() + 20
    while not consumer.assignment() and time.monotonic() < until:
        consumer.poll(0.1)
    told(broker, "group rebalanced group=tellers", "members=1")
    consumer.close()
    told(broker, "group is empty group=tellers")


def test_a_fenced_producer_and_a_refused_batch_are_logged(broker: BrokerProcess) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": "teller"}
    for _ in range(2):
        confluent_kafka.Producer(settings).init_transactions(20)
    told(broker, "transactional_id=teller", "epoch=1")
    client = confluent.AdminClient({"bootstrap.servers": broker.bootstrap})
    small = confluent.NewTopic("small", 1, 1, config={"max.message.bytes": "100"})
    client.create_topics([small])["small"].result(10)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "client.id": "big"})
    producer.produce("small", b"x" * 1000)
    producer.flush(10)
    told(broker, "batch refused: MESSAGE_TOO_LARGE partition=small-0 client=big")


def test_levels_change_while_it_runs(broker: BrokerProcess) -> None:
    requests = Resource(ResourceType.BROKER_LOGGER, "1")
    with Admin(bootstrap_servers=broker.bootstrap) as ours:
        assert not lines(broker, " debug ")
        ours.alter_configs({requests: [ConfigChange(name="strandline.requests", value="DEBUG")]})
        assert ours.describe_configs([requests])[requests]["strandline.requests"].value == "DEBUG"
        ours.list_topics()
        told(broker, " debug ", "request peer=127.0.0.1:", "api=Metadata")
        ours.alter_configs({requests: [ConfigChange(name="strandline.requests", operation=Operation.DELETE)]})
        assert ours.describe_configs([requests])[requests]["strandline.requests"].value == "INFO"
        with pytest.raises(KafkaError, match="nothing does not exist"):
            ours.alter_configs({requests: [ConfigChange(name="nothing", value="DEBUG")]})
        with pytest.raises(KafkaError, match="LOUD is not a log level"):
            ours.alter_configs({requests: [ConfigChange(name="root", value="LOUD")]})


@pytest.mark.parametrize(
    ("first_bytes", "text"),
    [
        (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            "TLS was sent to a listener that does not speak it",
        ),
        (b"GET /metrics HTTP/1.1\r\n\r\n", "HTTP was sent to a listener that does not speak it"),
    ],
)
def test_other_protocols_are_recognised_and_do_not_flood_the_log(
    broker: BrokerProcess, first_bytes: bytes, text: str
) -> None:
    host, port = broker.bootstrap.split(":")
    for _ in range(LIMITED_LINES + 5):
        with socket.create_connection((host, int(port)), 5) as client:
            client.sendall(first_bytes)
            assert client.recv(100) == b"", "the broker closes it"
    told(broker, text, "listener=PLAINTEXT")
    assert len(lines(broker, text)) == LIMITED_LINES
