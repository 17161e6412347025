"""Apache Kafka's kafka-reassign-partitions.sh moves a replica between the log directories of a broker."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strandline.testing.process import BrokerProcess
from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient
from tests.oracle.kafka_tools import KafkaTools

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    directories = f"{tmp_path}/one,{tmp_path}/two"
    process = BrokerProcess(
        tmp_path / "one", {"log.dirs": directories, "metadata.log.dir": f"{tmp_path}/one"}
    )
    process.start()
    yield process
    process.stop()


def test_a_replica_is_moved_and_its_records_are_there(
    broker: BrokerProcess, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    client = ConfluentKafkaClient(broker.bootstrap)
    client.create_topic("t", partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(2000):
        producer.produce("t", f"{number}".encode(), partition=0)
    assert producer.flush(30) == 0
    (here,) = [each for each in ("one", "two") if (tmp_path / each / "t-0").exists()]
    there = tmp_path / ("two" if here == "one" else "one")
    plan = tmp_path / "plan.json"
    move = {"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [str(there)]}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
    options = ("--bootstrap-server", broker.bootstrap, "--reassignment-json-file", plan)
    kafka_tools.run("ReassignPartitionsCommand", *options, "--execute").succeeded()
    deadline = time.monotonic() + 60
    done = "Reassignment of replica t-0-1 completed successfully."
    while done not in (said := kafka_tools.run("ReassignPartitionsCommand", *options, "--verify").stdout):
        assert time.monotonic() < deadline, said
    assert (there / "t-0").exists()
    assert not (tmp_path / here / "t-0").exists()
    for number in range(2000, 2100):
        producer.produce("t", f"{number}".encode(), partition=0)
    assert producer.flush(30) == 0
    assert [record.sample.value for record in client.read("t", count=2100)] == [
        str(n).encode() for n in range(2100)
    ]
