"""Transactions of clients of other makers: Java, librdkafka, aiokafka, kafka-python; and Kafka's own tools look on."""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Producer

from strandline.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient
from tests.compat.clients.interface import eventually
from tests.compat.clients.java_client import JavaClient
from tests.compat.clients.kafka_python_client import KafkaProducer
from tests.compat.server import CreateTopic, PrivateServer, Server
from tests.oracle.java_worker import JavaWorker
from tests.oracle.kafka_tools import KafkaTools
from tests.oracle.readiness import wait_until_writable

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]


@pytest.fixture
def client(server: Server, java_worker: JavaWorker) -> JavaClient:
    return JavaClient(server.bootstrap, java_worker)


def read(client: JavaClient, topic: str, count: int, partition: int = 0) -> list[str]:
    """Returns the records that a read_committed consumer of Java gets."""
    records = client.call(
        "read_partitions",
        topic=topic,
        partitions=[partition],
        count=count,
        settings={"isolation.level": "read_committed"},
    )
    return [b64decode(each["value"]).decode() for each in records.get(str(partition), [])]


def test_java_transactions_are_read_together_or_not_at_all(
    client: JavaClient, create: CreateTopic, topic: str
) -> None:
    create(topic, partitions=3)
    transactions = [
        {"value": f"v{number}", "commit": number % 3 != 1, "offset": number} for number in range(30)
    ]
    client.call(
        "transact",
        topic=topic,
        partitions=[0, 1, 2],
        group=f"group-{topic}",
        transactions=transactions,
        settings={"transactional.id": topic},
    )
    expected = [each["value"] for each in transactions if each["commit"]]
    for partition in range(3):
        assert read(client, topic, len(expected), partition) == expected


def confluent(bootstrap: str, name: str, **settings: object) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, **settings})
    producer.init_transactions(20)
    return producer


def test_librdkafka_and_java_share_a_topic(
    client: JavaClient, create: CreateTopic, topic: str, server: Server
) -> None:
    create(topic)
    producer = confluent(server.bootstrap, topic)
    for number in range(10):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number, partition=0)
        if number % 2:
            producer.abort_transaction(20)
        else:
            producer.commit_transaction(20)
    assert read(client, topic, 5) == ["0", "2", "4", "6", "8"]


def test_aiokafka_transactions(client: JavaClient, create: CreateTopic, topic: str, server: Server) -> None:
    create(topic)

    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=server.bootstrap, transactional_id=topic)
        await producer.start()
        try:
            for number in range(6):
                await producer.begin_transaction()
                await producer.send_and_wait(topic, b"%d" % number, partition=0)
                where = {AioTopicPartition(topic, 0): number}
                await producer.send_offsets_to_transaction(where, f"group-{topic}")
                await (producer.abort_transaction() if number % 2 else producer.commit_transaction())
        finally:
            await producer.stop()

    asyncio.run(main())
    assert read(client, topic, 3) == ["0", "2", "4"]


def test_kafka_python_transactions(
    client: JavaClient, create: CreateTopic, topic: str, server: Server
) -> None:
    create(topic)
    producer = KafkaProducer(bootstrap_servers=server.bootstrap, transactional_id=topic)
    try:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=0).get(20)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    finally:
        producer.close()
    assert read(client, topic, 3) == ["0", "2", "4"]


def test_an_open_transaction_is_shown_and_a_hanging_one_can_be_aborted(
    client: JavaClient, create: CreateTopic, topic: str, server: Server, kafka_tools: KafkaTools
) -> None:
    create(topic)
    at = ["--bootstrap-server", server.bootstrap]

    def tool(*arguments: str) -> str:
        return kafka_tools.run("TransactionsCommand", *at, *arguments).succeeded().stdout

    producer = confluent(server.bootstrap, topic)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(60)
    assert re.search(rf"{topic}\s+\d+\s+\d+\s+Ongoing", tool("list"))
    described = tool("describe", "--transactional-id", topic)
    assert "Ongoing" in described
    assert f"{topic}-0" in described
    assert re.search(
        r"\n\d+\s+\d+\s+-1\s+0\s+\d+\s+0\s", tool("describe-producers", "--topic", topic, "--partition", "0")
    )
    tool("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    producers = tool("describe-producers", "--topic", topic, "--partition", "0")
    assert "None" in producers, "no transaction is open there any more"
    assert "No hanging" not in tool("find-hanging", "--topic", topic, "--partition", "0")


def test_the_dump_tool_reads_markers_aborted_transactions_and_the_coordinators_log(
    private_server: PrivateServer, tmp_path: Path, kafka_tools: KafkaTools
) -> None:
    settings = {
        "log.dirs": str(tmp_path / "data"),
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    with private_server(settings) as server:
        ConfluentKafkaClient(server.bootstrap).create_topic("t")
        wait_until_writable(server.bootstrap, "t", partitions=1)
        producer = confluent(server.bootstrap, "dumped")
        for number in range(4):
            producer.begin_transaction()
            producer.produce("t", b"%d" % number, partition=0)
            producer.flush(60)
            if number % 2:
                producer.abort_transaction(20)
            else:
                producer.commit_transaction(20)
        data = server.data_dir

        def dump(path: Path, *arguments: str) -> str:
            return kafka_tools.run("DumpLogSegments", "--files", path, *arguments).succeeded().stdout

        def log() -> str:
            path = data / "__transaction_state-0" / f"{0:020}.log"
            return dump(path, "--transaction-log-decoder")

        # A producer is told of its commit before the markers are written: they are there when the last is complete.
        decoded = eventually(log, lambda text: text.count('"transactionStatus":5') == 2)
        assert '"transactionalId":"dumped"' in decoded
        assert '"topic":"t","partitionIds":[0]' in decoded
        states = [int(found) for found in re.findall(r'"transactionStatus":(\d+)', decoded)]
        committed, aborted = (
            [ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT],
            [ONGOING, PREPARE_ABORT, COMPLETE_ABORT],
        )
        assert states == [EMPTY, *committed, *aborted, *committed, *aborted]
        markers = dump(data / "t-0" / f"{0:020}.log", "--print-data-log")
        assert re.findall(r"endTxnMarker: (\w+)", markers) == ["COMMIT", "ABORT", "COMMIT", "ABORT"]
        index = dump(data / "t-0" / f"{0:020}.txnindex")
        rows = re.findall(
            r"firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", index.replace(",", "")
        )
        assert rows == [("2", "3", "4"), ("6", "7", "8")]
