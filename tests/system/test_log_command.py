"""`strandline log at` against a running broker."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from strandline.cli.main import main
from strandline.testing import running_broker
from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient

FIRST_MS = 1_750_000_000_000


def test_offsets_of_every_partition_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    with running_broker() as server:
        client = ConfluentKafkaClient(server.bootstrap)
        client.create_topic("t", partitions=2)
        producer = Producer({"bootstrap.servers": server.bootstrap})
        for number in range(10):
            producer.produce("t", b"x", partition=0, timestamp=FIRST_MS + 1000 * number)
        producer.produce("t", b"x", partition=1, timestamp=FIRST_MS)
        assert producer.flush(30) == 0
        for when in (str(FIRST_MS + 3500), "2025-06-15T15:06:43.500Z"):
            code = main(["log", "at", "--time", when, "--bootstrap-server", server.bootstrap, "--json"])
            found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            assert code == 0
            assert found == [
                {"topic": "t", "partition": 0, "offset": 4, "timestamp": FIRST_MS + 4000},
                {"topic": "t", "partition": 1, "offset": 1, "timestamp": None},
            ]
        assert main(["log", "at", "--time", "0", "--bootstrap-server", server.bootstrap, "--topic", "t"]) == 0
        assert capsys.readouterr().out.splitlines()[0].split()[:2] == ["t-0", "0"]
