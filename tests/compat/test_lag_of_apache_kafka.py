"""`strandline lag` beside an Apache Kafka cluster."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from strandline.client import Admin
from tests.oracle.apache_kafka import ApacheKafka
from tests.system.commands import command

pytestmark = pytest.mark.oracle

TOPIC, GROUP, RECORDS, READ = "lag-of-kafka", "lag-readers", 2_500, 700


def fill(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number).encode(), partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, READ)], asynchronous=False)
    consumer.close()


def test_lag_of_a_group_of_apache_kafka(apache_kafka: ApacheKafka) -> None:
    asyncio.run(_create(apache_kafka.bootstrap, TOPIC))
    fill(apache_kafka.bootstrap)
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "strandline.cli.main", "lag"),
            *("--bootstrap-server", apache_kafka.bootstrap, "--json", GROUP),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    (group,) = json.loads(ran.stdout)["groups"]
    assert (group["lag"], group["status"], group["members"]) == (RECORDS - READ, "WARN", 0)


def test_a_watch_beside_apache_kafka_has_trend_seconds_and_progress(apache_kafka: ApacheKafka) -> None:
    bootstrap, topic, group = apache_kafka.bootstrap, "watched-by-us", "watched-readers"
    asyncio.run(_create(bootstrap, topic))
    producer = Producer({"bootstrap.servers": bootstrap})

    def write(count: int) -> None:
        for _ in range(count):
            producer.produce(topic, b"x", partition=0)
        assert producer.flush(30) == 0

    write(100)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 100)], asynchronous=False)
    consumer.close()
    arguments = [
        "lag",
        "--bootstrap-server",
        bootstrap,
        group,
        "--watch",
        "--interval",
        "0.5",
        "--looks",
        "8",
    ]
    with command(*arguments, "--warning", "200") as running:
        running.wait_for(group)
        write(400)
        assert running.wait() == 0
        rows = [line.split() for line in running.out if line.startswith(group)]
    # What was written after the first look is not read yet: how long that has been so is an estimate, and says so.
    assert rows[0][1:4] == ["OK", "0", "0"]
    assert rows[-1][1:3] == ["WARN", "400"]
    assert rows[-1][3].startswith("~")
    assert 0 < float(rows[-1][3].removeprefix("~")) < 60


async def _create(bootstrap: str, topic: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        if topic not in await admin.list_topics():
            await admin.create_topic(topic, partitions=1, replication_factor=1)
