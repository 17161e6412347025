"""`strandline log at` against a running broker."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer

from strandline.cli.main import main
from strandline.testing import running_broker
from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient
from tests.record_times import recent_ms


def test_offsets_of_every_partition_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    first_ms = recent_ms()
    in_words = datetime.fromtimestamp(first_ms / 1000 + 3.5, UTC).isoformat().replace("+00:00", "Z")
    with running_broker() as server:
        client = ConfluentKafkaClient(server.bootstrap)
        client.create_topic("t", partitions=2)
        producer = Producer({"bootstrap.servers": server.bootstrap})
        for number in range(10):
            producer.produce("t", b"x", partition=0, timestamp=first_ms + 1000 * number)
        producer.produce("t", b"x", partition=1, timestamp=first_ms)
        assert producer.flush(30) == 0
        for when in (str(first_ms + 3500), in_words):
            code = main(["log", "at", "--time", when, "--bootstrap-server", server.bootstrap, "--json"])
            found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            assert code == 0
            assert found == [
                {"topic": "t", "partition": 0, "offset": 4, "timestamp": first_ms + 4000},
                {"topic": "t", "partition": 1, "offset": 1, "timestamp": None},
            ]
        assert main(["log", "at", "--time", "0", "--bootstrap-server", server.bootstrap, "--topic", "t"]) == 0
        assert capsys.readouterr().out.splitlines()[0].split()[:2] == ["t-0", "0"]
