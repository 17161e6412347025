"""kcat lists, produces, consumes and queries."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient
from tests.compat.clients.interface import CALL_TIMEOUT_S
from tests.compat.contract import read_samples
from tests.compat.records import BASE_TIMESTAMP_MS, CODECS, Sample, numbered
from tests.compat.server import CreateTopic, Server

pytestmark = pytest.mark.oracle

Kcat = Callable[..., str]


@pytest.fixture
def run(kcat: list[str], server: Server) -> Kcat:
    """Run kcat, check that it succeeds, and return what it printed."""

    def run(*args: object, stdin: str = "") -> str:
        done = subprocess.run(
            [*kcat, "-b", server.bootstrap, *map(str, args)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=CALL_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def client(server: Server) -> ConfluentKafkaClient:
    return ConfluentKafkaClient(server.bootstrap)


def test_listing_shows_brokers_topics_and_partitions(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, server: Server, topic: str
) -> None:
    create(topic, partitions=3)
    listed: dict[str, Any] = json.loads(run("-L", "-J"))
    broker = client.describe_cluster().controller
    assert listed["brokers"] == [{"id": broker, "name": server.bootstrap}]
    assert listed["controllerid"] == broker
    (described,) = [each for each in listed["topics"] if each["topic"] == topic]
    assert described["partitions"] == [
        {"partition": partition, "leader": broker, "replicas": [{"id": broker}], "isrs": [{"id": broker}]}
        for partition in range(3)
    ]


def test_listing_one_topic_shows_only_that_topic(run: Kcat, create: CreateTopic, topic: str) -> None:
    create(topic, partitions=2)
    shown = run("-L", "-t", topic)
    assert "1 topics:" in shown
    assert f'topic "{topic}" with 2 partitions:' in shown


@pytest.mark.parametrize("codec", CODECS)
def test_lines_from_standard_input_become_records(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, topic: str, codec: str
) -> None:
    create(topic)
    run("-P", "-t", topic, "-p", 0, "-K", ":", "-z", codec, stdin="k1:first\nk2:second\n:no key\n")
    received = [(each.sample.key, each.sample.value) for each in client.read(topic, count=3)]
    assert received == [(b"k1", b"first"), (b"k2", b"second"), (b"", b"no key")]


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_another_client_are_printed(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, topic: str, codec: str
) -> None:
    create(topic)
    client.write(topic, numbered(20), codec=codec)
    printed = run("-C", "-t", topic, "-p", 0, "-o", "beginning", "-e", "-q", "-f", r"%o %T %k %s\n")
    assert printed.splitlines() == [
        f"{offset} {each.timestamp_ms} {str(each.key, 'ascii')} {str(each.value, 'ascii')}"
        for offset, each in enumerate(numbered(20))
    ]


def test_headers_are_written_and_printed(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    run("-P", "-t", topic, "-H", "a=1", "-H", "b=two", "-H", "a=3", stdin="v\n")
    assert client.read(topic, count=1)[0].sample.headers == (("a", b"1"), ("b", b"two"), ("a", b"3"))
    assert run("-C", "-t", topic, "-o", 0, "-e", "-q", "-f", "%h") == "a=1,b=two,a=3"


def test_null_differs_from_empty(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    run("-P", "-Z", "-t", topic, "-K", ":", stdin="tombstone:\n")
    client.write(topic, [Sample(key=b"empty", value=b"", timestamp_ms=BASE_TIMESTAMP_MS)])
    assert [each.sample.value for each in client.read(topic, count=2)] == [None, b""]
    printed = run("-C", "-t", topic, "-o", 0, "-e", "-q", "-f", r"%k %S\n")
    assert printed.splitlines() == ["tombstone -1", "empty 0"]


def test_file_becomes_one_record_with_a_fixed_key(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, topic: str, tmp_path: Path
) -> None:
    create(topic)
    file = tmp_path / "message"
    file.write_text("several\nlines\n" * 1000)
    run("-P", "-t", topic, "-p", 0, "-k", "fixed", "-X", "enable.idempotence=true", file)
    (received,) = client.read(topic, count=1)
    assert (received.sample.key, received.sample.value) == (b"fixed", file.read_bytes())


@pytest.mark.parametrize(
    ("where", "first"),
    [
        ("beginning", 0),
        ("7", 7),
        ("-3", 17),
        (f"s@{BASE_TIMESTAMP_MS + 12}", 12),
    ],
    ids=["beginning", "absolute", "from the end", "by time"],
)
def test_reading_starts_at_the_requested_offset(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, topic: str, where: str, first: int
) -> None:
    create(topic)
    client.write(topic, numbered(20))
    printed = run("-C", "-t", topic, "-p", 0, "-o", where, "-e", "-q", "-f", r"%o\n")
    assert [int(line) for line in printed.splitlines()] == list(range(first, 20))


def test_reading_stops_after_a_count(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    client.write(topic, numbered(20))
    printed = run("-C", "-t", topic, "-o", "beginning", "-c", 5, "-q", "-f", r"%o\n")
    assert [int(line) for line in printed.splitlines()] == [0, 1, 2, 3, 4]


def test_reading_all_partitions_finds_every_record(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic, partitions=4)
    client.write(topic, numbered(200), partition=None)
    printed = run("-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", r"%s\n")
    assert sorted(printed.splitlines()) == [str(each.value, "ascii") for each in numbered(200)]


def test_json_envelope_has_all_parts_of_a_record(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    sample = Sample(key=b"k", value=b"v", headers=(("h", b"1"),), timestamp_ms=BASE_TIMESTAMP_MS)
    client.write(topic, [sample])
    envelope = json.loads(run("-C", "-J", "-t", topic, "-o", 0, "-e", "-q"))
    assert envelope == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "tstype": "create",
        "ts": BASE_TIMESTAMP_MS,
        "broker": client.describe_cluster().controller,
        "headers": ["h", "1"],
        "key": "k",
        "payload": "v",
    }


def test_binary_keys_and_values_are_unpacked(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    client.write(topic, [Sample(key=(258).to_bytes(4, "big"), value=(2**40).to_bytes(8, "big"))])
    printed = run("-C", "-t", topic, "-o", 0, "-e", "-q", "-s", "key=>i$", "-s", "value=>q$", "-f", "%k %s")
    assert printed == f"258 {2**40}"


def test_query_finds_the_offset_of_a_time(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic, partitions=2)
    client.write(topic, numbered(20), partition=1)
    assert run("-Q", "-t", f"{topic}:1:{BASE_TIMESTAMP_MS + 5}").split() == [topic, "[1]", "offset", "5"]
    assert run("-Q", "-t", f"{topic}:1:-1").split() == [topic, "[1]", "offset", "20"]
    assert run("-Q", "-t", f"{topic}:1:-2").split() == [topic, "[1]", "offset", "0"]


def test_records_that_kcat_writes_come_back_in_order(
    run: Kcat, client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic)
    lines = [f"line {number}" for number in range(3000)]
    run("-P", "-t", topic, "-p", 0, stdin="\n".join(lines) + "\n")
    samples = read_samples(client, topic, count=3000)
    assert [str(sample.value, "ascii") for sample in samples] == lines
