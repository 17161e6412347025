"""Creates topics of a peer for one step, and deletes them from its disk before the next one."""

from __future__ import annotations

import time

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.peers import Peer
from tests.oracle.readiness import wait_until_writable

ANSWER_WAIT_S_MAX = 120.0


def create(peer: Peer, topic: str, *, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 0})
    wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1)
    for done in admin.create_topics([wanted], request_timeout=ANSWER_WAIT_S_MAX).values():
        done.result(ANSWER_WAIT_S_MAX)
    wait_until_writable(peer.bootstrap, topic, partitions=partitions)


def delete(peer: Peer, topic: str) -> None:
    """Deletes a topic, and returns when its files are gone."""
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 0})
    for done in admin.delete_topics([topic], request_timeout=ANSWER_WAIT_S_MAX).values():
        done.result(ANSWER_WAIT_S_MAX)
    deadline = time.monotonic() + ANSWER_WAIT_S_MAX
    while any(peer.data_dir.glob(f"{topic}[-.]*")):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{peer.name} keeps the files of {topic}")
        time.sleep(0.05)


def log_bytes(peer: Peer, topic: str) -> int:
    """Returns the bytes of a topic's records on disk, without indexes."""
    return sum(path.stat().st_size for path in peer.data_dir.glob(f"{topic}-*/*.log"))
