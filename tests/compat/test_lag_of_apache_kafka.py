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
    asyncio.run(_create(apache_kafka.bootstrap))
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


async def _create(bootstrap: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        if TOPIC not in await admin.list_topics():
            await admin.create_topic(TOPIC, partitions=1, replication_factor=1)
