"""Clients of Go and of Node: each does what its users do with it, in a program of its own language.

The programs are in `tests/compat/go` and `tests/compat/node`. They end with an error where the broker answers other
than a client can use; here their counts are compared with what they did, and with what another client reads.
"""

from __future__ import annotations

import json
import subprocess
import uuid
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.compat.server import Server
from tests.oracle.fetch import GO_CLIENTS, NODE_CLIENTS
from tests.oracle.require import require

pytestmark = pytest.mark.oracle

RECORDS = 200  # with each codec
CODECS = 5
EVERYTHING = RECORDS * CODECS
SECONDS_MAX = 240


def run(program: list[str], directory: Path, server: Server) -> tuple[str, dict[str, int]]:
    """Returns the prefix of the program's topics, and its counts."""
    prefix = f"{program[-1]}-{uuid.uuid4().hex[:8]}"
    done = subprocess.run(
        [*program, server.bootstrap, prefix],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return prefix, json.loads(done.stdout.splitlines()[-1])


def go(client: str, server: Server) -> tuple[str, dict[str, int]]:
    directory = require(GO_CLIENTS)
    return run([str(directory / "goclients"), client], directory, server)


def node(client: str, server: Server) -> tuple[str, dict[str, int]]:
    return run(["node", "story.js", client], require(NODE_CLIENTS), server)


def committed_values(server: Server, topic: str, count: int) -> Counter[bytes]:
    """Returns the values that a read_committed consumer gets: `count` of them, or fewer if there are no more."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": f"{topic}-check",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = list(consumer.list_topics(topic, 60).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
        found: Counter[bytes] = Counter()
        ended: set[int] = set()
        while len(ended) < len(partitions):
            message = consumer.poll(60)
            assert message is not None, f"{found.total()} of {count}"
            if message.error() is None:
                found[message.value()] += 1
            else:
                ended.add(message.partition())
        return found
    finally:
        consumer.close()


def test_franz_go(server: Server) -> None:
    prefix, counts = go("franz", server)
    groups = {
        f"group {name}": EVERYTHING for name in ("range", "roundrobin", "sticky", "cooperative", "consumer")
    }
    aborted = counts.pop("aborted")
    assert counts == {"produced": EVERYTHING, "copied": EVERYTHING, "lag": 0, "start": 10} | groups
    assert aborted > 0
    assert committed_values(server, f"{prefix}-out", EVERYTHING) == {
        b"value-%d" % n: CODECS for n in range(RECORDS)
    }


def test_sarama(server: Server) -> None:
    _, counts = go("sarama", server)
    versions = 3
    groups = {f"group {name}": versions * EVERYTHING for name in ("range", "roundrobin", "sticky")}
    assert (
        counts
        == {
            "produced": versions * EVERYTHING,
            "committed": 8,  # four of six transactions, with the two versions that have them
            "committed offsets": versions * EVERYTHING,
        }
        | groups
    )


def test_segmentio(server: Server) -> None:
    _, counts = go("segmentio", server)
    assert counts == {"produced": EVERYTHING, "group": EVERYTHING, "first offset": 0}


def test_kafkajs(server: Server) -> None:
    prefix, counts = node("kafkajs", server)
    produced = 2 * RECORDS + 1
    assert counts == {
        "produced": produced,
        "group": produced,
        "committed": 4,
        "committed offset": 5,
        "ends": produced,
    }
    assert committed_values(server, f"{prefix}-out", 4) == {b"value-%d" % n: 1 for n in (1, 2, 4, 5)}


def test_platformatic(server: Server) -> None:
    _, counts = node("platformatic", server)
    produced = 4 * RECORDS
    assert counts == {"produced": produced, "group classic": produced, "group consumer": produced}
